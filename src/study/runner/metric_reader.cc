#include "study/runner/metric_reader.h"

#include <algorithm>
#include <cmath>
#include <regex>

#include "json/text.h"
#include "json/value.h"
#include "study/definition/study_words.h"
#include "system/system_files.h"

namespace stoker::study {

/// The values of one metric. Of a long series every second point is dropped whenever it is full.
struct MetricReader::Series {
  Metric rule;
  std::vector<MetricPoint> points;
  std::size_t stride = 1, count = 0;
  std::optional<double> first, last, largest, smallest;
  double sum = 0;
  std::size_t finite = 0;
  std::string not_a_number,
      not_finite;  ///< the latest such value, empty when a good one came since
};

struct MetricReader::Pattern {
  std::string metric;
  std::regex expression;
  std::string literal;  ///< with which the pattern begins: a line without it cannot match
};

namespace {

constexpr std::size_t kMostMetrics = 64;
constexpr std::size_t kMostSamples = 100'000;
constexpr int kReportDepth = 8;

/// The text that a pattern begins with, up to the first sign that means something.
std::string literal_of(const std::string& pattern) {
  std::size_t end = pattern.find_first_of("\\^$.|?*+()[]{}");
  if (end == std::string::npos) return pattern;
  // A sign that repeats or an alternative makes what stands before it optional.
  if (pattern.find('|') != std::string::npos) return {};
  if (end > 0 && (pattern[end] == '?' || pattern[end] == '*' || pattern[end] == '{')) --end;
  return pattern.substr(0, end);
}

/// A number as frameworks print it: nan and inf are numbers that are not finite.
std::optional<double> reported_number(std::string_view text) {
  if (const auto value = decimal_number(text)) return value;
  const std::string lower = lower_case(trimmed(text));
  if (lower == "nan" || lower == "-nan") return std::nan("");
  if (lower == "inf" || lower == "infinity" || lower == "+inf") return INFINITY;
  if (lower == "-inf" || lower == "-infinity") return -INFINITY;
  return std::nullopt;
}

std::string clean(std::string_view text) {
  std::string result(text.substr(0, 60));
  for (char& c : result) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return result;
}

/// Names of a report that place it rather than measure something.
bool places(std::string_view key) {
  return key == "step" || key == "samples" || key == "monotonic" || key == "epoch";
}

std::string text_of(const json::Value& value) {
  return value.is_string() ? value.as_string() : value.dump();
}

}  // namespace

MetricReader::MetricReader(std::vector<Metric> metrics) : metrics_(std::move(metrics)) {
  for (const Metric& metric : metrics_) {
    series(metric.name).rule = metric;
    if (metric.pattern.empty()) continue;
    try {
      patterns_.push_back({metric.name, std::regex(metric.pattern, std::regex::optimize),
                           literal_of(metric.pattern)});
    } catch (const std::regex_error&) {
      // check_study refused it; a trial of an older study goes without.
    }
  }
}

MetricReader::~MetricReader() = default;
MetricReader::MetricReader(MetricReader&&) noexcept = default;

MetricReader::Series& MetricReader::series(const std::string& name) {
  auto& found = series_[name];
  if (found == nullptr) {
    found = std::make_unique<Series>();
    found->rule.name = name;
    found->rule.needed = false;
  }
  return *found;
}

void MetricReader::add(Series& s, std::optional<double> step, double seconds,
                       std::string_view text) {
  const auto value = reported_number(text);
  if (!value) {
    s.not_a_number = clean(text);
    return;
  }
  s.not_a_number.clear();
  if (!std::isfinite(*value)) {
    s.not_finite = clean(text);
    return;
  }
  s.not_finite.clear();
  if (!s.first) s.first = *value;
  s.last = *value;
  s.largest = std::max(s.largest.value_or(*value), *value);
  s.smallest = std::min(s.smallest.value_or(*value), *value);
  s.sum += *value;
  ++s.finite;
  if (s.count++ % s.stride != 0) return;
  s.points.push_back({s.rule.name, step, std::max(seconds, 0.0), *value});
  if (s.points.size() < kMostPoints) return;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < s.points.size(); i += 2) {
    if (kept != i) s.points[kept] = std::move(s.points[i]);
    ++kept;
  }
  s.points.resize(kept);
  s.stride *= 2;
}

void MetricReader::output(std::string_view line, double seconds) {
  for (const Pattern& pattern : patterns_) {
    if (line.find(pattern.literal) == std::string_view::npos) continue;
    std::match_results<std::string_view::const_iterator> match;
    try {
      if (!std::regex_search(line.begin(), line.end(), match, pattern.expression)) continue;
    } catch (const std::regex_error&) {
      continue;  // a line on which the pattern takes too long to decide
    }
    if (match.size() > 1 && match[1].matched)
      add(series(pattern.metric), std::nullopt, seconds, match[1].str());
  }
}

