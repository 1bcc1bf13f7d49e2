#include "observe/proc/host_watch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "system/test_files.h"

namespace stoker {
namespace {

using test_system::files_of;
using test_system::kMountsV1;
using test_system::kMountsV2;

using Files = std::map<std::string, std::string>;

/// A machine with process 7 in the control group /job.
Files machine() {
  return {{"/proc/stat", "cpu  100 20 30 4000 500 6 7 80 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n"},
          {"/proc/pressure/cpu", "some avg10=0 avg60=0 avg300=0 total=11\n"},
          {"/proc/pressure/memory", "some avg10=0 avg60=0 avg300=0 total=12\n"},
          {"/proc/pressure/io", "some avg10=0 avg60=0 avg300=0 total=13\n"},
          {"/proc/meminfo", "MemTotal: 8000 kB\nMemAvailable:    2000 kB\n"},
          {"/proc/vmstat", "nr_free_pages 5\npswpin 42\npswpout 43\n"},
          {"/proc/7/cgroup", "0::/job\n"},
          {"/proc/7/status", "Cpus_allowed_list:\t0-3,8\n"},
          {"/proc/self/mountinfo", kMountsV2},
          {"/sys/fs/cgroup/job/cpu.max", "250000 100000\n"},
          {"/sys/fs/cgroup/job/cpu.stat", "nr_periods 50\nnr_throttled 5\nthrottled_usec 700\n"},
          {"/sys/fs/cgroup/job/memory.max", "4096000\n"},
          {"/sys/fs/cgroup/job/memory.current", "3000000\n"},
          {"/sys/fs/cgroup/job/memory.stat", "anon 1\ninactive_file 1000000\n"},
          {"/proc/diskstats",
           "   8       0 sda 10 0 100 20 5 0 50 5 0 30 0 0 0 0 0 0\n"
           "   8       1 sda1 9 0 90 19 5 0 50 5 0 29 0 0 0 0 0 0\n"}};
}

HostSample sampled(const Files& files, std::int64_t pid = 7) {
  return HostWatch(files_of(files), "/proc", pid).sample();
}

TEST(HostWatch, CountersInTheirUnits) {
  const HostSample host = sampled(machine());
  const std::int64_t tick = 1'000'000'000 / ::sysconf(_SC_CLK_TCK);
  EXPECT_EQ(host.busy_ns, (100 + 20 + 30 + 6 + 7) * tick) << "neither idle, waiting nor stolen";
  EXPECT_EQ(host.stolen_ns, 80 * tick);
  EXPECT_EQ(host.cpu_pressure_ns, 11'000);
  EXPECT_EQ(host.memory_pressure_ns, 12'000);
  EXPECT_EQ(host.io_pressure_ns, 13'000);
  EXPECT_EQ(host.memory_available, 2000 * 1024);
  EXPECT_EQ(host.swap_in_pages, 42);
  EXPECT_EQ(host.quota_milli, 2500);
  EXPECT_EQ(host.cores_milli, 2500) << "less than the five cores it is bound to";
  EXPECT_EQ(host.group_memory_most, 4'096'000);
  EXPECT_EQ(host.group_memory, 2'000'000) << "the kernel gives unused pages of files back first";
  EXPECT_EQ(host.disk_reads, 10) << "a part of a disk is not counted again";
  EXPECT_EQ(host.disk_read_bytes, 100 * 512);
  EXPECT_EQ(host.disk_read_ns, 20'000'000);
  EXPECT_EQ(host.disk_busy_ns, 30'000'000);
}

TEST(HostWatch, WhatCannotBeReadStaysZero) {
  const HostSample host = sampled({});
  for (const std::int64_t value :
       {host.busy_ns, host.stolen_ns, host.cpu_pressure_ns, host.memory_available,
        host.swap_in_pages, host.quota_milli, host.cores_milli, host.group_memory_most,
        host.throttled_ns, host.disk_reads})
    EXPECT_EQ(value, 0);
}

TEST(HostWatch, WithoutAQuotaTheBoundCoresCount) {
  Files files = machine();
  files["/sys/fs/cgroup/job/cpu.max"] = "max 100000\n";
  const HostSample host = sampled(files);
  EXPECT_EQ(host.quota_milli, 0);
  EXPECT_EQ(host.cores_milli, 5000);
}

TEST(HostWatch, GroupsOfTheFirstVersionToo) {
  Files files = machine();
  files["/proc/self/mountinfo"] = kMountsV1;
  files["/proc/7/cgroup"] = "4:memory:/docker/abc/job\n3:cpu,cpuacct:/docker/abc/job\n0::/\n";
  files["/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us"] = "150000\n";
  files["/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us"] = "100000\n";
  files["/sys/fs/cgroup/memory/job/memory.limit_in_bytes"] = "9000\n";
  files["/sys/fs/cgroup/memory/job/memory.usage_in_bytes"] = "8000\n";
  const HostSample host = sampled(files);
  EXPECT_EQ(host.quota_milli, 1500);
  EXPECT_EQ(host.group_memory_most, 9000);
  EXPECT_EQ(host.group_memory, 8000);
}

/// A group has counted before the job entered it, and what the job was held back in one that it
/// left still counts.
TEST(HostWatch, AJobThatMovesToAnotherGroupKeepsWhatItLost) {
  Files files = machine();
  files["/sys/fs/cgroup/other/cpu.stat"] = "nr_periods 900\nnr_throttled 90\nthrottled_usec 9000\n";
  const SystemFiles read = [&](const std::string& path) -> std::optional<std::string> {
    return files_of(files)(path);
  };
  HostWatch watch(read, "/proc", 7);
  EXPECT_EQ(watch.sample().throttled_periods, 0) << "what was before the watch is not the job's";
  files["/sys/fs/cgroup/job/cpu.stat"] = "nr_periods 60\nnr_throttled 9\nthrottled_usec 1000\n";
  HostSample host = watch.sample();
  EXPECT_EQ(host.periods, 10);
  EXPECT_EQ(host.throttled_periods, 4);
  EXPECT_EQ(host.throttled_ns, 300'000);
  files["/proc/7/cgroup"] = "0::/other\n";
  EXPECT_EQ(watch.sample().throttled_periods, 4);
  files["/sys/fs/cgroup/other/cpu.stat"] = "nr_periods 910\nnr_throttled 96\nthrottled_usec 9500\n";
  host = watch.sample();
  EXPECT_EQ(host.periods, 20);
  EXPECT_EQ(host.throttled_periods, 10);
  EXPECT_EQ(host.throttled_ns, 800'000);
  files.erase("/proc/7/cgroup");
  EXPECT_EQ(watch.sample().throttled_periods, 10) << "of a process that ended, its last group";
}

TEST(HostWatch, WholeDisksAlone) {
  const auto reads_of = [](const std::string& name) {
    HostSample host;
    add_disks("8 0 " + name + " 3 0 4 5 6 0 7 8 0 9 0\n", host);
    return host.disk_reads;
  };
  for (const char* disk : {"sda", "vdb", "xvdc", "hdd", "nvme0n1", "mmcblk0"})
    EXPECT_EQ(reads_of(disk), 3) << disk;
  for (const char* part :
       {"sda1", "vdb12", "nvme0n1p2", "mmcblk0p1", "loop0", "ram1", "dm-0", "sr0"})
    EXPECT_EQ(reads_of(part), 0) << part;
  HostSample host;
  add_disks("8 0 sda 3 0 4\n\nsda\n", host);
  EXPECT_EQ(host.disk_reads, 0) << "lines that are cut short";
}

}  // namespace
}  // namespace stoker
