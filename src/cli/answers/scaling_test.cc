#include "cli/answers/scaling.h"

#include <gtest/gtest.h>

namespace stoker::cli {
namespace {

TEST(Network, GigabitsASecondBecomeBytes) {
  struct Case {
    const char* text;
    double gigabytes;  ///< a second, of a node
  };
  for (const Case& c :
       {Case{"100G", 12.5}, Case{"100g", 12.5}, Case{"10Gbit/s", 1.25}, Case{"25 Gb/s", 3.125},
        Case{"1.5Gbps", 0.1875}, Case{"4x100G", 50}, Case{"8x400Gbit", 400}, Case{"12GB/s", 12},
        Case{"2x25GB", 50}, Case{"edr", 12.5}, Case{"HDR", 25}, Case{"ndr", 50}, Case{"xdr", 100},
        Case{"fdr", 7}, Case{"2xNDR", 100}, Case{"1x10G", 1.25}}) {
    const auto rate = parse_network(c.text);
    ASSERT_TRUE(rate) << c.text << ": " << rate.error().text();
    EXPECT_DOUBLE_EQ(*rate, c.gigabytes * 1e9) << c.text;
  }
}

TEST(Network, WhatIsNoneIsRefusedWithTheForms) {
  for (const char* text : {"", "fast", "100", "100M", "G", "x100G", "axb", "100GG", "100Gx2"}) {
    const auto rate = parse_network(text);
    ASSERT_FALSE(rate) << text << " became " << *rate;
    EXPECT_NE(rate.error().text().find("4x100G"), std::string::npos) << rate.error().text();
    EXPECT_NE(rate.error().text().find("--network"), std::string::npos) << rate.error().text();
  }
  for (const char* text : {"0G", "-100G", "0x100G", "1e9G", "1000x1000G"}) {
    const auto rate = parse_network(text);
    ASSERT_FALSE(rate) << text << " became " << *rate;
    EXPECT_NE(rate.error().text().find("above 0"), std::string::npos) << rate.error().text();
  }
}

TEST(ScalingCounts, ARangeIsDoubledAndKeepsItsEnd) {
  const auto counts = [](const char* text) { return scaling_counts(text).value(); };
  EXPECT_EQ(counts(""), (std::vector<int>{1}));
  EXPECT_EQ(counts("1..64"), (std::vector<int>{1, 2, 4, 8, 16, 32, 64}));
  EXPECT_EQ(counts("1..12"), (std::vector<int>{1, 2, 4, 8, 12}));
  EXPECT_EQ(counts("3..24"), (std::vector<int>{3, 6, 12, 24}));
  EXPECT_EQ(counts("4..4"), (std::vector<int>{4}));
  EXPECT_EQ(counts("1,3,5"), (std::vector<int>{1, 3, 5}));
  EXPECT_EQ(counts("8"), (std::vector<int>{8}));
}

TEST(ScalingCounts, WhatIsNoCountIsRefused) {
  for (const char* text : {"0", "-1", "8..1", "1..", "..8", "a", "1,,2"})
    EXPECT_FALSE(scaling_counts(text)) << text;
}

TEST(Scaling, SettingsOfATableAreRefusedForOneNumber) {
  RunOptions run;
  ScalingOptions options;
  EXPECT_FALSE(wants_scaling(run, options));
  EXPECT_EQ(network_of_one(run, options).value(), 0);
  options.gpus_per_node = 4;
  EXPECT_NE(network_of_one(run, options).error().text().find("--gpus 1..64"), std::string::npos);
  run.gpus = "16";
  EXPECT_NE(network_of_one(run, options).error().text().find("--gpus 1..16"), std::string::npos);
  options.gpus_per_node.reset();
  options.step_ms = 120;
  EXPECT_NE(network_of_one(run, options).error().text().find("--step-ms"), std::string::npos);
  options.step_ms.reset();
  options.network = "100G";
  EXPECT_NE(network_of_one(run, options).error().text().find("there is one"), std::string::npos);
  run.job.nodes = 2;
  EXPECT_DOUBLE_EQ(network_of_one(run, options).value(), 12.5e9);
  run.gpus = "1..8";
  EXPECT_TRUE(wants_scaling(run, options));
  run.gpus = "8";
  EXPECT_FALSE(wants_scaling(run, options));
  options.strong = true;
  EXPECT_TRUE(wants_scaling(run, options));
}

}  // namespace
}  // namespace stoker::cli
