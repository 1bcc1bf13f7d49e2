#include "tune/curve/curve_file.h"

#include <algorithm>
#include <cmath>
#include <regex>
#include <set>
#include <string>
#include <string_view>

#include "base/text.h"
#include "json/text.h"
#include "json/value.h"
#include "study/runner/report_tail.h"

namespace stoker::tune {
namespace {

constexpr int kReportDepth = 8;
constexpr std::size_t kMostMarks = 1'000'000, kMostNames = 8;
constexpr std::string_view kNoMetrics[] = {"monotonic", "step", "epoch", "samples"};
/// A loss scaler's first steps overflow once or twice in a job that is well.
constexpr int kNotFiniteInARow = 3;

/// A number, NaN for what is none that is finite; nothing for a text that is no number at all.
std::optional<double> number_in(const json::Value& value) {
  if (value.is_number()) return value.as_double();
  if (!value.is_string()) return std::nullopt;
  const std::string text = simplified(value.as_string());
  if (text == "nan" || text == "inf" || text == "infinity") return std::nan("");
  return std::nullopt;
}

std::optional<double> decimal(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str()) return std::nullopt;
  return std::isfinite(value) ? value : std::nan("");
}

}  // namespace

struct CurveReader::Parts {
  Parts(const study::TrialFiles& files, const study::Metric& m, const Objective& o)
      : metric(m), objective(o), reports(files.reports()), output(files.output()) {
    if (!metric.pattern.empty()) pattern = std::regex(metric.pattern, std::regex::optimize);
  }

  void report(std::string_view line) {
    const auto parsed = json::parse(line, kReportDepth);
    if (!parsed || !parsed->is_object()) return;
    const double clock = parsed->value("monotonic", 0.0);
    if (names.size() < kMostNames) {
      for (const auto& [name, value] : parsed->items())
        if (std::ranges::find(kNoMetrics, name) == std::end(kNoMetrics)) names.insert(name);
    }
    if (!first_clock) first_clock = clock;
    const double seconds = clock - *first_clock;
    const json::Value& given = (*parsed)["step"].is_null() ? (*parsed)["epoch"] : (*parsed)["step"];
    const double at = place(given.is_number() ? std::optional(given.as_double()) : std::nullopt);
    if (curve.marks.size() < kMostMarks)
      curve.marks.push_back({at, seconds, parsed->value("samples", 0.0)});
    if (metric.pattern.empty()) step = at;
    if (const auto loss = number_in((*parsed)["loss"]); loss && metric.name != "loss")
      judge(*loss, loss_not_finite);
    if (!metric.pattern.empty()) return;
    if (const auto value = number_in((*parsed)[metric.name])) add(*value, seconds);
  }

  /// Steps that begin anew with each epoch are counted on.
  double place(std::optional<double> told) {
    if (!told) return ++reported;
    if (*told < told_last) before += told_last + 1;
    told_last = *told;
    reported = before + *told;
    return reported;
  }

  void line(std::string_view text) {
    std::match_results<std::string_view::const_iterator> match;
    try {
      if (!std::regex_search(text.begin(), text.end(), match, pattern)) return;
    } catch (const std::regex_error&) {
      return;  // a line on which the pattern takes too long to decide
    }
    if (match.size() < 2 || !match[1].matched) return;
    const auto value = decimal(match[1].str());
    if (!value) return;
    step += 1;
    add(*value, curve.marks.empty() ? 0 : curve.marks.back().seconds);
  }

  void judge(double value, int& in_a_row) {
    in_a_row = std::isfinite(value) ? 0 : in_a_row + 1;
    if (in_a_row == kNotFiniteInARow && !curve.diverged_at) curve.diverged_at = step;
  }

  void add(double value, double seconds) {
    judge(value, metric_not_finite);
    if (!std::isfinite(value)) return;
    curve.points.push_back({step, seconds, objective.score(value)});
  }

  study::Metric metric;
  Objective objective;
  std::set<std::string> names;
  study::ReportTail reports;
  study::OutputTail output;
  std::regex pattern;
  Curve curve;
  std::optional<double> first_clock;
  double step = 0;  ///< of the metric
  double reported = 0, told_last = 0, before = 0;
  int loss_not_finite = 0, metric_not_finite = 0;
};

CurveReader::CurveReader(const study::TrialFiles& files, const study::Metric& metric,
                         const Objective& objective)
    : parts_(std::make_unique<Parts>(files, metric, objective)) {}
CurveReader::~CurveReader() = default;
CurveReader::CurveReader(CurveReader&&) noexcept = default;

const Curve& CurveReader::read() {
  parts_->reports.read([this](std::string_view line) { parts_->report(line); });
  if (!parts_->metric.pattern.empty())
    parts_->output.read([this](std::string_view line) { parts_->line(line); });
  return parts_->curve;
}

std::string CurveReader::told() const {
  std::string all;
  for (const std::string& name : parts_->names) all += (all.empty() ? "" : ", ") + name;
  return all;
}

}  // namespace stoker::tune
