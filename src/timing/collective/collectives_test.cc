#include "timing/collective/collectives.h"

#include <gtest/gtest.h>

#include <cmath>

namespace stoker {
namespace {

Machine linked(const std::string& link, double bandwidth) {
  Machine machine;
  machine.device.gpu()->link = link;
  machine.device.gpu()->link_bandwidth = bandwidth;
  machine.device.gpu()->pcie_bandwidth = 16e9;
  return machine;
}

constexpr double kMebi = 1 << 20;

/// Straight lines: 40 us + 200 GB/s on 2 GPUs, 80 us + 240 GB/s on 8, from 1 MiB on.
CollectiveCoefficients fitted() {
  const auto line = [](double alpha_us, double factor, double gb_s) {
    std::vector<FabricFit::Point> curve;
    for (const double mib : {1.0, 1024.0})
      curve.push_back({mib * kMebi, Micros(alpha_us + factor * mib * kMebi / gb_s / 1e3)});
    return curve;
  };
  CollectiveCoefficients c;
  c.fits = {{"NVLink 3", 2, line(40, 1, 200), {{kMebi, 0.05}}},
            {"NVLink 3", 8, line(80, 1.75, 240), {{16 * kMebi, 0.2}, {1024 * kMebi, 0.1}}}};
  return c;
}

TEST(AllReduce, OneRankCostsNothing) {
  const AllReduceModel model = all_reduce_model(linked("NVLink 3", 600e9), {1, 1}, fitted());
  EXPECT_EQ(model.time_of(Bytes(1 << 30)).count(), 0);
}

TEST(AllReduce, RingFormulaByHand) {
  // 8 ranks: 80 us + 2 * 7/8 * 240 MB / 240 GB/s = 80 us + 1750 us.
  const AllReduceModel model = all_reduce_model(linked("NVLink 3", 600e9), {8, 1}, fitted());
  EXPECT_NEAR(model.time_of(Bytes(240'000'000)).count(), 1830e3, 1);
  // At 25 MiB the curve leaves 10 % open, another machine with these links 5 %.
  EXPECT_DOUBLE_EQ(model.spread, std::hypot(0.1, fitted().machine_spread));
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
  // 4 is half-way from 2 to 8 in powers of two: 40 + 1200 us and 80 + 1750 us.
  EXPECT_NEAR(model.time_of(Bytes(240'000'000)).count(), 1535e3, 1);
  EXPECT_NEAR(model.alpha().count(), 60e-6, 1e-9);
  EXPECT_NE(model.basis.find("between"), std::string::npos);
  EXPECT_DOUBLE_EQ(model.spread, std::hypot(0.1, fitted().machine_spread));  // of the wider curve
}

TEST(AllReduce, ACountBetweenFitsIsLessSureInAMeshThanWithASwitch) {
  CollectiveCoefficients c = fitted();
  c.fits[1].spreads = {{kMebi, 0.01}};
  const double with_switch = all_reduce_model(linked("NVLink 3", 600e9), {4, 1}, c).spread;
  EXPECT_DOUBLE_EQ(with_switch, c.between_spread);
  for (FabricFit& fit : c.fits) fit.fabric = "NVLink 2";
  const AllReduceModel mesh = all_reduce_model(linked("NVLink 2", 300e9), {4, 1}, c);
  EXPECT_NE(mesh.basis.find("between"), std::string::npos);
  EXPECT_GT(mesh.spread, c.unfitted_spread);
}

TEST(AllReduce, TheWidthOfACurveGoesWithTheSize) {
  const FabricFit fit = fitted().fits[1];
  EXPECT_EQ(fit.spread_at(kMebi), 0.2);
  EXPECT_EQ(fit.spread_at(16 * kMebi), 0.2);
  EXPECT_EQ(fit.spread_at(17 * kMebi), 0.1);
  EXPECT_EQ(fit.spread_at(4096 * kMebi), 0.1);  // the last holds beyond the sizes too
}

TEST(AllReduce, BeyondTheFitsTheRingGrowsAndEachRankAddsLatency) {
  const CollectiveCoefficients c = fitted();
  const Machine machine = linked("NVLink 3", 600e9);
  const AllReduceModel eight = all_reduce_model(machine, {8, 1}, c);
  const AllReduceModel sixteen = all_reduce_model(machine, {16, 1}, c);
  const Bytes bytes(240'000'000);
  EXPECT_NEAR(
      sixteen.time_of(bytes).count(),
      eight.time_of(bytes).count() * (2 * 15.0 / 16) / 1.75 + 8 * as_nanos(c.alpha_rank).count(),
      1e3);
  EXPECT_DOUBLE_EQ(sixteen.spread, c.unfitted_spread);
  EXPECT_NE(fabric_assumption(machine, {16, 1}, c).find("8 measured"), std::string::npos);
  EXPECT_EQ(fabric_assumption(machine, {8, 1}, c), "");
}

TEST(AllReduce, ACurveGoesThroughItsPointsAndOnBeyondTheLast) {
  CollectiveCoefficients c;
  c.fits = {{"NVLink 3",
             2,
             {{1 * kMebi, 50_us}, {4 * kMebi, 56_us}, {5 * kMebi, 40_us}, {9 * kMebi, 60_us}},
             {{kMebi, 0.05}}}};
  const AllReduceModel model = all_reduce_model(linked("NVLink 3", 600e9), {2, 1}, c);
  const auto us = [&](double mib) {
    return model.time_of(Bytes(std::llround(mib * kMebi))).count() / 1e3;
  };
  EXPECT_NEAR(us(1), 50, 1e-6);
  EXPECT_NEAR(us(2.5), 53, 1e-6);
  EXPECT_NEAR(us(5), 40, 1e-6);  // another protocol is faster: measured curves may fall
  EXPECT_NEAR(us(13), 80, 1e-6);
  // Below the first size only latency: 2 us less for each MiB less.
  EXPECT_NEAR(us(0.5), 49, 1e-6);
  EXPECT_NEAR(us(0), 48, 1e-6);
}

TEST(AllReduce, LatencyIsAtLeastAThirdOfTheSmallestMeasuredSize) {
  CollectiveCoefficients c;
  c.fits = {{"NVLink 3", 2, {{1 * kMebi, 90_us}, {2 * kMebi, 180_us}}, {{kMebi, 0.05}}}};
  Machine machine = linked("NVLink 3", 600e9);
  machine.device.gpu()->pcie_bandwidth = 0;  // which would be as fast
  const AllReduceModel model = all_reduce_model(machine, {2, 1}, c);
  EXPECT_NEAR(model.time_of(Bytes(0)).count(), 30e3, 1e-6);
}

TEST(AllReduce, MoreBytesNeverTakeLessWhereNothingIsMeasured) {
  for (const auto& [gpus, nodes] : {std::pair(2, 1), {8, 1}, {8, 4}, {1, 8}}) {
    Machine machine = linked("NVLink 9", 900e9);
    machine.network_bandwidth = 50e9;
    const AllReduceModel model = all_reduce_model(machine, {gpus, nodes}, {});
    double before = 0;
    for (std::int64_t size = 1; size < (std::int64_t{1} << 36); size *= 3) {
      const double time = model.time_of(Bytes(size)).count();
      EXPECT_GT(time, before) << gpus << " x " << nodes << ", " << size;
      before = time;
    }
  }
}

TEST(AllReduce, MoreNodesNeverTakeLess) {
  Machine machine = linked("NVLink 3", 600e9);
  machine.network_bandwidth = 25e9;
  for (const std::int64_t size : {1 << 10, 1 << 22, 1 << 30}) {
    double before = 0;
    for (int nodes = 1; nodes <= 128; nodes *= 2) {
      const double time =
          all_reduce_model(machine, {8, nodes}, fitted()).time_of(Bytes(size)).count();
      EXPECT_GT(time, before) << nodes << " nodes, " << size;
      before = time;
    }
  }
}

TEST(AllReduce, UnknownFabricRestsOnTheDataSheet) {
  CollectiveCoefficients c = fitted();
  c.link_share = 0.5;
  const AllReduceModel model = all_reduce_model(linked("NVLink 9", 800e9), {4, 1}, c);
  EXPECT_NEAR(model.bandwidth(), 800e9 / 2 * 0.5, 1e3);
  EXPECT_DOUBLE_EQ(model.spread, c.unfitted_spread);
  EXPECT_NE(model.basis.find("data sheet"), std::string::npos);
  EXPECT_NE(fabric_assumption(linked("NVLink 9", 800e9), {4, 1}, c).find("NVLink 9 at 200 GB/s"),
            std::string::npos);
}

TEST(AllReduce, APartOfAMeshHasAPartOfItsLinks) {
  const CollectiveCoefficients c = fitted();
  const Machine machine = linked("Infinity Fabric", 896e9);
  const double all = all_reduce_model(machine, {8, 1}, c).bandwidth();
  const AllReduceModel three = all_reduce_model(machine, {3, 1}, c);
  EXPECT_NEAR(three.bandwidth(), all * 2 / 7, 1e3) << "two of seven links";
  EXPECT_GT(three.spread, c.unfitted_spread);
  EXPECT_NE(three.basis.find("29 % of its links between 3 GPUs"), std::string::npos) << three.basis;
  EXPECT_NEAR(all_reduce_model(linked("Infinity Fabric", 276e9), {4, 1}, c).bandwidth(),
              276e9 / 2 * c.link_share, 1e3)
      << "a hive of four is whole";
  Machine stated = machine;
  stated.device.gpu()->figure_stated = true;
  EXPECT_NEAR(all_reduce_model(stated, {3, 1}, c).bandwidth(), all, 1e3) << "the user's word";
}

TEST(AllReduce, ALinkWithoutAFigureFallsBackToPcieAndSaysSo) {
  const Machine machine = linked("Odd Fabric", 0);
  const CollectiveCoefficients c;
  EXPECT_NEAR(all_reduce_model(machine, {4, 1}, c).bandwidth(), 16e9 * c.pcie_share, 1e3);
  const std::string said = fabric_assumption(machine, {4, 1}, c);
  EXPECT_NE(said.find("Odd Fabric has no figure"), std::string::npos) << said;
  EXPECT_NE(said.find("[link]"), std::string::npos);
}

TEST(AllReduce, ABridgeJoinsTwoGpusOnly) {
  const CollectiveCoefficients c;
  const Machine machine = linked("NVLink bridge", 112.5e9);
  EXPECT_GT(all_reduce_model(machine, {2, 1}, c).bandwidth(), 30e9);
  EXPECT_NEAR(all_reduce_model(machine, {4, 1}, c).bandwidth(), 16e9 * c.pcie_share, 1e3);
}

TEST(AllReduce, TheNetworkBoundsNodes) {
  Machine machine = linked("NVLink 3", 600e9);
  machine.network_bandwidth = 50e9;
  CollectiveCoefficients c = fitted();
  c.network_share = 0.8;
  const AllReduceModel one = all_reduce_model(machine, {8, 1}, c);
  const AllReduceModel two = all_reduce_model(machine, {8, 2}, c);
  EXPECT_EQ(two.ranks, 16);
  EXPECT_NEAR(two.bandwidth(), 40e9, 1e3);
  EXPECT_GT(two.alpha(), one.alpha());
}

TEST(AllReduce, TheWaitForTheSlowestGrowsWithTheRanksAndIsBounded) {
  CollectiveCoefficients c;
  c.straggler_wait = 1000_us;
  c.straggler_growth = 0.5;
  c.straggler_most = 0.1;
  c.straggler = 0.01;
  const auto ms = [&](int ranks, double total) {
    return milliseconds(wait_for_slowest(ranks, total * kMillisecond, c));
  };
  EXPECT_EQ(ms(1, 100), 0);
  EXPECT_NEAR(ms(2, 100), 1, 1e-9);
  EXPECT_NEAR(ms(8, 100), 2, 1e-9);
  EXPECT_NEAR(ms(8, 5), 0.5, 1e-9);
  EXPECT_NEAR(ms(256, 100), 4.5 + 2, 1e-9);  // two doublings beyond 64
}

TEST(AllReduce, MissingFiguresStayFinite) {
  Machine machine;
  const AllReduceModel model = all_reduce_model(machine, {4, 2}, CollectiveCoefficients());
  const double time = model.time_of(Bytes(1 << 20)).count();
  EXPECT_GT(time, 0);
  EXPECT_LT(time, 1e9);
  const std::string said = fabric_assumption(machine, {4, 2}, {});
  EXPECT_NE(said.find("no figures"), std::string::npos) << said;
  EXPECT_NE(said.find("{network}"), std::string::npos) << said;
}

/// A curve as V100-SXM2 has it between few GPUs: no faster than PCIe 4.0.
CollectiveCoefficients slow_nvlink_2() {
  CollectiveCoefficients c;
  c.fits = {{"NVLink 2", 2, {{1 * kMebi, 70_us}, {1024 * kMebi, 47606_us}}, {{kMebi, 0.05}}},
            {"NVLink 2", 8, {{1 * kMebi, 79_us}, {1024 * kMebi, 13982_us}}, {{kMebi, 0.05}}}};
  return c;
}

TEST(AllReduce, AStatedFigureOfAMeasuredLinkDecides) {
  const CollectiveCoefficients c = slow_nvlink_2();
  const auto time = [&](double figure, int gpus) {
    return all_reduce_model(linked("NVLink 2", figure), {gpus, 1}, c)
        .time_of(Bytes(256 << 20))
        .count();
  };
  for (const int gpus : {2, 4, 8}) {
    EXPECT_DOUBLE_EQ(time(300e9, gpus), time(0, gpus)) << "as it was measured";
    double before = HUGE_VAL;
    for (const double figure : {10e9, 20e9, 40e9, 100e9, 300e9, 600e9, 1200e9}) {
      EXPECT_LE(time(figure, gpus), before * (1 + 1e-9)) << figure;
      before = time(figure, gpus);
    }
    EXPECT_GT(time(10e9, gpus), 1.5 * time(300e9, gpus));
    EXPECT_GT(time(10e9, gpus) * 1e-9, 256 * kMebi / 5e9) << "no more than the link's own figure";
  }
  const AllReduceModel slow = all_reduce_model(linked("NVLink 2", 10e9), {2, 1}, c);
  EXPECT_NE(slow.basis.find("10 GB/s"), std::string::npos) << slow.basis;
  EXPECT_DOUBLE_EQ(slow.spread, c.unfitted_spread);
}

TEST(AllReduce, WithoutALinkNothingIsFasterThanWithIt) {
  for (const CollectiveCoefficients& c : {CollectiveCoefficients(), fitted(), slow_nvlink_2()}) {
    for (const std::string link : {"NVLink 2", "NVLink 3", "NVLink bridge", "Odd Fabric"}) {
      for (const double figure : {0.0, 100e9, 300e9, 600e9}) {
        for (const double pcie : {0.0, 16e9, 32e9}) {
          for (const int gpus : {2, 3, 8}) {
            Machine with = linked(link, figure);
            with.device.gpu()->pcie_bandwidth = pcie;
            Machine without = with;
            ASSERT_TRUE(choose_link(*without.device.gpu(), GpuLink::kPcie));
            const AllReduceModel fast = all_reduce_model(with, {gpus, 1}, c);
            const AllReduceModel slow = all_reduce_model(without, {gpus, 1}, c);
            for (const std::int64_t size : {0, 1 << 16, 1 << 20, 1 << 25, 1 << 30}) {
              EXPECT_LE(fast.time_of(Bytes(size)).count(),
                        slow.time_of(Bytes(size)).count() * (1 + 1e-9))
                  << link << " " << figure << " pcie " << pcie << " x" << gpus << ", " << size;
            }
          }
        }
      }
    }
  }
}

TEST(AllReduce, TheAssumptionNamesTheLinkUnlessTheUserStatedIt) {
  Machine machine = linked("NVLink 3", 600e9);
  EXPECT_EQ(link_assumption(machine, {8, 1}, fitted()),
            "the GPUs of a computer are joined by NVLink 3 ({link})");
  machine.device.gpu()->link_stated = true;
  EXPECT_EQ(link_assumption(machine, {8, 1}, fitted()), "");
  machine = linked("", 0);
  machine.device.gpu()->bridge = "NVLink bridge";
  EXPECT_EQ(
      link_assumption(machine, {2, 1}, fitted()),
      "all-reduce over PCIe at 12 GB/s, by the data sheet, not measured; the NVLink bridge is "
      "sold apart ({link} nvlink)");
  machine.device.gpu()->bridge.clear();
  machine.device.gpu()->pcie_stated = true;
  machine.device.gpu()->pcie_bandwidth = 16e9;
  EXPECT_EQ(link_assumption(machine, {2, 1}, fitted()),
            "all-reduce over PCIe at 12 GB/s, from the 16 GB/s that the machine file states, not "
            "measured");
  machine = linked("Odd Fabric", 90e9);
  machine.device.gpu()->figure_stated = machine.device.gpu()->link_stated = true;
  const std::string stated = link_assumption(machine, {2, 1}, fitted());
  EXPECT_NE(stated.find("from the 90 GB/s that the machine file states"), std::string::npos)
      << stated;
}

}  // namespace
}  // namespace stoker
