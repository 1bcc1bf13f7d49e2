#include "input/probe_io.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/files.h"

namespace stoker {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMajor = 1, kMinor = 0;
/// A probe file of 100,000 samples stays below this; more is no probe file.
constexpr Bytes kFileLimit = 64 * kMiB;
constexpr std::size_t kMaxSamples = 1'000'000;
/// Nesting of the format is 3; deeper text is an attack on the parser's stack.
constexpr int kMaxDepth = 8;
/// Largest believable values, to keep sums finite: a day for a time, 2^53 for a count.
constexpr double kMaxMs = 86'400'000, kMaxCount = 9007199254740992.0, kMaxRate = 1e15;
constexpr int kMaxSide = 65'535;  // JPEG's own limit

Json to_json(const Spread& spread) {
  return {{"mean", spread.mean}, {"median", spread.median}, {"sd", spread.sd}, {"p95", spread.p95}};
}

/// One row a sample: bytes, width, height, flags, then the stages in nanoseconds.
Json to_json(const SampleRecord& sample) {
  Json row = {sample.bytes.count(), sample.width, sample.height,
              int{sample.progressive} + 2 * int{sample.grey} + 4 * int{sample.cmyk}};
  for (const Nanos time : sample.stage) row.push_back(std::llround(time.count()));
  return row;
}

/// Walks the document; the first thing wrong is kept and ends the reading.
class Reader {
 public:
  explicit Reader(std::string where) : where_(std::move(where)) {}

  [[nodiscard]] bool good() const { return !error_.has_value(); }
  [[nodiscard]] Error error() const { return *error_; }

  void refuse(const std::string& field, const std::string& why) {
    if (good()) {
      error_ = Error{ErrorCode::kBadInput,
                     "field \"" + field + "\" " + why + "; probe the folder again", where_};
    }
  }

  const Json& child(const Json& parent, const char* key, const std::string& path) {
    static const Json kNothing = Json::object();
    if (good() && parent.is_object()) {
      const auto found = parent.find(key);
      if (found != parent.end()) {
        if (found->is_object()) return *found;
        refuse(path + key, "is not an object");
        return kNothing;
      }
    }
    refuse(path + key, "is missing");
    return kNothing;
  }

  double number(const Json& parent, const char* key, const std::string& path, double low,
                double high) {
    const auto found = parent.find(key);
    if (found == parent.end()) return refuse(path + key, "is missing"), low;
    return checked(*found, path + key, low, high);
  }

  std::int64_t integer(const Json& parent, const char* key, const std::string& path, double low,
                       double high) {
    return static_cast<std::int64_t>(number(parent, key, path, low, high));
  }

  bool flag(const Json& parent, const char* key, const std::string& path) {
    const auto found = parent.find(key);
    if (found == parent.end() || !found->is_boolean())
      return refuse(path + key, "is not true or false"), false;
    return found->get<bool>();
  }

  std::string text(const Json& parent, const char* key, const std::string& path) {
    const auto found = parent.find(key);
    if (found == parent.end() || !found->is_string())
      return refuse(path + key, "is not a text"), "";
    return found->get<std::string>();
  }

  double checked(const Json& value, const std::string& field, double low, double high) {
    if (!value.is_number()) return refuse(field, "is not a number"), low;
    const auto number = value.get<double>();
    if (!(number >= low)) return refuse(field, number < 0 ? "is negative" : "is too small"), low;
    if (!(number <= high)) return refuse(field, "is impossibly large"), low;
    return number;
  }

  Spread spread(const Json& parent, const char* key, const std::string& path) {
    const Json& json = child(parent, key, path);
    const std::string here = path + key + ".";
    Spread out;
    out.mean = number(json, "mean", here, 0, kMaxMs);
    out.median = number(json, "median", here, 0, kMaxMs);
    out.sd = number(json, "sd", here, 0, kMaxMs);
    out.p95 = number(json, "p95", here, 0, kMaxMs);
    if (good() && out.median > out.p95)
      refuse(path + key, "contradicts itself: its median exceeds its p95");
    return out;
  }

