#include "trace/span_set.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(SpanSet, JoinsWhatOverlapsOrTouches) {
  const SpanSet set({{30, 40}, {0, 10}, {10, 12}, {5, 8}, {50, 50}, {60, 55}});
  ASSERT_EQ(set.spans().size(), 2u);
  EXPECT_EQ(set.length_within({10, 33}), 5);
  EXPECT_EQ(set.length_within({12, 30}), 0);
  EXPECT_EQ(set.length_within({50, 5}), 0);
  EXPECT_EQ(set.spans()[0].start, 0);
  EXPECT_EQ(set.spans()[0].end, 12);
  EXPECT_EQ(set.length(), 22);
}

/// Moment by moment, against the definition.
TEST(SpanSet, OperationsAreThoseOfSets) {
  constexpr std::int64_t kLast = 64;
  std::uint64_t state = 7;
  const auto draw = [&](std::int64_t below) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::int64_t>((state >> 33) % static_cast<std::uint64_t>(below));
  };
  const auto make = [&] {
    std::vector<TimeSpan> spans;
    for (std::int64_t i = draw(9); i > 0; --i) {
      const std::int64_t start = draw(kLast);
      spans.push_back({start, start + draw(9)});
    }
    return SpanSet(spans);
  };
  const auto holds = [](const SpanSet& set, std::int64_t at) {
    for (const TimeSpan& s : set.spans())
      if (s.start <= at && at < s.end) return true;
    return false;
  };
  for (int round = 0; round < 300; ++round) {
    const SpanSet a = make(), b = make();
    const SpanSet joined = a.joined(b), shared = a.shared(b), without = a.without(b);
    for (std::int64_t at = 0; at < kLast + 10; ++at) {
      ASSERT_EQ(a.holds(at), holds(a, at));
      ASSERT_EQ(holds(joined, at), holds(a, at) || holds(b, at));
      ASSERT_EQ(holds(shared, at), holds(a, at) && holds(b, at));
      ASSERT_EQ(holds(without, at), holds(a, at) && !holds(b, at));
    }
  }
}

}  // namespace
}  // namespace stoker
