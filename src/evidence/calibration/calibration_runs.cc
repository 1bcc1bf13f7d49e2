#include "evidence/calibration/calibration_runs.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/files.h"
#include "device/figure_kinds.h"
#include "json/fields.h"
#include "json/text.h"

namespace stoker {
namespace {

using Json = json::Value;

constexpr Bytes kLargestFile{64LL << 20};
constexpr std::size_t kMostRows = 100'000, kMostFigures = 4096;
constexpr json::Format kFormat{"stoker-calibration", 1, "format"};
constexpr double kMostThreads = 4096, kMostSpread = 10;

/// Figures of GPUs that are keys of [calibration] itself; bounds as there.
struct Scalar {
  const char* name;
  double least, most;
  double Calibration::*member;
};
constexpr std::array<Scalar, 4> kScalars{
    {{"launch_floor_us", 0, 1e4, &Calibration::launch_floor_us},
     {"host_dispatch_us", 0, 1e4, &Calibration::host_dispatch_us},
     {"pinned_gbs", 0, 1e6, &Calibration::pinned_gbs},
     {"pageable_gbs", 0, 1e6, &Calibration::pageable_gbs}}};

std::map<std::string, std::string> texts_of(const Json& json) {
  std::map<std::string, std::string> texts;
  for (const auto& [key, value] : json.items()) {
    if (value.is_string() && !value.as_string().empty()) texts[key] = value.as_string();
    else if (value.is_number()) texts[key] = value.dump();
  }
  return texts;
}

/// Readings of a machine that was busy can scatter without bounds; a machine file keeps at most so
/// much.
double spread_of(json::Fields& fields, const Json& json, const std::string& path) {
  return std::min(kMostSpread, fields.otherwise(json, "spread", path, 0, 1e9, 0));
}

MeasuredLoad read_load(json::Fields& fields, const Json& root) {
  const std::string path = "load.";
  const Json& json = fields.object(root, "load", "");
  MeasuredLoad load;
  constexpr double kMostShare = 10, kMostProcesses = 1e6;
  load.foreign_share = fields.otherwise(json, "foreign_share", path, 0, kMostShare, 0);
  load.steal_share = fields.otherwise(json, "steal_share", path, 0, kMostShare, 0);
  load.others_on_gpu =
      static_cast<int>(fields.otherwise(json, "others_on_gpu", path, 0, kMostProcesses, 0));
  load.clocks_changed = fields.flag(json, "clocks_changed", path, false);
  load.disturbed = fields.flag(json, "disturbed", path, false);
  load.why = fields.maybe_text(json, "why", path);
  return load;
}

void read_figure(json::Fields& fields, const Json& json, const std::string& path,
                 CalibrationRuns& runs) {
  MeasuredFigure figure;
  figure.name = fields.text(json, "name", path);
  figure.threads = static_cast<int>(fields.otherwise(json, "threads", path, 0, kMostThreads, 0));
  figure.spread = spread_of(fields, json, path);
  figure.value = fields.number(json, "value", path, -1e18, 1e18);
  if (!fields.good()) return;
  Calibration& c = runs.calibration;
  for (const Scalar& scalar : kScalars) {
    if (figure.name != scalar.name) continue;
    c.*scalar.member = fields.number(json, "value", path, scalar.least, scalar.most);
    return;
  }
  const FigureKind* kind = figure_kind(figure.name);
  if (kind == nullptr) {
    runs.data.add("unknown_figure", Severity::kNote,
                  "figures that this stoker does not know were left out; update it");
    return;
  }
  if (const auto good = within(figure.value, kind->range); !good)
    return fields.refuse(path + "value", "of " + figure.name + ": " + good.error().message);
  if (!kind->by_threads) figure.threads = 0;
  set_figure(c, std::move(figure));
}

MeasuredOperator read_operator(json::Fields& fields, const Json& json, const std::string& path,
                               const std::string& where) {
  MeasuredOperator row;
  row.kind = fields.text(json, "kind", path);
  row.function = fields.maybe_text(json, "function", path);
  row.threads = static_cast<int>(fields.otherwise(json, "threads", path, 0, kMostThreads, 0));
  const Json& sizes = fields.object(json, "sizes", path);
  for (const auto& [name, value] : sizes.items()) {
    const double size = fields.checked(value, path + "sizes." + name, 0, json::kMaxCount);
    if (size != std::floor(size)) fields.refuse(path + "sizes." + name, "is not a whole number");
    row.sizes[name] = static_cast<std::int64_t>(size);
  }
  const std::string precision = fields.maybe_text(json, "precision", path);
  const std::string pass = fields.maybe_text(json, "pass", path);
  if (!precision.empty()) row.precision = precision;
  if (!pass.empty()) row.pass = pass;
  constexpr double kLeastUs = 1e-3, kMostUs = 3.6e9;  // as in a machine file
  row.time_us = fields.number(json, "time_us", path, kLeastUs, kMostUs);
  row.spread = spread_of(fields, json, path);
  row.warm = fields.flag(json, "warm", path, true);
  row.where = where + ": " + path.substr(0, path.size() - 1);
  return row;
}

}  // namespace

Result<CalibrationRuns> parse_calibration_runs(std::string_view text, const std::string& where) {
  const auto root = json::parse_document(
      text, where, {"a calibration's rows", "measure again with `stoker calibrate`"});
  if (!root) return tl::unexpected(root.error());
  json::Fields fields(where, "measure again with `stoker calibrate`");
  TRY(fields.check_format(*root, kFormat));
  CalibrationRuns runs;
  runs.provenance = texts_of(fields.object(*root, "provenance", ""));
  runs.device = read_measured_device(fields, *root);
  runs.load = read_load(fields, *root);
  runs.calibration.disturbed = runs.load.disturbed;
  runs.complete = fields.flag(*root, "complete", "", false);
  const Json& figures = fields.list(*root, "figures", "", kMostFigures);
  for (std::size_t i = 0; fields.good() && i < figures.size(); ++i)
    read_figure(fields, figures[i], json::indexed("", "figures", i), runs);
  const Json& operators = fields.list(*root, "operators", "", kMostRows);
  for (std::size_t i = 0; fields.good() && i < operators.size(); ++i) {
    runs.calibration.operators.push_back(
        read_operator(fields, operators[i], json::indexed("", "operators", i), where));
  }
  if (!fields.good()) return tl::unexpected(fields.error());
  return runs;
}

Result<CalibrationRuns> read_calibration_runs(const std::filesystem::path& path) {
  const auto text = TRY(read_file(path, kLargestFile));
  return parse_calibration_runs(text, path.string());
}

}  // namespace stoker
