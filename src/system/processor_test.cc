#include "system/processor.h"

#include <gtest/gtest.h>

#include "system/test_files.h"

namespace stoker {
namespace {

using test_system::files_of;

const std::string kCpus = "/sys/devices/system/cpu/";

TEST(Processor, ReadsAnX86Server) {
  const Processor p = processor_from(files_of(
      {{"/proc/cpuinfo",
        "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Xeon @ 2.10GHz\ncpu MHz\t\t: "
        "2900.1\nsiblings\t: 4\ncpu cores\t: 2\nflags\t\t: fpu sse2 avx avx2 fma avx512f amx_bf16\n"
        "\nprocessor\t: 1\nmodel name\t: other\n"},
       {kCpus + "online", "0-3\n"},
       {kCpus + "cpu0/topology/thread_siblings_list", "0,2\n"},
       {kCpus + "cpu1/topology/thread_siblings_list", "1,3\n"},
       {kCpus + "cpu2/topology/thread_siblings_list", "0,2\n"},
       {kCpus + "cpu3/topology/thread_siblings_list", "1,3\n"},
       {kCpus + "cpu0/cache/index0/level", "1\n"},
       {kCpus + "cpu0/cache/index0/type", "Data\n"},
       {kCpus + "cpu0/cache/index0/size", "32K\n"},
       {kCpus + "cpu0/cache/index1/level", "1\n"},
       {kCpus + "cpu0/cache/index1/type", "Instruction\n"},
       {kCpus + "cpu0/cache/index1/size", "64K\n"},
       {kCpus + "cpu0/cache/index2/level", "3\n"},
       {kCpus + "cpu0/cache/index2/size", "30720K\n"},
       {kCpus + "cpu0/cache/index2/shared_cpu_list", "0-1\n"}}));
  EXPECT_EQ(p.name, "Xeon @ 2.10GHz");
  EXPECT_EQ(p.vendor, "GenuineIntel");
  EXPECT_EQ(p.logical_cores, 4);
  EXPECT_EQ(p.physical_cores, 2);
  EXPECT_DOUBLE_EQ(p.threads_per_core, 2);
  EXPECT_EQ(p.simd_bits, 512);
  EXPECT_EQ(p.simd,
            (std::vector<std::string>{"sse2", "avx", "fma", "avx2", "avx512f", "amx_bf16"}));
  EXPECT_DOUBLE_EQ(p.clock_mhz, 2100) << "by its name, before what it runs at now";
  EXPECT_EQ(p.caches.l1, kKiB * 32) << "not the one for instructions";
  EXPECT_EQ(p.caches.l2, Bytes{});
  EXPECT_EQ(p.caches.l3, kMiB * 30);
  EXPECT_EQ(p.caches.l3_sharing, 2);
}

TEST(Processor, ReadsAnArmServer) {
  const Processor p = processor_from(
      files_of({{"/proc/cpuinfo",
                 "processor\t: 0\nFeatures\t: fp asimd bf16 sve\nCPU implementer\t: 0x41\n"},
                {kCpus + "online", "0-1\n"},
                {kCpus + "cpu0/cpufreq/cpuinfo_max_freq", "2600000\n"}}));
  EXPECT_EQ(p.name, "");
  EXPECT_EQ(p.vendor, "0x41");
  EXPECT_EQ(p.simd, (std::vector<std::string>{"asimd", "bf16", "sve"}));
  EXPECT_EQ(p.simd_bits, 128);
  EXPECT_DOUBLE_EQ(p.clock_mhz, 2600);
  EXPECT_EQ(p.physical_cores, 0) << "the topology is hidden";
  EXPECT_EQ(processor_from(files_of({{"/proc/cpuinfo", "Hardware\t: BCM2835\n"}})).name, "BCM2835");
}

TEST(Processor, WhatCannotBeReadStaysUnknown) {
  const Processor p = processor_from(files_of({}));
  EXPECT_EQ(p.name, "");
  EXPECT_EQ(p.logical_cores, 0);
  EXPECT_EQ(p.simd_bits, 0);
  EXPECT_DOUBLE_EQ(p.clock_mhz, 0);
  EXPECT_DOUBLE_EQ(p.threads_per_core, 1);
  EXPECT_DOUBLE_EQ(
      processor_from(files_of({{"/proc/cpuinfo", "model name\t: X @ nanGHz\n"}})).clock_mhz, 0);
}

TEST(Processor, ThisOneHasANameAndCores) {
  const Processor here = this_processor();
  EXPECT_FALSE(here.name.empty());
  EXPECT_GT(here.logical_cores, 0);
  EXPECT_TRUE(same_processor(here, this_processor()));
}

TEST(SameProcessor, CoresDoNotCountAndWidthsAndCachesDo) {
  Processor a{.name = "Intel(R) Xeon(R) Processor", .logical_cores = 8, .simd_bits = 512};
  a.caches = {.l1 = kKiB * 32, .l2 = kMiB, .l3 = kMiB * 30, .l3_sharing = 8};
  Processor b = a;
  b.logical_cores = 2;
  b.caches.l3 = {};
  EXPECT_TRUE(same_processor(a, b));
  b.name = "intel(r) xeon(r) processor";
  EXPECT_TRUE(same_processor(a, b));
  b.simd_bits = 256;
  EXPECT_FALSE(same_processor(a, b)) << "a hypervisor gives many processors this name";
  b.simd_bits = 0;
  EXPECT_TRUE(same_processor(a, b)) << "not told";
  b.caches.l2 = kMiB * 2;
  EXPECT_FALSE(same_processor(a, b));
  EXPECT_FALSE(same_processor(a, {.name = "AMD EPYC"}));
}

}  // namespace
}  // namespace stoker
