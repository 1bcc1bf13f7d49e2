#include "device/host/this_host.h"

#include <gtest/gtest.h>

#include "system/test_files.h"

namespace stoker {
namespace {

using test_system::files_of;
using test_system::kMountsV2;

Host host_of(const SystemFiles& files, Bytes shared_memory) {
  HostLimits limits = host_limits_from(files);
  limits.shared_memory = shared_memory;
  return host_from(limits, memory_from(files));
}

TEST(ThisHost, TakeTheSmallerOfPhysicalAndLimit) {
  const Host host =
      host_of(files_of({{"/proc/self/status", "Name:\tx\nCpus_allowed_list:\t0-15\n"},
                        {"/proc/meminfo", "MemTotal:       65536 kB\nMemFree: 1 kB\n"},
                        {"/proc/self/cgroup", "0::/job\n"},
                        {"/proc/self/mountinfo", kMountsV2},
                        {"/sys/fs/cgroup/job/cpu.max", "250000 100000\n"},
                        {"/sys/fs/cgroup/job/memory.max", "33554432\n"}}),
              kMiB * 64);
  EXPECT_DOUBLE_EQ(host.cores, 2.5);
  EXPECT_EQ(host.memory, kMiB * 32);
  EXPECT_EQ(host.shared_memory, kMiB * 32) << "it lies in the memory";
  EXPECT_TRUE(host.is_this_machine);
  EXPECT_EQ(host.assumption, "");
}

TEST(ThisHost, WithoutLimitsAffinityAndPhysicalMemoryHold) {
  const Host host = host_of(files_of({{"/proc/self/status", "Cpus_allowed_list:\t2,4\n"},
                                      {"/proc/meminfo", "MemTotal:       65536 kB\n"},
                                      {"/proc/self/cgroup", "0::/\n"},
                                      {"/proc/self/mountinfo", kMountsV2},
                                      {"/sys/fs/cgroup/memory.max", "max\n"}}),
                            Bytes(0));
  EXPECT_DOUBLE_EQ(host.cores, 2);
  EXPECT_EQ(host.memory, kMiB * 64);
}

TEST(ThisHost, SayWhatCouldNotBeRead) {
  const Host host = host_of(files_of({}), Bytes(0));
  EXPECT_DOUBLE_EQ(host.cores, 1);
  EXPECT_NE(host.assumption.find("affinity"), std::string::npos);
  EXPECT_NE(host.assumption.find("unknown memory"), std::string::npos);
}

TEST(ThisHost, HasCoresAndMemory) {
  const Host host = this_host();
  EXPECT_GT(host.cores, 0);
  EXPECT_GT(host.memory, kMiB * 64);
  EXPECT_EQ(host.assumption, "");
}

}  // namespace
}  // namespace stoker
