#include "timing/cpu/cpu_rates.h"

#include <gtest/gtest.h>

#include <memory>

#include "timing/common/testing.h"

namespace stoker {
namespace {

Cpu with_figures(std::vector<MeasuredFigure> figures) {
  Cpu cpu = timing_test::round_cpu();
  auto calibration = std::make_shared<Calibration>();
  calibration->figures = std::move(figures);
  cpu.calibration = calibration;
  return cpu;
}

TEST(CpuRates, TheDataSheetWhereNothingIsMeasured) {
  const Cpu cpu = timing_test::round_cpu();
  const CpuRates one = cpu_rates(cpu, 1), four = cpu_rates(cpu, 4), many = cpu_rates(cpu, 16);
  EXPECT_DOUBLE_EQ(one.lanes, 16);
  EXPECT_DOUBLE_EQ(one.cycles, 2e9);
  EXPECT_LT(one.products, 128e9);
  EXPECT_DOUBLE_EQ(four.products, 4 * one.products);
  EXPECT_DOUBLE_EQ(many.products, four.products);  // threads take turns on four cores
  EXPECT_LT(one.memory, 20e9);
  EXPECT_DOUBLE_EQ(four.memory, 20e9);
  EXPECT_GE(one.l2, one.l3);
  EXPECT_GE(one.l3, one.memory);
  EXPECT_EQ(one.region, 0_s);
  EXPECT_GT(four.region, 0_s);
}

TEST(CpuRates, NothingKnownIsNotNothing) {
  const CpuRates r = cpu_rates(Cpu{}, 1);
  for (const double x :
       {r.products, r.cycles, r.lanes, r.l2, r.l3, r.memory, r.l2_bytes, r.l3_bytes})
    EXPECT_GT(x, 0);
}

TEST(CpuRates, FiguresReplaceTheDataSheet) {
  const Cpu cpu = with_figures({{"copy_gbs", 1, 8, 0, ""},
                                {"copy_gbs", 2, 12, 0, ""},
                                {"fma_gflops", 1, 100, 0, ""},
                                {"region_us", 2, 3, 0, ""}});
  EXPECT_DOUBLE_EQ(cpu_rates(cpu, 1).memory, 8e9);
  EXPECT_DOUBLE_EQ(cpu_rates(cpu, 2).memory, 12e9);
  EXPECT_DOUBLE_EQ(cpu_rates(cpu, 1).products, 100e9);
  EXPECT_DOUBLE_EQ(cpu_rates(cpu, 2).region.count(), 3e-6);
}

TEST(FigureAt, AmdahlBetweenAndBeyond) {
  // Times of a unit: 1 with one thread, 0.4 with four: 0.2 + 0.8 / threads.
  Calibration c;
  c.figures = {{"copy_gbs", 1, 1, 0, ""}, {"copy_gbs", 4, 2.5, 0, ""}};
  EXPECT_NEAR(figure_at(&c, "copy_gbs", 2, true), 1 / 0.6, 1e-9);
  EXPECT_NEAR(figure_at(&c, "copy_gbs", 8, true), 1 / 0.3, 1e-9);
  EXPECT_NEAR(figure_at(&c, "copy_gbs", 4, true), 2.5, 1e-9);
  // More threads were slower: more still are not forecast to help.
  c.figures[1].value = 0.5;
  EXPECT_LE(figure_at(&c, "copy_gbs", 8, true), 0.5 + 1e-9);
  EXPECT_EQ(figure_at(&c, "unheard_of", 1, true), 0);
  EXPECT_EQ(figure_at(nullptr, "copy_gbs", 1, true), 0);
}

TEST(CpuHost, MeasuredOrPrior) {
  const CpuHost prior = cpu_host(timing_test::round_cpu(), 1, 1);
  EXPECT_FALSE(prior.measured);
  EXPECT_GT(prior.forward, prior.view);
  EXPECT_LT(cpu_host(timing_test::round_cpu(), 1, 2).forward, prior.forward);
  const CpuHost host = cpu_host(
      with_figures(
          {{"forward_us", 0, 11, 0, ""}, {"fault_us", 1, 0.4, 0, ""}, {"fault_us", 2, 0.3, 0, ""}}),
      2, 1);
  EXPECT_TRUE(host.measured);
  EXPECT_DOUBLE_EQ(host.forward.count(), 11e-6);
  EXPECT_DOUBLE_EQ(host.fault.count(), 0.3e-6);
  EXPECT_EQ(host.backward, prior.backward);
}

}  // namespace
}  // namespace stoker
