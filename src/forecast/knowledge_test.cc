#include "forecast/knowledge.h"

#include <gtest/gtest.h>

#include <string>

namespace stoker {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

std::string file_with(const std::string& below, const std::string& above,
                      const std::string& version = "3", const std::string& need = "") {
  return R"({"schema_version": )" + version + R"(, "bands": [{"case": "default", "below": )" +
         below + R"(, "above": )" + above + (need.empty() ? "" : R"(, "need": )" + need) +
         R"(, "rows": 7, "basis": "error of 7 measured peaks"}]})";
}

constexpr const char* kGood = R"({"share": 0.02, "bytes": 104857600, "least_bytes": 0})";

TEST(Reach, IsAShareAndBytesButNeverLessThanTheLeast) {
  const Reach reach{0.2, Bytes(-300 * kMiB), Bytes(50 * kMiB)};
  EXPECT_DOUBLE_EQ(reach.at(Bytes(10000 * kMiB)), 0.17);
  EXPECT_DOUBLE_EQ(reach.at(Bytes(1600 * kMiB)), 50.0 / 1600);  // 20 MiB by the rule
}

TEST(MemoryErrorCase, NoBandReachesBelowNothing) {
  const MemoryErrorCase wide{"x", {0.5, Bytes(1000 * kMiB), {}}, {0, {}, {}}, 1, "", {}};
  EXPECT_DOUBLE_EQ(wide.band_at(Bytes(1000 * kMiB)).below, 1);
  EXPECT_DOUBLE_EQ(wide.band_at(Bytes(4000 * kMiB)).below, 0.75);
}

TEST(ParseMemoryCases, ReadsWhatShips) {
  const auto cases = parse_memory_cases(
      file_with(kGood, R"({"share": 0.2, "bytes": -314572800, "least_bytes": 52428800})"), "f");
  ASSERT_TRUE(cases) << cases.error().text();
  ASSERT_EQ(cases->size(), 1u);
  EXPECT_EQ(cases->front().rows, 7);
  EXPECT_DOUBLE_EQ(cases->front().band_at(Bytes(10000 * kMiB)).below, 0.03);
  EXPECT_DOUBLE_EQ(cases->front().band_at(Bytes(10000 * kMiB)).above, 0.17);
}

TEST(MemoryErrorCase, ANeedGrowsWithTheLargestWorkspace) {
  const auto cases = parse_memory_cases(
      file_with(kGood, kGood, "3",
                R"({"share": 0.04, "bytes": -62914560, "least_bytes": 20971520, "workspaces": 2})"),
      "f");
  ASSERT_TRUE(cases) << cases.error().text();
  const MemoryErrorCase& error = cases->front();
  EXPECT_DOUBLE_EQ(error.need_above(Bytes(10000 * kMiB), 0), 0.04 - 0.006);
  EXPECT_DOUBLE_EQ(error.need_above(Bytes(10000 * kMiB), 0.03), 0.04 - 0.006 + 0.06);
  EXPECT_DOUBLE_EQ(error.need_above(Bytes(2000 * kMiB), 0), 0.01);
}

TEST(MemoryErrorCase, WithoutANeedOfItsOwnTheUpperSideOfTheBandIsIt) {
  const auto cases = parse_memory_cases(file_with(kGood, kGood), "f");
  ASSERT_TRUE(cases) << cases.error().text();
  const Bytes peak(10000 * kMiB);
  EXPECT_EQ(cases->front().need_above(peak, 0.5), cases->front().band_at(peak).above);
}

TEST(ParseMemoryCases, RefusesDamage) {
  const auto refused = [](const std::string& text) { return !parse_memory_cases(text, "f"); };
  EXPECT_TRUE(refused(""));
  EXPECT_TRUE(refused("[]"));
  EXPECT_TRUE(refused(R"({"schema_version": 3})"));
  EXPECT_TRUE(refused(R"({"schema_version": 3, "bands": [1]})"));
  EXPECT_TRUE(refused(R"({"schema_version": 3, "bands": [{"case": 3}]})"));
  EXPECT_TRUE(refused(file_with(kGood, kGood, "2")));
  EXPECT_TRUE(refused(file_with(kGood, kGood, "3", "1")));
  EXPECT_TRUE(refused(file_with(kGood, kGood, "3", kGood)));  // says nothing of workspaces
  EXPECT_TRUE(refused(file_with(
      kGood, kGood, "3", R"({"share": 0, "bytes": 0, "least_bytes": 0, "workspaces": -1})")));
  EXPECT_TRUE(refused(file_with(kGood, "0.1")));
  EXPECT_TRUE(refused(file_with(kGood, R"({"share": 0.1, "bytes": 0})")));
  EXPECT_TRUE(refused(file_with(R"({"share": -0.1, "bytes": 0, "least_bytes": 0})", kGood)));
  EXPECT_TRUE(refused(file_with(R"({"share": 1e9, "bytes": 0, "least_bytes": 0})", kGood)));
  EXPECT_TRUE(refused(file_with(R"({"share": 0.1, "bytes": 0, "least_bytes": -1})", kGood)));
  EXPECT_TRUE(refused(file_with(R"({"share": 0.1, "bytes": 0.5, "least_bytes": 0})", kGood)));
  EXPECT_TRUE(refused(file_with(kGood, R"({"share": 0.1, "bytes": 9e18, "least_bytes": 0})")));
  EXPECT_FALSE(refused(file_with(kGood, kGood)));
}

}  // namespace
}  // namespace stoker
