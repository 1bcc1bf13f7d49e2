#include "system/contention.h"

#include <gtest/gtest.h>

#include "system/clocks.h"
#include "system/processor_ticks.h"
#include "system/test_files.h"

namespace stoker {
namespace {

using test_system::files_of;

ContentionClocks clocks(double wall_ms, double cpu_ms, double queued_ms, double ticks,
                        double stolen) {
  return {wall_ms * kMillisecond, cpu_ms * kMillisecond, queued_ms * kMillisecond, ticks, stolen};
}

TEST(Contention, AloneNothingIsDisturbed) {
  const Contention found =
      contention_between(clocks(10, 5, 1, 100, 3), clocks(110, 104, 1, 140, 3));
  EXPECT_NEAR(found.wall_per_cpu, 100.0 / 99, 1e-12);
  EXPECT_DOUBLE_EQ(found.run_queue_share, 0);
  EXPECT_DOUBLE_EQ(found.steal_share, 0);
  EXPECT_FALSE(found.disturbed);
}

TEST(Contention, EachOfThreeSignsDisturbs) {
  const Contention queued = contention_between(clocks(0, 0, 0, 0, 0), clocks(100, 94, 6, 20, 0));
  EXPECT_DOUBLE_EQ(queued.run_queue_share, 0.06);
  EXPECT_TRUE(queued.disturbed);
  const Contention stolen = contention_between(clocks(0, 0, 0, 0, 0), clocks(100, 99, 0, 20, 2));
  EXPECT_DOUBLE_EQ(stolen.steal_share, 0.1);
  EXPECT_TRUE(stolen.disturbed);
  const Contention slow = contention_between(clocks(0, 0, 0, 0, 0), clocks(100, 80, 0, 20, 0));
  EXPECT_DOUBLE_EQ(slow.wall_per_cpu, 1.25);
  EXPECT_TRUE(slow.disturbed);
}

TEST(Contention, ClocksThatRunBackwardsSayNothing) {
  const Contention found = contention_between(clocks(100, 50, 9, 50, 9), clocks(100, 50, 0, 40, 0));
  EXPECT_DOUBLE_EQ(found.wall_per_cpu, 1);
  EXPECT_FALSE(found.disturbed);
  const Contention odd = contention_between(clocks(0, 0, 9, 50, 9), clocks(10, 20, 0, 60, 0));
  EXPECT_DOUBLE_EQ(odd.wall_per_cpu, 1) << "a coarse CPU clock";
  EXPECT_DOUBLE_EQ(odd.run_queue_share, 0);
  EXPECT_DOUBLE_EQ(odd.steal_share, 0);
}

TEST(Contention, ReadsTheKernelsCounters) {
  const ContentionClocks found = contention_clocks(
      files_of({{"/proc/thread-self/schedstat", "5000 1500 7\n"},
                {"/proc/stat", "cpu  10 1 5 100 4 1 2 7 3 0\ncpu0 9 9 9 9 9 9 9 9 9 9\n"}}));
  EXPECT_EQ(found.queued, Nanos(1500));
  EXPECT_DOUBLE_EQ(found.ticks, 130);
  EXPECT_DOUBLE_EQ(found.stolen_ticks, 7);
  const ContentionClocks blind = contention_clocks(files_of({}));
  EXPECT_EQ(blind.queued, Nanos{});
  EXPECT_DOUBLE_EQ(blind.ticks, 0);
}

TEST(Contention, MetersThisThread) {
  const ContentionMeter meter;
  const Nanos start = thread_cpu_time();
  while (thread_cpu_time() - start < 2.0 * kMillisecond) {
  }
  EXPECT_GE(meter.finish().wall_per_cpu, 1);
  EXPECT_GE(run_queue_wait(), Nanos{});
}

TEST(ProcessorTicks, CountBusyWithoutIdleWaitAndSteal) {
  const ProcessorTicks ticks =
      processor_ticks(files_of({{"/proc/stat", "cpu  10 1 5 100 4 1 2 7 3 0\ncpu0 9\n"}}));
  EXPECT_DOUBLE_EQ(ticks.all, 130);
  EXPECT_DOUBLE_EQ(ticks.busy, 19);
  EXPECT_DOUBLE_EQ(ticks.steal, 7);
  EXPECT_DOUBLE_EQ(processor_ticks(files_of({{"/proc/stat", "intr 5\n"}})).all, 0);
}

TEST(MachineLoad, OwnTimeIsNoOthers) {
  const double tick = 0.01;  // s; of USER_HZ on all architectures that are supported
  const ProcessorTicks before{.all = 0, .busy = 0, .steal = 0};
  const ProcessorTicks after{.all = 400, .busy = 100, .steal = 20};
  const MachineLoad load = load_between(before, after, 200 * tick, 0.4, 2);
  EXPECT_NEAR(load.others_share, (1.0 - 0.4) / 4, 1e-12);
  EXPECT_NEAR(load.steal_share, 0.2 / 4, 1e-12);
  EXPECT_DOUBLE_EQ(load_between(before, after, 2, 9, 2).others_share, 0);
  EXPECT_DOUBLE_EQ(load_between(before, after, 0, 0, 2).seconds, 0);
  EXPECT_DOUBLE_EQ(machine_load(0).seconds, 0) << "not looked at";
}

}  // namespace
}  // namespace stoker
