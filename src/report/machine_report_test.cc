#include "report/model/machine_report.h"

#include <gtest/gtest.h>

#include <limits>

#include "json/text.h"

namespace stoker {
namespace {

MachineReport limited() {
  MachineReport r;
  r.tool_version = "0.1.0";
  Processor& p = r.facts.processor;
  p = {.name = "AMD EPYC", .vendor = "AuthenticAMD", .logical_cores = 8, .physical_cores = 4};
  p.simd_bits = 256;
  p.simd = {"avx", "avx2"};
  p.clock_mhz = 2600;
  p.caches = {.l1 = kKiB * 32, .l2 = kMiB, .l3 = kMiB * 16, .l3_sharing = 8};
  HostLimits& l = r.facts.limits;
  l = {.processors = 8, .affinity = 6, .quota = 1.5, .cgroup_version = 1};
  l.shared_memory = kGiB * 8;
  l.shared_memory_free = kGiB * 7;
  l.open_files = std::numeric_limits<std::int64_t>::max();
  r.facts.memory.total = kGiB * 16;
  r.facts.memory.available = kGiB * 10;
  r.facts.memory.limit = MemoryLimit{kGiB * 4, kGiB};
  r.facts.cpu_cgroup = {1, {"/sys/fs/cgroup/cpu/job", "/sys/fs/cgroup/cpu"}};
  r.facts.kernel = "6.1.0";
  r.facts.gpus.nvidia_driver = "550.54.15";
  r.facts.gpus.devices = {{.name = "NVIDIA T4", .vendor = "nvidia", .bus_id = "0000:3b:00.0"}};
  r.load = {.seconds = 0.2, .others_share = 0.25, .steal_share = 0, .load_average = 1.5};
  return r;
}

TEST(MachineReport, JsonTellsWhatAProcessMayUse) {
  const auto json = json::parse(machine_json(limited())).value();
  EXPECT_EQ(json["schema"], "stoker-machine-1");
  EXPECT_EQ(json["stoker"], "0.1.0");
  EXPECT_EQ(json["cpu_name"], "AMD EPYC");
  EXPECT_EQ(json["cores"], 1.5);
  EXPECT_EQ(json["affinity_cores"], 6);
  EXPECT_EQ(json["quota_cores"], 1.5);
  EXPECT_EQ(json["logical_cores"], 8);
  EXPECT_EQ(json["physical_cores"], 4);
  EXPECT_EQ(json["memory_bytes"], (kGiB * 4).count());
  EXPECT_EQ(json["memory_limit_bytes"], (kGiB * 4).count());
  EXPECT_EQ(json["memory_available_bytes"], (kGiB * 3).count());
  EXPECT_EQ(json["shared_memory_bytes"], (kGiB * 8).count());
  EXPECT_EQ(json["cgroup_version"], 1);
  EXPECT_EQ(json["cgroup_folder"], "/sys/fs/cgroup/cpu/job");
  EXPECT_EQ(json["load"]["others_share"], 0.25);
  EXPECT_EQ(json["gpus"][0]["name"], "NVIDIA T4");
  EXPECT_TRUE(json["gpus"][0]["memory_bytes"].is_null());
}

TEST(MachineReport, JsonHasNullForWhatIsNotTold) {
  const auto json = json::parse(machine_json({})).value();
  for (const char* key :
       {"cpu_name", "cores", "affinity_cores", "quota_cores", "logical_cores", "physical_cores",
        "memory_bytes", "memory_limit_bytes", "shared_memory_bytes", "cgroup_version", "kernel"})
    EXPECT_TRUE(json[key].is_null()) << key;
  EXPECT_TRUE(json["load"]["others_share"].is_null()) << "nobody looked";
  EXPECT_TRUE(json["gpus"].empty());
}

TEST(MachineReport, TextTellsTheSame) {
  const std::string text = machine_text(limited());
  for (const char* line :
       {"AMD EPYC (AuthenticAMD)", "1.5 usable of 8 online (4 physical); affinity 6; quota 1.5",
        "256 bits: avx avx2", "4.0 GiB usable of 16.0 GiB; limit 4.0 GiB; 3.0 GiB available",
        "8.0 GiB; 7.0 GiB free", "no limit", "version 1, /sys/fs/cgroup/cpu/job",
        "others use 25 % of the cores, the hypervisor 0 % (0.2 s); load average 1.50",
        "NVIDIA T4 at 0000:3b:00.0; memory and load not told"})
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  const std::string blind = machine_text({});
  EXPECT_NE(blind.find("usable ones not told of an unknown number online; no quota"),
            std::string::npos)
      << blind;
  EXPECT_NE(blind.find("none found"), std::string::npos);
}

}  // namespace
}  // namespace stoker
