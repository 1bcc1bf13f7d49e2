#include "study/runner/usage.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <ctime>

namespace stoker::study {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

Sample sample(std::int64_t cpu_ns, std::int64_t busy, std::int64_t memory, std::int64_t watts) {
  Sample s;
  ProcessSample p;
  p.serial = 1;
  p.leader.cpu_ns = cpu_ns;
  p.read_bytes = cpu_ns / 1000;
  s.processes = {p};
  GpuSample mine, other;
  mine.index = 2;
  mine.job_processes = 1;
  mine.busy_percent = busy;
  mine.memory_used = memory + 5;
  mine.foreign_memory = 5;
  mine.memory_total = 1000;
  mine.power_mw = watts * 1000;
  mine.power_limit_mw = 300'000;
  other.busy_percent = 100;
  other.memory_used = other.memory_total = 4000;
  other.power_mw = 700'000;
  s.gpus = {other, mine};
  return s;
}

TEST(UsageSeries, TheSteadyPartIsToldBesideTheWhole) {
  UsageSeries series;
  series.add(sample(0, 0, 100, 50), 0.5);
  for (int i = 1; i <= 10; ++i) series.add(sample(i * kSecond / 2, 0, 100, 50), 0.5 + i);
  for (int i = 1; i <= 10; ++i) series.add(sample((5 + 2 * i) * kSecond, 80, 600, 250), 10.5 + i);
  const auto f = series.figures(Window{10.5, 20.5}, 4);
  EXPECT_DOUBLE_EQ(f.at("gpu_percent"), 40);
  EXPECT_DOUBLE_EQ(f.at("gpu_percent_steady"), 80);
  EXPECT_DOUBLE_EQ(f.at("cpu_cores_steady"), 2);
  EXPECT_DOUBLE_EQ(f.at("cpu_percent_steady"), 50);
  EXPECT_DOUBLE_EQ(f.at("gpu_energy_j"), 3000);
  EXPECT_DOUBLE_EQ(f.at("gpu_watts"), 150);
  EXPECT_DOUBLE_EQ(f.at("gpu_watts_steady"), 250);
  EXPECT_DOUBLE_EQ(f.at("gpu_power_limit_w"), 300) << "of the GPU that counts";
  EXPECT_DOUBLE_EQ(f.at("gpu_peak_bytes"), 600);
  EXPECT_DOUBLE_EQ(f.at("gpu_memory_percent"), 60);
  EXPECT_DOUBLE_EQ(f.at("read_bytes"), 25e6);
}

TEST(UsageSeries, GpusOfOthersDoNotCount) {
  UsageSeries series;
  Sample s = sample(0, 50, 1, 1);
  s.gpus[1].job_processes = 0;
  series.add(s, 0);
  series.add(s, 1);
  EXPECT_FALSE(series.figures(std::nullopt, 0).contains("gpu_percent"));
  UsageSeries given({2});  // in a container the driver may number processes otherwise
  given.add(s, 0);
  given.add(s, 1);
  EXPECT_DOUBLE_EQ(given.figures(std::nullopt, 0).at("gpu_percent"), 50);
}

TEST(UsageSeries, LongTrialsAreJoinedAndKeepTheirSums) {
  UsageSeries series;
  for (int i = 0; i <= 20'000; ++i) series.add(sample(i * kSecond, 30, 1, 100), i);
  const auto f = series.figures(Window{10'000, 20'000}, 0);
  EXPECT_NEAR(f.at("gpu_percent"), 30, 1e-6);
  EXPECT_NEAR(f.at("gpu_energy_j"), 2e6, 1e3);
  EXPECT_NEAR(f.at("cpu_cores_steady"), 1, 1e-3);
}

TEST(UsageWatch, SeesTheProcessorTimeOfAChild) {
  const pid_t child = fork();
  if (child == 0) {
    for (;;) {
    }
  }
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  UsageWatch watch;
  watch.start(child, static_cast<double>(now.tv_sec), {});
  usleep(2'200'000);
  const UsageSeries* series = watch.stop();
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  ASSERT_NE(series, nullptr);
  const auto f = series->figures(Window{0, 1e9}, 2);
  ASSERT_TRUE(f.contains("cpu_cores_steady"));
  EXPECT_GT(f.at("cpu_cores_steady"), 0);
  EXPECT_LT(f.at("cpu_cores_steady"), 1.2);
}

TEST(GpuNumbers, OnlyNumbersNameGpus) {
  EXPECT_EQ(gpu_numbers("0,3"), (std::set<std::int64_t>{0, 3}));
  EXPECT_TRUE(gpu_numbers("GPU-1234").empty());
  EXPECT_TRUE(gpu_numbers("").empty());
}

}  // namespace
}  // namespace stoker::study