void MetricReader::report(std::string_view line, double started) {
  const auto parsed = json::parse(line, kReportDepth);
  if (!parsed || parsed->kind() != json::Value::Kind::kObject) {
    ++bad_reports_;
    return;
  }
  const double seconds = parsed->value("monotonic", started) - started;
  const json::Value& step = (*parsed)["step"].is_null() ? (*parsed)["epoch"] : (*parsed)["step"];
  if (const double samples = parsed->value("samples", 0.0);
      samples > 0 && samples_.size() < kMostSamples)
    samples_.emplace_back(seconds, samples);
  for (const auto& [key, value] : parsed->items()) {
    if (places(key) || value.is_null()) continue;
    if (series_.size() >= kMostMetrics && series_.find(key) == series_.end()) continue;
    add(series(key), step.is_number() ? std::optional(step.as_double()) : std::nullopt, seconds,
        text_of(value));
  }
}

std::map<std::string, double> MetricReader::values() const {
  std::map<std::string, double> all;
  for (const auto& [name, s] : series_) {
    if (s->finite == 0) continue;
    const Goal goal = s->rule.goal == Goal::kUnknown ? usual_goal(name) : s->rule.goal;
    switch (s->rule.take) {
      case Take::kFirst:
        all[name] = *s->first;
        break;
      case Take::kMean:
        all[name] = s->sum / static_cast<double>(s->finite);
        break;
      case Take::kLargest:
        all[name] = *s->largest;
        break;
      case Take::kSmallest:
        all[name] = *s->smallest;
        break;
      case Take::kBest:
        all[name] = goal == Goal::kLeast ? *s->smallest : *s->largest;
        break;
      case Take::kLast:
        // The last finite value of a series that ended in NaN would tell of a run that went well.
        if (s->not_finite.empty()) all[name] = *s->last;
        break;
    }
  }
  if (const auto rate = samples_per_second()) all.emplace("samples_per_s", *rate);
  return all;
}

std::vector<MetricPoint> MetricReader::points() const {
  std::vector<MetricPoint> all;
  for (const auto& [name, s] : series_) all.insert(all.end(), s->points.begin(), s->points.end());
  return all;
}

std::optional<double> MetricReader::samples_per_second() const { return steady_rate(samples_); }

std::optional<MetricReader::Problem> MetricReader::problem() const {
  for (const Metric& metric : metrics_) {
    if (!metric.needed) continue;
    if (metric.name == "samples_per_s" && samples_per_second()) continue;
    const Series& s = *series_.at(metric.name);
    if (!s.not_finite.empty())
      return Problem{"metric_not_finite", metric.name + " is " + s.not_finite};
    if (!s.not_a_number.empty())
      return Problem{"metric_not_a_number",
                     metric.name + " is \"" + s.not_a_number + "\", which is no number"};
    if (s.finite > 0) continue;
    const std::string why =
        metric.pattern.empty()
            ? "was never reported: stoker.report(" + metric.name + "=...)"
            : "never came: no line of the output matches \"" + metric.pattern + "\"";
    return Problem{"metric_absent", metric.name + " " + why};
  }
  return std::nullopt;
}

std::optional<std::pair<double, double>> MetricReader::steady_window() const {
  const auto from = steady_from(samples_);
  if (!from) return std::nullopt;
  return std::pair{samples_[*from].first, samples_.back().first};
}

std::optional<std::size_t> steady_from(const std::vector<std::pair<double, double>>& samples) {
  if (samples.size() < 2) return std::nullopt;
  std::vector<double> rates;
  for (std::size_t i = 1; i < samples.size(); ++i) {
    const double seconds = samples[i].first - samples[i - 1].first;
    rates.push_back(seconds > 0 ? samples[i].second / seconds : 0);
  }
  std::vector<double> sorted = rates;
  std::ranges::nth_element(sorted, sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2));
  const double median = sorted[sorted.size() / 2];
  std::size_t from = 0;
  while (from + 1 < rates.size() && rates[from] < median / 2) ++from;
  return from;
}

std::optional<double> steady_rate(const std::vector<std::pair<double, double>>& samples) {
  const auto from = steady_from(samples);
  if (!from) return std::nullopt;
  double total = 0;
  for (std::size_t i = *from + 1; i < samples.size(); ++i) total += samples[i].second;
  const double seconds = samples.back().first - samples[*from].first;
  if (seconds <= 0) return std::nullopt;
  return total / seconds;
}

}  // namespace stoker::study