 private:
  std::string where_;
  std::optional<Error> error_;
};

void read_dataset(Reader& reader, const Json& root, DatasetFacts& out) {
  const Json& json = reader.child(root, "dataset", "");
  out.name = reader.text(json, "name", "dataset.");
  out.files = reader.integer(json, "files", "dataset.", 1, kMaxCount);
  out.files_exact = reader.flag(json, "files_exact", "dataset.");
  out.total_bytes = Bytes(reader.integer(json, "total_bytes", "dataset.", 1, kMaxCount));
  out.bytes_exact = reader.flag(json, "bytes_exact", "dataset.");
  out.mean_bytes = reader.number(json, "mean_bytes", "dataset.", 1, kMaxCount);
  out.mean_pixels = reader.number(json, "mean_pixels", "dataset.", 1, kMaxCount);
  // Empty and unreadable files count among `files`, so the product may exceed the total, not
  // undercut it.
  const double product = out.mean_bytes * static_cast<double>(out.files);
  if (reader.good() && product < 0.99 * static_cast<double>(out.total_bytes.count())) {
    reader.refuse("dataset.total_bytes", "contradicts dataset.files times dataset.mean_bytes");
  }
}

void read_measures(Reader& reader, const Json& root, Probe& out) {
  const Json& stages = reader.child(root, "stage_ms", "");
  double sum = 0;
  for (std::size_t s = 0; s < kStageCount; ++s) {
    const std::string name(stage_name(static_cast<Stage>(s)));
    out.stage_ms[s] = reader.spread(stages, name.c_str(), "stage_ms.");
    sum += out.stage_ms[s].mean;
  }
  out.sample_ms = reader.spread(root, "sample_ms", "");
  if (reader.good() && std::abs(sum - out.sample_ms.mean) > 0.01 * sum + 1e-6) {
    reader.refuse("sample_ms.mean", "contradicts the sum of the stages");
  }
  const Json& decode = reader.child(root, "decode_fit", "");
  out.decode.per_megapixel = reader.number(decode, "ms_per_megapixel", "decode_fit.", 0, kMaxMs);
  out.decode.per_megabyte = reader.number(decode, "ms_per_megabyte", "decode_fit.", 0, kMaxMs);
  out.decode.r2 = reader.number(decode, "r2", "decode_fit.", 0, 1);
  out.decode.progressive_share = reader.number(decode, "progressive_share", "decode_fit.", 0, 1);
  out.decode.progressive_ratio = reader.number(decode, "progressive_ratio", "decode_fit.", 0, 1e6);
  const Json& read = reader.child(root, "read", "");
  out.read.cold_measured = reader.flag(read, "cold_measured", "read.");
  out.read.cold_ms = reader.number(read, "cold_ms", "read.", 0, kMaxMs);
  out.read.cold_seek_ms = reader.number(read, "cold_seek_ms", "read.", 0, kMaxMs);
  out.read.cold_bandwidth = reader.number(read, "cold_bytes_per_s", "read.", 0, kMaxRate);
  out.read.cold_speedup = reader.number(read, "cold_speedup_of_8_readers", "read.", 0, 1000);
  out.read.warm_ms = reader.number(read, "warm_ms", "read.", 0, kMaxMs);
  out.read.resident_share = reader.number(read, "resident_share", "read.", 0, 1);
  const Json& parallel = reader.child(root, "parallel", "");
  out.parallel.threads =
      static_cast<int>(reader.integer(parallel, "threads", "parallel.", 1, 65536));
  out.parallel.samples_per_s_one =
      reader.number(parallel, "samples_per_s_one", "parallel.", 0, kMaxRate);
  out.parallel.samples_per_s_all =
      reader.number(parallel, "samples_per_s_all", "parallel.", 0, kMaxRate);
  out.parallel.efficiency = reader.number(parallel, "efficiency", "parallel.", 1e-3, 1);
  const Json& foreign = reader.child(root, "foreign_load", "");
  out.foreign.wall_per_cpu = reader.number(foreign, "wall_per_cpu", "foreign_load.", 1, 1e6);
  out.foreign.run_queue_share = reader.number(foreign, "run_queue_share", "foreign_load.", 0, 1);
  out.foreign.steal_share = reader.number(foreign, "steal_share", "foreign_load.", 0, 1);
  out.foreign.disturbed = reader.flag(foreign, "disturbed", "foreign_load.");
}

void read_samples(Reader& reader, const Json& root, std::vector<SampleRecord>& out) {
  const auto found = root.find("samples");
  if (found == root.end() || !found->is_array() || found->empty()) {
    return reader.refuse("samples", "is not a list with at least one picture");
  }
  if (found->size() > kMaxSamples) return reader.refuse("samples", "has more than a million rows");
  for (std::size_t i = 0; i < found->size() && reader.good(); ++i) {
    const Json& row = (*found)[i];
    const std::string field = "samples[" + std::to_string(i) + "]";
    if (!row.is_array() || row.size() != 4 + kStageCount) {
      return reader.refuse(field,
                           "is not a row of " + std::to_string(4 + kStageCount) + " numbers");
    }
    SampleRecord sample;
    sample.bytes = Bytes(static_cast<std::int64_t>(reader.checked(row[0], field, 1, kMaxCount)));
    sample.width = static_cast<int>(reader.checked(row[1], field, 1, kMaxSide));
    sample.height = static_cast<int>(reader.checked(row[2], field, 1, kMaxSide));
    const int flags = static_cast<int>(reader.checked(row[3], field, 0, 7));
    sample.progressive = (flags & 1) != 0;
    sample.grey = (flags & 2) != 0;
    sample.cmyk = (flags & 4) != 0;
    for (std::size_t s = 0; s < kStageCount; ++s) {
      sample.stage[s] = kMillisecond * (1e-6 * reader.checked(row[4 + s], field, 0, kMaxMs * 1e6));
    }
    out.push_back(sample);
  }
}

void read_diagnostics(Reader& reader, const Json& root, Diagnostics& out) {
  const auto found = root.find("diagnostics");
  if (found == root.end()) return;
  if (!found->is_array()) return reader.refuse("diagnostics", "is not a list");
  for (const Json& entry : *found) {
    if (!entry.is_object())
      return reader.refuse("diagnostics", "holds something that is not an object");
    const std::string severity = reader.text(entry, "severity", "diagnostics.");
    const std::string name = reader.text(entry, "name", "diagnostics.");
    const std::string advice = reader.text(entry, "advice", "diagnostics.");
    const std::int64_t count = reader.integer(entry, "count", "diagnostics.", 1, kMaxCount);
    if (!reader.good()) return;
    out.add(name, severity == "warning" ? Severity::kWarning : Severity::kNote, advice, count);
  }
}

void read_provenance(Reader& reader, const Json& root, ProbeProvenance& out) {
  const Json& json = reader.child(root, "provenance", "");
  out.stoker_version = reader.text(json, "stoker", "provenance.");
  out.date = reader.text(json, "date", "provenance.");
  out.cpu_model = reader.text(json, "cpu_model", "provenance.");
  out.cores = reader.number(json, "cores", "provenance.", 0, 65536);
  out.folder_hash = reader.text(json, "folder_hash", "provenance.");
  out.decoder = reader.text(json, "decoder", "provenance.");
}

/// Format and version, before anything else is believed.
Status check_head(const Json& root, const std::string& where) {
  if (!root.is_object() || !root.contains("format") || root["format"] != "stoker-probe") {
    return fail(ErrorCode::kBadInput,
                "is not a probe file; make one with: stoker probe DIR -o FILE", where);
  }
  const auto version = root.find("schema_version");
  if (version == root.end() || !version->is_array() || version->size() != 2 ||
      !(*version)[0].is_number_integer()) {
    return fail(ErrorCode::kBadInput,
                "field \"schema_version\" is not [major, minor]; probe the folder again", where);
  }
  if ((*version)[0] != kMajor) {
    return fail(ErrorCode::kTooNew,
                "is of probe format " + (*version)[0].dump() + ", this program reads " +
                    std::to_string(kMajor) + "; update stoker or probe the folder again",
                where);
  }
  return {};
}

}  // namespace

