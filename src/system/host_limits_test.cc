#include "system/host_limits.h"

#include <gtest/gtest.h>

#include "system/test_files.h"

namespace stoker {
namespace {

using test_system::files_of;
using test_system::kMountsV2;

TEST(HostLimits, ReadsAffinityQuotaAndThrottlingOfVersion2) {
  const HostLimits limits = host_limits_from(files_of({
      {"/sys/devices/system/cpu/online", "0-11\n"},
      {"/proc/self/status", "Name:\tx\nCpus_allowed_list:\t0-7\nMems_allowed_list:\t0\n"},
      {"/proc/self/cgroup", "0::/job\n"},
      {"/proc/self/mountinfo", kMountsV2},
      {"/sys/fs/cgroup/job/cpu.max", "400000 100000\n"},
      {"/sys/fs/cgroup/job/cpu.stat",
       "usage_usec 5\nnr_periods 200\nnr_throttled 150\nthrottled_usec 9\n"},
  }));
  EXPECT_EQ(limits.processors, 12);
  EXPECT_EQ(limits.affinity, 8);
  ASSERT_TRUE(limits.quota);
  EXPECT_DOUBLE_EQ(*limits.quota, 4);
  EXPECT_EQ(limits.cgroup_version, 2);
  EXPECT_EQ(limits.periods, 200);
  EXPECT_EQ(limits.throttled, 150);
  EXPECT_DOUBLE_EQ(limits.usable_cores(), 4);
}

TEST(HostLimits, ReadsAQuotaOfVersion1) {
  const HostLimits limits = host_limits_from(files_of({
      {"/sys/devices/system/cpu/online", "0-3\n"},
      {"/proc/self/status", "Cpus_allowed_list:\t0-3\n"},
      {"/proc/self/cgroup", "4:cpu,cpuacct:/docker/abc\n"},
      {"/proc/self/mountinfo",
       "31 25 0:27 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n"},
      {"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "50000\n"},
      {"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"},
      {"/sys/fs/cgroup/cpu,cpuacct/cpu.stat", "nr_periods 10\nnr_throttled 3\n"},
  }));
  ASSERT_TRUE(limits.quota);
  EXPECT_DOUBLE_EQ(*limits.quota, 0.5);
  EXPECT_EQ(limits.cgroup_version, 1);
  EXPECT_EQ(limits.throttled, 3);
  EXPECT_DOUBLE_EQ(limits.usable_cores(), 0.5);
}

TEST(HostLimits, WhatCannotBeReadStaysUnknown) {
  const HostLimits limits = host_limits_from(files_of({}));
  EXPECT_EQ(limits.processors, 0);
  EXPECT_EQ(limits.affinity, 0);
  EXPECT_FALSE(limits.quota);
  EXPECT_DOUBLE_EQ(limits.usable_cores(), 0);
}

TEST(HostLimits, ThisComputerHasCoresAndFiles) {
  const HostLimits limits = this_host_limits();
  EXPECT_GE(limits.processors, limits.affinity);
  EXPECT_GT(limits.affinity, 0);
  EXPECT_GT(limits.open_files, 0);
  EXPECT_GE(limits.open_files_most, limits.open_files);
}

}  // namespace
}  // namespace stoker
