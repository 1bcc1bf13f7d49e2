#include "system/host_facts.h"

#include <gtest/gtest.h>

#include <map>

namespace stoker {
namespace {

const char* const kMountsV2 =
    "25 1 0:22 / /proc rw - proc proc rw\n"
    "30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

const char* const kMountsV1 =
    "31 25 0:27 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n"
    "32 25 0:28 /docker/abc /sys/fs/cgroup/memory ro master:9 - cgroup cgroup rw,memory\n"
    "33 25 0:29 / /sys/fs/cgroup/unified ro - cgroup2 cgroup2 rw\n";

SystemFiles files_of(std::map<std::string, std::string> files) {
  return [files = std::move(files)](const std::string& path) -> std::optional<std::string> {
    const auto found = files.find(path);
    if (found == files.end()) return std::nullopt;
    return found->second;
  };
}

TEST(CpuList, CountsRanges) {
  EXPECT_EQ(count_cpu_list("0-3,8,10-11\n"), 7);
  EXPECT_EQ(count_cpu_list("5"), 1);
  for (const char* bad : {"", "3-1", "a", "1,,2", "0-99999999999", "-1"}) {
    EXPECT_EQ(count_cpu_list(bad), 0) << bad;
  }
}

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
  EXPECT_EQ(*memory_limit(memory, files_of({{limit, "2147483648\n"}})), kGiB * 2);
  EXPECT_FALSE(memory_limit(memory, files_of({{limit, "9223372036854771712\n"}})).has_value());
}

TEST(HostFacts, TakeTheSmallerOfPhysicalAndLimit) {
  const Host host =
      host_from(files_of({{"/proc/self/status", "Name:\tx\nCpus_allowed_list:\t0-15\n"},
                          {"/proc/meminfo", "MemTotal:       65536 kB\nMemFree: 1 kB\n"},
                          {"/proc/self/cgroup", "0::/job\n"},
                          {"/proc/self/mountinfo", kMountsV2},
                          {"/sys/fs/cgroup/job/cpu.max", "250000 100000\n"},
                          {"/sys/fs/cgroup/job/memory.max", "33554432\n"}}),
                kMiB * 64);
  EXPECT_DOUBLE_EQ(host.cores, 2.5);
  EXPECT_EQ(host.memory, kMiB * 32);
  EXPECT_EQ(host.shared_memory, kMiB * 64);
  EXPECT_TRUE(host.is_this_machine);
  EXPECT_EQ(host.assumption, "");
}

TEST(HostFacts, WithoutLimitsAffinityAndPhysicalMemoryHold) {
  const Host host = host_from(files_of({{"/proc/self/status", "Cpus_allowed_list:\t2,4\n"},
                                        {"/proc/meminfo", "MemTotal:       65536 kB\n"},
                                        {"/proc/self/cgroup", "0::/\n"},
                                        {"/proc/self/mountinfo", kMountsV2},
                                        {"/sys/fs/cgroup/memory.max", "max\n"}}),
                              Bytes(0));
  EXPECT_DOUBLE_EQ(host.cores, 2);
  EXPECT_EQ(host.memory, kMiB * 64);
}

TEST(HostFacts, SayWhatCouldNotBeRead) {
  const Host host = host_from(files_of({}), Bytes(0));
  EXPECT_DOUBLE_EQ(host.cores, 1);
  EXPECT_NE(host.assumption.find("affinity"), std::string::npos);
  EXPECT_NE(host.assumption.find("unknown memory"), std::string::npos);
}

TEST(HostFacts, ThisHostHasCoresAndMemory) {
  const Host host = this_host();
  EXPECT_GT(host.cores, 0);
  EXPECT_GT(host.memory, kMiB * 64);
  EXPECT_EQ(host.assumption, "");
}

}  // namespace
}  // namespace stoker
