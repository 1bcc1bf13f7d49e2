#include "system/machine_facts.h"

#include <gtest/gtest.h>

#include "system/test_files.h"

namespace stoker {
namespace {

using test_system::files_of;
using test_system::folders_of;
using test_system::kMountsV1;
using test_system::kMountsV2;

const std::map<std::string, std::string> kMachine{
    {"/proc/cpuinfo", "model name\t: Some CPU\n"},
    {"/proc/meminfo", "MemTotal:       16777216 kB\nMemAvailable:    8388608 kB\n"},
    {"/sys/devices/system/cpu/online", "0-7\n"},
    {"/proc/self/status", "Name:\tx\nCpus_allowed_list:\t0-2,5\n"},
    {"/proc/sys/kernel/osrelease", "6.1.0-13-amd64\n"}};

MachineFacts facts_with(std::map<std::string, std::string> more) {
  auto files = kMachine;
  files.merge(more);
  return machine_facts_from(files_of(files), folders_of({}));
}

TEST(MachineFacts, WithoutACgroupTheMachineIsItsOwn) {
  const MachineFacts f = facts_with({});
  EXPECT_EQ(f.processor.name, "Some CPU");
  EXPECT_EQ(f.kernel, "6.1.0-13-amd64");
  EXPECT_EQ(f.limits.processors, 8);
  EXPECT_DOUBLE_EQ(f.limits.usable_cores(), 4);
  EXPECT_FALSE(f.limits.quota);
  EXPECT_EQ(f.memory.usable(), kGiB * 16);
  EXPECT_EQ(f.memory.available_here(), kGiB * 8);
  EXPECT_EQ(f.cpu_cgroup.version, 0);
  EXPECT_TRUE(f.gpus.devices.empty());
}

TEST(MachineFacts, AVersion2CgroupLimitsCoresAndMemory) {
  const MachineFacts f =
      facts_with({{"/proc/self/cgroup", "0::/job\n"},
                  {"/proc/self/mountinfo", kMountsV2},
                  {"/sys/fs/cgroup/job/cpu.max", "150000 100000\n"},
                  {"/sys/fs/cgroup/job/memory.max", "4294967296\n"},
                  {"/sys/fs/cgroup/job/memory.current", "2147483648\n"},
                  {"/sys/fs/cgroup/job/memory.stat", "anon 1\ninactive_file 1073741824\n"}});
  EXPECT_DOUBLE_EQ(f.limits.usable_cores(), 1.5);
  EXPECT_EQ(f.memory.usable(), kGiB * 4);
  EXPECT_EQ(f.memory.available_here(), kGiB * 3) << "idle pages of files can be had";
  EXPECT_EQ(f.memory.available, kGiB * 8) << "of the machine";
  EXPECT_EQ(f.cpu_cgroup.version, 2);
  EXPECT_EQ(f.cpu_cgroup.folders.front(), "/sys/fs/cgroup/job");
  EXPECT_TRUE(same_processor(f.processor, facts_with({}).processor));
}

TEST(MachineFacts, AVersion1CgroupLimitsCoresAndMemory) {
  const MachineFacts f =
      facts_with({{"/proc/self/cgroup", "5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n"},
                  {"/proc/self/mountinfo", kMountsV1},
                  {"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "50000\n"},
                  {"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"},
                  {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824\n"},
                  {"/sys/fs/cgroup/memory/memory.usage_in_bytes", "2147483648\n"}});
  EXPECT_DOUBLE_EQ(f.limits.usable_cores(), 0.5);
  EXPECT_EQ(f.memory.usable(), kGiB);
  EXPECT_EQ(f.memory.available_here(), Bytes{}) << "more in use than the limit";
  EXPECT_EQ(f.cpu_cgroup.version, 1);
}

TEST(MachineFacts, ALimitAboveTheMachineIsNone) {
  const MemoryFacts memory = memory_from(files_of({{"/proc/meminfo", "MemTotal: 1024 kB\n"},
                                                   {"/proc/self/cgroup", "0::/\n"},
                                                   {"/proc/self/mountinfo", kMountsV2},
                                                   {"/sys/fs/cgroup/memory.max", "4194304\n"}}));
  EXPECT_EQ(memory.usable(), kMiB);
  const MemoryFacts blind = memory_from(files_of({{"/proc/self/cgroup", "0::/\n"},
                                                  {"/proc/self/mountinfo", kMountsV2},
                                                  {"/sys/fs/cgroup/memory.max", "4194304\n"}}));
  EXPECT_EQ(blind.usable(), kMiB * 4) << "the limit is all that is known";
  EXPECT_EQ(memory_from(files_of({})).usable(), Bytes{});
}

TEST(MachineFacts, ThisMachineAgreesWithItsParts) {
  const MachineFacts f = this_machine_facts();
  EXPECT_GT(f.limits.usable_cores(), 0);
  EXPECT_LE(f.limits.usable_cores(), f.limits.affinity);
  EXPECT_LE(f.limits.affinity, f.processor.logical_cores);
  EXPECT_GT(f.memory.usable(), kMiB * 64);
  EXPECT_LE(f.memory.usable(), f.memory.total);
  EXPECT_LE(f.memory.available_here(), f.memory.total);
  EXPECT_FALSE(f.kernel.empty());
}

}  // namespace
}  // namespace stoker
