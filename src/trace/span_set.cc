#include "trace/span_set.h"

#include <algorithm>

namespace stoker {

SpanSet::SpanSet(std::vector<TimeSpan> spans) {
  std::erase_if(spans, [](const TimeSpan& s) { return s.end <= s.start; });
  std::ranges::sort(spans, {}, &TimeSpan::start);
  for (const TimeSpan& span : spans) {
    if (!spans_.empty() && span.start <= spans_.back().end)
      spans_.back().end = std::max(spans_.back().end, span.end);
    else spans_.push_back(span);
  }
}

std::int64_t SpanSet::length() const {
  std::int64_t length = 0;
  for (const TimeSpan& span : spans_) length += span.length();
  return length;
}

std::int64_t SpanSet::length_within(TimeSpan window) const {
  std::int64_t length = 0;
  auto at = std::ranges::upper_bound(spans_, window.start, {}, &TimeSpan::end);
  for (; at != spans_.end() && at->start < window.end; ++at)
    length += std::min(at->end, window.end) - std::max(at->start, window.start);
  return std::max<std::int64_t>(0, length);
}

bool SpanSet::holds(std::int64_t moment) const {
  const auto next = std::ranges::upper_bound(spans_, moment, {}, &TimeSpan::start);
  return next != spans_.begin() && std::prev(next)->end > moment;
}

SpanSet SpanSet::joined(const SpanSet& other) const {
  std::vector<TimeSpan> all = spans_;
  all.insert(all.end(), other.spans_.begin(), other.spans_.end());
  return SpanSet(std::move(all));
}

SpanSet SpanSet::shared(const SpanSet& other) const {
  SpanSet both;
  std::size_t at = 0;
  for (const TimeSpan& span : spans_) {
    while (at < other.spans_.size() && other.spans_[at].end <= span.start) ++at;
    for (std::size_t i = at; i < other.spans_.size() && other.spans_[i].start < span.end; ++i)
      both.spans_.push_back(
          {std::max(span.start, other.spans_[i].start), std::min(span.end, other.spans_[i].end)});
  }
  return both;
}

SpanSet SpanSet::without(const SpanSet& other) const {
  SpanSet rest;
  std::size_t at = 0;
  for (const TimeSpan& span : spans_) {
    std::int64_t from = span.start;
    while (at < other.spans_.size() && other.spans_[at].end <= span.start) ++at;
    for (std::size_t i = at; i < other.spans_.size() && other.spans_[i].start < span.end; ++i) {
      if (other.spans_[i].start > from) rest.spans_.push_back({from, other.spans_[i].start});
      from = std::max(from, other.spans_[i].end);
    }
    if (from < span.end) rest.spans_.push_back({from, span.end});
  }
  return rest;
}

}  // namespace stoker
