#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stoker {

/// A stretch of time in nanoseconds, its end not within.
struct TimeSpan {
  std::int64_t start = 0, end = 0;

  [[nodiscard]] std::int64_t length() const { return end - start; }
};

/// A set of moments: stretches in order that neither overlap nor touch. Values; every operation
/// takes time linear in the stretches where it says nothing else.
class SpanSet {
 public:
  SpanSet() = default;
  /// Stretches in any order, overlapping as they may; empty ones do not count.
  explicit SpanSet(std::vector<TimeSpan> spans);

  [[nodiscard]] std::span<const TimeSpan> spans() const { return spans_; }
  [[nodiscard]] bool empty() const { return spans_.empty(); }
  [[nodiscard]] std::int64_t length() const;
  /// The length of what lies within `window`; logarithmic, then linear in what does.
  [[nodiscard]] std::int64_t length_within(TimeSpan window) const;

  /// In logarithmic time.
  [[nodiscard]] bool holds(std::int64_t moment) const;

  [[nodiscard]] SpanSet joined(const SpanSet& other) const;   ///< in either
  [[nodiscard]] SpanSet shared(const SpanSet& other) const;   ///< in both
  [[nodiscard]] SpanSet without(const SpanSet& other) const;  ///< in this alone

 private:
  std::vector<TimeSpan> spans_;
};

}  // namespace stoker
