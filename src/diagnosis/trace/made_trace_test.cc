// A trace may claim anything: it has a diagnosis all the same, and its shares are shares.

#include <gtest/gtest.h>

#include "base/random.h"
#include "diagnosis/trace/test_made_trace.h"

namespace stoker {
namespace {

TEST(MadeTrace, AnyEventsHaveADiagnosis) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    Random random(seed);
    std::vector<std::uint8_t> bytes(100 + random.below(1500));
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random.below(256));
    EXPECT_EQ(made_trace::fault_of(bytes.data(), bytes.size()), "") << seed;
  }
}

}  // namespace
}  // namespace stoker
