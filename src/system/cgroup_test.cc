#include "system/cgroup.h"

#include <gtest/gtest.h>

#include "system/test_files.h"

namespace stoker {
namespace {

using test_system::files_of;
using test_system::kMountsV1;
using test_system::kMountsV2;

TEST(Cgroup, WalksTheUnifiedHierarchyUpwards) {
  const auto groups = cgroup_folders("cpu", "0::/user.slice/job.scope\n", kMountsV2);
  EXPECT_EQ(groups.version, 2);
  EXPECT_EQ(groups.folders,
            (std::vector<std::string>{"/sys/fs/cgroup/user.slice/job.scope",
                                      "/sys/fs/cgroup/user.slice", "/sys/fs/cgroup"}));
}

TEST(Cgroup, TakesTheControllersOwnVersion1Hierarchy) {
  const char* const self =
      "5:memory:/docker/abc/inner\n4:cpu,cpuacct:/docker/abc\n1:name=systemd:/\n0::/docker/abc\n";
  const auto cpu = cgroup_folders("cpu", self, kMountsV1);
  EXPECT_EQ(cpu.version, 1);
  EXPECT_EQ(cpu.folders, (std::vector<std::string>{"/sys/fs/cgroup/cpu,cpuacct"}));
  const auto memory = cgroup_folders("memory", self, kMountsV1);
  EXPECT_EQ(memory.folders,
            (std::vector<std::string>{"/sys/fs/cgroup/memory/inner", "/sys/fs/cgroup/memory"}));
}

TEST(Cgroup, UsesTheMountPointWhenItsPathIsOutOfSight) {
  const auto groups = cgroup_folders("cpu", "0::/../../elsewhere\n", kMountsV2);
  EXPECT_EQ(groups.folders, (std::vector<std::string>{"/sys/fs/cgroup"}));
  EXPECT_EQ(cgroup_folders("cpu", "", "").version, 0);
}

TEST(Cgroup, TheTightestQuotaHolds) {
  const auto groups = cgroup_folders("cpu", "0::/a/b\n", kMountsV2);
  EXPECT_DOUBLE_EQ(*cpu_quota(groups, files_of({{"/sys/fs/cgroup/a/b/cpu.max", "max 100000\n"},
                                                {"/sys/fs/cgroup/a/cpu.max", "150000 100000\n"},
                                                {"/sys/fs/cgroup/cpu.max", "400000 100000\n"}})),
                   1.5);
  EXPECT_FALSE(cpu_quota(groups, files_of({})).has_value());
  EXPECT_FALSE(cpu_quota(groups, files_of({{"/sys/fs/cgroup/a/cpu.max", "garbage"}})).has_value());
}

TEST(Cgroup, Version1LimitsAndTheirAbsence) {
  const auto cpu = cgroup_folders("cpu", "4:cpu:/docker/abc\n", kMountsV1);
  const std::string folder = "/sys/fs/cgroup/cpu,cpuacct";
  EXPECT_DOUBLE_EQ(*cpu_quota(cpu, files_of({{folder + "/cpu.cfs_quota_us", "250000\n"},
                                             {folder + "/cpu.cfs_period_us", "100000\n"}})),
                   2.5);
  EXPECT_FALSE(cpu_quota(cpu, files_of({{folder + "/cpu.cfs_quota_us", "-1\n"},
                                        {folder + "/cpu.cfs_period_us", "100000\n"}}))
                   .has_value());
  const auto memory = cgroup_folders("memory", "5:memory:/docker/abc\n", kMountsV1);
  const std::string limit = "/sys/fs/cgroup/memory/memory.limit_in_bytes";
  const auto found = memory_limit(
      memory, files_of({{limit, "2147483648\n"},
                        {"/sys/fs/cgroup/memory/memory.usage_in_bytes", "1610612736\n"},
                        {"/sys/fs/cgroup/memory/memory.stat",
                         "inactive_file 5\ntotal_inactive_file 536870912\ntotal_cache 7\n"}}));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->limit, kGiB * 2);
  EXPECT_EQ(found->used, kGiB) << "pages of files that nobody uses do not count";
  EXPECT_FALSE(memory_limit(memory, files_of({{limit, "9223372036854771712\n"}})).has_value());
}

TEST(Cgroup, TheTightestMemoryLimitBringsItsOwnUse) {
  const auto groups = cgroup_folders("memory", "0::/a/b\n", kMountsV2);
  const auto found = memory_limit(groups, files_of({{"/sys/fs/cgroup/a/b/memory.max", "max\n"},
                                                    {"/sys/fs/cgroup/a/b/memory.current", "7\n"},
                                                    {"/sys/fs/cgroup/a/memory.max", "4096\n"},
                                                    {"/sys/fs/cgroup/a/memory.current", "1024\n"},
                                                    {"/sys/fs/cgroup/memory.max", "8192\n"}}));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->limit, Bytes(4096));
  EXPECT_EQ(found->used, Bytes(1024));
}

TEST(Cgroup, TheFolderThatIsHeldBackMostTellsTheThrottling) {
  const auto groups = cgroup_folders("cpu", "0::/a/b\n", kMountsV2);
  const Throttling found = throttling(
      groups, files_of({{"/sys/fs/cgroup/a/b/cpu.stat", "nr_periods 200\nnr_throttled 20\n"},
                        {"/sys/fs/cgroup/a/cpu.stat", "nr_periods 300\nnr_throttled 150\n"}}));
  EXPECT_EQ(found.periods, 300);
  EXPECT_EQ(found.throttled, 150);
  EXPECT_EQ(throttling(groups, files_of({})).throttled, 0);
}

TEST(Cgroup, KillsForWantOfMemoryAreThoseOfItsOwnFolder) {
  const auto unified = cgroup_folders("memory", "0::/a/b\n", kMountsV2);
  const auto files = files_of(
      {{"/sys/fs/cgroup/a/b/memory.events", "low 0\noom 7\noom_kill 2\noom_group_kill 1\n"},
       {"/sys/fs/cgroup/a/memory.events", "oom_kill 9\n"},
       {"/sys/fs/cgroup/memory/inner/memory.oom_control",
        "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"}});
  EXPECT_EQ(memory_kills(unified, files), 2);
  const auto first = cgroup_folders("memory", "5:memory:/docker/abc/inner\n", kMountsV1);
  EXPECT_EQ(memory_kills(first, files), 3);
  EXPECT_EQ(memory_kills({}, files), 0);
  EXPECT_EQ(memory_kills(unified, files_of({})), 0);
}

TEST(Cgroup, ReadsItsOwnFolderByTheFilesOfTheProcess) {
  const auto groups = cgroup_folders("memory", files_of({{"/proc/self/cgroup", "0::/job\n"},
                                                         {"/proc/self/mountinfo", kMountsV2}}));
  EXPECT_EQ(groups.version, 2);
  EXPECT_EQ(groups.folders.front(), "/sys/fs/cgroup/job");
  EXPECT_EQ(cgroup_folders("memory", files_of({})).version, 0);
}

}  // namespace
}  // namespace stoker
