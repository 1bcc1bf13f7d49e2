#include "timing/collectives.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

Machine linked(const std::string& link, double bandwidth) {
  Machine machine;
  machine.gpu.link = link;
  machine.gpu.link_bandwidth = bandwidth;
  machine.gpu.pcie_bandwidth = 16e9;
  return machine;
}

CollectiveCoefficients fitted() {
  CollectiveCoefficients c;
  c.fits = {{"NVLink 3", 2, 40, 200e9, 0.05}, {"NVLink 3", 8, 80, 240e9, 0.1}};
  return c;
}

TEST(AllReduce, OneRankCostsNothing) {
  const AllReduceModel model = all_reduce_model(linked("NVLink 3", 600e9), {1, 1}, fitted());
  EXPECT_EQ(model.time_of(Bytes(1 << 30)).count(), 0);
}

TEST(AllReduce, RingFormulaByHand) {
  // 8 ranks: 80 us + 2 * 7/8 * 240 MB / 240 GB/s = 80 us + 1750 us.
  const AllReduceModel model = all_reduce_model(linked("NVLink 3", 600e9), {8, 1}, fitted());
  EXPECT_NEAR(model.time_of(Bytes(240'000'000)).count(), 1830e3, 1e-3);
  EXPECT_DOUBLE_EQ(model.spread, 0.1);
  EXPECT_NE(model.basis.find("measured"), std::string::npos);
}

TEST(AllReduce, OtherCollectivesByHand) {
  // 8 ranks, half of alpha: 40 us. 7/8 of 240 MB at 240 GB/s are 875 us, all of it 1000 us.
  const AllReduceModel model = all_reduce_model(linked("NVLink 3", 600e9), {8, 1}, fitted());
  const Bytes bytes(240'000'000);
  const auto us = [&](CollectiveKind kind) {
    return model.time_of({kind, 8}, bytes).count() / 1e3;
  };
  EXPECT_NEAR(us(CollectiveKind::kAllGather), 915, 1e-6);
  EXPECT_NEAR(us(CollectiveKind::kReduceScatter), 915, 1e-6);
  EXPECT_NEAR(us(CollectiveKind::kAllGather) + us(CollectiveKind::kReduceScatter),
              model.time_of(bytes).count() / 1e3, 1e-6);
  EXPECT_NEAR(us(CollectiveKind::kBroadcast), 1040, 1e-6);
  EXPECT_NEAR(us(CollectiveKind::kReduce), 1040, 1e-6);
  EXPECT_NEAR(us(CollectiveKind::kScatter), 915, 1e-6);
  EXPECT_NEAR(us(CollectiveKind::kGather), 915, 1e-6);
  EXPECT_EQ(model.time_of({CollectiveKind::kAllGather, 1}, bytes).count(), 0);
}

TEST(AllReduce, CountsBetweenFitsAreInterpolated) {
  const AllReduceModel model = all_reduce_model(linked("NVLink 3", 600e9), {4, 1}, fitted());
  EXPECT_DOUBLE_EQ(model.alpha_seconds, 60e-6);  // 4 is half-way from 2 to 8 in powers of two
  EXPECT_DOUBLE_EQ(model.bandwidth, 220e9);
}

TEST(AllReduce, UnknownFabricRestsOnTheDataSheet) {
  CollectiveCoefficients c = fitted();
  c.link_share = 0.5;
  const AllReduceModel model = all_reduce_model(linked("NVLink 9", 800e9), {4, 1}, c);
  EXPECT_DOUBLE_EQ(model.bandwidth, 800e9 / 2 * 0.5);
  EXPECT_DOUBLE_EQ(model.spread, c.unfitted_spread);
  EXPECT_NE(model.basis.find("data sheet"), std::string::npos);
}

TEST(AllReduce, ABridgeJoinsTwoGpusOnly) {
  const CollectiveCoefficients c;
  const Machine machine = linked("NVLink bridge", 112.5e9);
  EXPECT_GT(all_reduce_model(machine, {2, 1}, c).bandwidth, 30e9);
  EXPECT_DOUBLE_EQ(all_reduce_model(machine, {4, 1}, c).bandwidth, 16e9 * c.pcie_share);
}

TEST(AllReduce, TheNetworkBoundsNodes) {
  Machine machine = linked("NVLink 3", 600e9);
  machine.network_bandwidth = 50e9;
  CollectiveCoefficients c = fitted();
  c.network_share = 0.8;
  const AllReduceModel one = all_reduce_model(machine, {8, 1}, c);
  const AllReduceModel two = all_reduce_model(machine, {8, 2}, c);
  EXPECT_EQ(two.ranks, 16);
  EXPECT_DOUBLE_EQ(two.bandwidth, 40e9);
  EXPECT_GT(two.alpha_seconds, one.alpha_seconds);
}

TEST(AllReduce, MissingFiguresStayFinite) {
  Machine machine;
  const AllReduceModel model = all_reduce_model(machine, {4, 2}, CollectiveCoefficients());
  const double time = model.time_of(Bytes(1 << 20)).count();
  EXPECT_GT(time, 0);
  EXPECT_LT(time, 1e9);
}

}  // namespace
}  // namespace stoker
