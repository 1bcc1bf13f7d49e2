#include "observe/told/told_steps.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/saturating.h"
#include "json/text.h"
#include "json/value.h"

namespace stoker {
namespace {

constexpr double kNanosASecond = 1e9;
/// A line longer than this is none of ours.
constexpr std::size_t kLongestLine = 1 << 16;
/// Steps that warm up: the first ten, of fewer than fifty a fifth (`stoker observation` counts so).
constexpr std::int64_t kWarmUp = 10, kOneIn = 5;
constexpr int kMaxDepth = 8;

/// Columns of a row that are read; the others are passed over.
enum Column : int { kOther, kStart, kGap, kTotal, kWait, kSamples, kKind, kEnd };

int column_of(const std::string& name) {
  if (name == "start_ns") return kStart;
  if (name == "gap_ns") return kGap;
  if (name == "total_ns") return kTotal;
  if (name == "wait_ns") return kWait;
  if (name == "samples") return kSamples;
  if (name == "kind") return kKind;
  return name == "end" ? kEnd : kOther;
}

json::Value parsed(std::string_view text) {
  auto value = json::parse_document(text, {}, {"a line", {}, kMaxDepth});
  return value ? std::move(*value) : json::Value();
}

double number(const json::Value& object, const char* key, double otherwise) {
  const json::Value* found = object.find(key);
  return found != nullptr && found->is_number() ? found->as_double() : otherwise;
}

std::optional<std::int64_t> whole(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

void add_whole(std::int64_t& sum, std::int64_t more) { sum = saturating_sum(sum, more); }

}  // namespace

void ToldSteps::take(std::string_view bytes) {
  while (!bytes.empty() && !foreign_) {
    const std::size_t end = bytes.find('\n');
    if (end == std::string_view::npos) {
      rest_ += bytes;
      if (rest_.size() > kLongestLine) {
        foreign_ = foreign_ || !known();
        rest_.clear();
        skipping_ = true;
      }
      return;
    }
    rest_ += bytes.substr(0, end);
    bytes.remove_prefix(end + 1);
    line(rest_);
    rest_.clear();
  }
}

void ToldSteps::skip() {
  rest_.clear();
  block_.clear();
  block_rows_ = 0;
  skipping_ = true;
}

void ToldSteps::line(std::string_view text) {
  if (kind_ == ToldKind::kNothing) return header(text);
  if (kind_ == ToldKind::kReports) return report(text);
  if (text.starts_with('[')) {
    if (!skipping_) row(text);
    return;
  }
  if (!text.starts_with("{\"block\"")) return;
  end_block();
  const json::Value block = parsed(text);
  const json::Value* inner = block.find("rows");
  if (inner == nullptr) return;
  block_clock_ = saturating_whole(number(block, "clock_ns", 0));
  block_rows_ = static_cast<std::size_t>(saturating_whole(std::max(0.0, number(block, "rows", 0))));
  skipping_ = false;
}

void ToldSteps::header(std::string_view text) {
  const json::Value first = parsed(text);
  const json::Value* format = first.find("format");
  const json::Value* columns = first.find("columns");
  if (format != nullptr && format->as_string() == "stoker-observation" && columns != nullptr) {
    kind_ = ToldKind::kObservation;
    for (const json::Value& name : *columns)
      columns_.push_back(name.is_string() ? column_of(name.as_string()) : kOther);
    return;
  }
  if (number(first, "monotonic", -1) >= 0) {
    kind_ = ToldKind::kReports;
    return report(text);
  }
  foreign_ = true;
}

void ToldSteps::row(std::string_view text) {
  if (!text.ends_with(']')) return;
  text = text.substr(1, text.size() - 2);
  Row found;
  bool good = true;
  std::size_t at = 0;
  for (const int column : columns_) {
    if (at > text.size()) return;
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string_view value = text.substr(at, end - at);
    at = end + 1;
    if (column == kOther) continue;
    if (column == kKind) {
      found.train = value == "\"train\"";
    } else if (column == kEnd) {
      found.ended = value == "\"ok\"" || value == "\"skipped\"";
    } else {
      const auto count = whole(value);
      good = good && count && *count >= 0;
      if (!good) return;
      if (column == kStart) found.start = *count;
      if (column == kGap) add_whole(found.whole, *count);
      if (column == kTotal) add_whole(found.whole, *count), found.total = *count;
      if (column == kWait) found.wait = *count;
      if (column == kSamples) found.samples = *count;
    }
  }
  block_.push_back(found);
  if (block_.size() >= block_rows_) end_block();
}

/// A block is written right after its last step: that tells where its steps lie on the clock.
void ToldSteps::end_block() {
  if (!block_.empty()) {
    const Row& last = block_.back();
    const std::int64_t zero =
        saturating_difference(block_clock_, saturating_sum(last.start, last.total));
    for (const Row& row : block_) {
      if (saturating_sum(zero, row.start) >= since_ns_) count(row);
    }
  }
  block_.clear();
  block_rows_ = 0;
}

void ToldSteps::count(const Row& row) {
  if (!row.train) {
    sum_.validation_steps += 1;
    add_whole(sum_.validation_ns, row.whole);
    return;
  }
  if (!row.ended) return;
  from_first_ = from_first_ || (trained_ == 0 && row.start < kNanosASecond);
  ++trained_;
  if (from_first_ && static_cast<std::int64_t>(first_.size()) < kWarmUp) first_.push_back(row);
  sum_.steps += 1;
  add_whole(sum_.ns, row.whole);
  add_whole(sum_.wait_ns, row.wait);
  add_whole(sum_.samples, row.samples);
}

void ToldSteps::report(std::string_view text) {
  const json::Value one = parsed(text);
  const double at = number(one, "monotonic", -1), step = number(one, "step", -1);
  if (at < 0 || at * kNanosASecond < static_cast<double>(since_ns_) || step < 0) return;
  if (report_from_ < 0) {
    report_from_ = at;
    report_step_ = saturating_whole(step);
    return;
  }
  sum_.steps = std::max<std::int64_t>(0, saturating_whole(step) - report_step_);
  sum_.ns = saturating_whole((at - report_from_) * kNanosASecond);
  add_whole(sum_.samples, saturating_whole(std::max(0.0, number(one, "samples", 0))));
}

Told ToldSteps::told() const {
  Told out = sum_;
  out.kind = static_cast<std::int64_t>(kind_);
  const std::int64_t warm = std::min(kWarmUp, (trained_ + kOneIn - 1) / kOneIn);
  for (std::int64_t i = 0; i < std::min<std::int64_t>(warm, std::ssize(first_)); ++i) {
    const Row& row = first_[static_cast<std::size_t>(i)];
    out.steps -= 1;
    out.ns -= row.whole;
    out.wait_ns -= row.wait;
    out.samples -= row.samples;
  }
  return out;
}

}  // namespace stoker