std::string probe_to_json(const Probe& probe) {
  const DatasetFacts& data = probe.dataset;
  Json root;
  root["format"] = "stoker-probe";
  root["schema_version"] = {kMajor, kMinor};
  const ProbeProvenance& from = probe.provenance;
  root["provenance"] = {{"stoker", from.stoker_version},   {"date", from.date},
                        {"cpu_model", from.cpu_model},     {"cores", from.cores},
                        {"folder_hash", from.folder_hash}, {"decoder", from.decoder}};
  root["dataset"] = {{"name", data.name},
                     {"files", data.files},
                     {"files_exact", data.files_exact},
                     {"total_bytes", data.total_bytes.count()},
                     {"bytes_exact", data.bytes_exact},
                     {"mean_bytes", data.mean_bytes},
                     {"mean_pixels", data.mean_pixels}};
  root["image_size"] = probe.image_size;
  for (std::size_t s = 0; s < kStageCount; ++s) {
    root["stage_ms"][std::string(stage_name(static_cast<Stage>(s)))] = to_json(probe.stage_ms[s]);
  }
  root["sample_ms"] = to_json(probe.sample_ms);
  root["decode_fit"] = {{"ms_per_megapixel", probe.decode.per_megapixel},
                        {"ms_per_megabyte", probe.decode.per_megabyte},
                        {"r2", probe.decode.r2},
                        {"progressive_share", probe.decode.progressive_share},
                        {"progressive_ratio", probe.decode.progressive_ratio}};
  root["read"] = {{"cold_measured", probe.read.cold_measured},
                  {"cold_ms", probe.read.cold_ms},
                  {"cold_seek_ms", probe.read.cold_seek_ms},
                  {"cold_bytes_per_s", probe.read.cold_bandwidth},
                  {"cold_speedup_of_8_readers", probe.read.cold_speedup},
                  {"warm_ms", probe.read.warm_ms},
                  {"resident_share", probe.read.resident_share}};
  root["parallel"] = {{"threads", probe.parallel.threads},
                      {"samples_per_s_one", probe.parallel.samples_per_s_one},
                      {"samples_per_s_all", probe.parallel.samples_per_s_all},
                      {"efficiency", probe.parallel.efficiency}};
  root["foreign_load"] = {{"wall_per_cpu", probe.foreign.wall_per_cpu},
                          {"run_queue_share", probe.foreign.run_queue_share},
                          {"steal_share", probe.foreign.steal_share},
                          {"disturbed", probe.foreign.disturbed}};
  root["diagnostics"] = Json::array();
  for (const Diagnostic& d : probe.diagnostics.all()) {
    root["diagnostics"].push_back(
        {{"name", d.name},
         {"severity", d.severity == Severity::kWarning ? "warning" : "note"},
         {"advice", d.advice},
         {"count", d.count}});
  }
  root["samples"] = Json::array();
  for (const SampleRecord& sample : probe.samples) root["samples"].push_back(to_json(sample));
  return root.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<Probe> parse_probe(std::string_view text, const std::string& where) {
  bool too_deep = false;
  const Json::parser_callback_t limit = [&](int depth, Json::parse_event_t, Json&) {
    too_deep = too_deep || depth > kMaxDepth;
    return !too_deep;
  };
  const Json root = Json::parse(text, limit, /*allow_exceptions=*/false);
  if (root.is_discarded()) {
    return fail(ErrorCode::kBadInput,
                "is cut short or damaged (not valid JSON); probe the folder again", where);
  }
  if (too_deep) return fail(ErrorCode::kBadInput, "is nested too deeply for a probe file", where);
  if (const Status head = check_head(root, where); !head) return tl::unexpected(head.error());
  Reader reader(where);
  Probe probe;
  read_provenance(reader, root, probe.provenance);
  read_dataset(reader, root, probe.dataset);
  probe.image_size = static_cast<int>(reader.integer(root, "image_size", "", 1, kMaxSide));
  read_measures(reader, root, probe);
  read_samples(reader, root, probe.samples);
  read_diagnostics(reader, root, probe.diagnostics);
  if (!reader.good()) return tl::unexpected(reader.error());
  return probe;
}

Status write_probe(const std::filesystem::path& path, const Probe& probe) {
  return write_file(path, probe_to_json(probe));
}

Result<Probe> read_probe(const std::filesystem::path& path) {
  const Result<std::string> text = read_file(path, kFileLimit);
  if (!text) return tl::unexpected(text.error());
  return parse_probe(*text, path.string());
}

}  // namespace stoker
