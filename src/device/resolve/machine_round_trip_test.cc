#include <gtest/gtest.h>

#include "base/random.h"
#include "device/resolve/machine_file.h"

namespace stoker {
namespace {

const GpuCatalogue& shipped() {
  static const GpuCatalogue loaded = *GpuCatalogue::load();
  return loaded;
}

void expect_same(const Gpu& a, const Gpu& b) {
  SCOPED_TRACE(a.name);
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.vendor, b.vendor);
  EXPECT_EQ(a.architecture, b.architecture);
  EXPECT_EQ(a.chip, b.chip);
  EXPECT_EQ(a.compute_capability, b.compute_capability);
  EXPECT_EQ(a.sm_count, b.sm_count);
  EXPECT_EQ(a.fp32_cores_per_sm, b.fp32_cores_per_sm);
  EXPECT_DOUBLE_EQ(a.boost_mhz, b.boost_mhz);
  EXPECT_DOUBLE_EQ(a.peak.fp32, b.peak.fp32);
  EXPECT_DOUBLE_EQ(a.peak.fp16, b.peak.fp16);
  EXPECT_DOUBLE_EQ(a.peak.tf32_tensor, b.peak.tf32_tensor);
  EXPECT_DOUBLE_EQ(a.peak.fp16_tensor, b.peak.fp16_tensor);
  EXPECT_DOUBLE_EQ(a.peak.bf16_tensor, b.peak.bf16_tensor);
  EXPECT_EQ(a.memory, b.memory);
  EXPECT_EQ(a.usable_memory, b.usable_memory);
  EXPECT_EQ(a.context_memory, b.context_memory);
  EXPECT_DOUBLE_EQ(a.bandwidth, b.bandwidth);
  EXPECT_EQ(a.l2, b.l2);
  EXPECT_DOUBLE_EQ(a.pcie_bandwidth, b.pcie_bandwidth);
  EXPECT_EQ(a.link, b.link);
  EXPECT_DOUBLE_EQ(a.link_bandwidth, b.link_bandwidth);
  EXPECT_DOUBLE_EQ(a.tdp_watts, b.tdp_watts);
  EXPECT_DOUBLE_EQ(a.price_per_hour, b.price_per_hour);
  EXPECT_EQ(a.source, b.source);
  EXPECT_EQ(a.notes, b.notes);
}

void expect_same(const Host& a, const Host& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_DOUBLE_EQ(a.cores, b.cores);
  EXPECT_EQ(a.memory, b.memory);
  EXPECT_EQ(a.shared_memory, b.shared_memory);
  EXPECT_DOUBLE_EQ(a.disk_bandwidth, b.disk_bandwidth);
  EXPECT_DOUBLE_EQ(a.disk_iops, b.disk_iops);
  EXPECT_DOUBLE_EQ(a.relative_core_speed, b.relative_core_speed);
  EXPECT_EQ(a.cpu, b.cpu);
}

/// A host whose figures have as many digits as figures can have.
Host drawn_host(Random& random) {
  Host host;
  host.name = random.below(2) == 0 ? "node 3" : "rack \"7\" # of ours";
  host.cores = random.uniform(0.5, 256);
  host.memory = Bytes(static_cast<std::int64_t>(random.uniform(1e9, 4e12)));
  host.shared_memory = Bytes(host.memory.count() / static_cast<std::int64_t>(1 + random.below(9)));
  if (random.below(2) == 0) host.disk_bandwidth = random.uniform(1e6, 1e10);
  if (random.below(2) == 0) host.disk_iops = random.uniform(100, 1e6);
  host.relative_core_speed = random.uniform(0.05, 20);
  if (random.below(3) == 0) host.cpu = "AMD EPYC 7742 64-Core Processor";
  return host;
}

TEST(MachineRoundTrip, EveryGpuOfTheCatalogueIsReadAsItWasWritten) {
  Random random(21);
  int count = 0;
  for (const Gpu& row : shipped().all()) {
    if (!check_complete(row)) continue;
    ++count;
    Gpu gpu = row;
    if (random.below(2) == 0) gpu.price_per_hour = random.uniform(0.01, 40);
    if (random.below(2) == 0) gpu.context_memory = Bytes(gpu.usable_memory.count() / 40);
    MachineFile file;
    file.name = "lab " + std::to_string(count);
    file.device = Device(gpu);
    file.gpu_count = static_cast<int>(1 + random.below(16));
    file.nodes = static_cast<int>(1 + random.below(8));
    if (random.below(2) == 0) file.network_bandwidth = random.uniform(1e8, 5e11);
    file.host = drawn_host(random);
    const std::string text = machine_file_text(file);
    const auto back = parse_machine_file(text, "m.toml", shipped());
    ASSERT_TRUE(back.has_value()) << back.error().text() << "\n" << text;
    expect_same(gpu, *back->device->gpu());
    expect_same(*file.host, *back->host);
    EXPECT_EQ(back->name, file.name);
    EXPECT_EQ(back->gpu_count, file.gpu_count);
    EXPECT_EQ(back->nodes, file.nodes);
    EXPECT_DOUBLE_EQ(back->network_bandwidth, file.network_bandwidth);
    EXPECT_EQ(machine_file_text(*back), text);
  }
  EXPECT_GT(count, 50);
}

TEST(MachineRoundTrip, AFileOverACatalogueRowChangesNothingElse) {
  for (const Gpu& row : shipped().all()) {
    if (!check_complete(row)) continue;
    const auto file =
        parse_machine_file("[gpu]\nbase = \"" + row.name + "\"\ncount = 2\n", "m.toml", shipped());
    ASSERT_TRUE(file.has_value()) << file.error().text();
    expect_same(row, *file->device->gpu());
  }
}

TEST(MachineRoundTrip, ACpuIsReadAsItWasWritten) {
  Random random(22);
  for (int i = 0; i < 200; ++i) {
    Cpu cpu;
    cpu.name = i % 2 == 0 ? "AMD EPYC" : "Intel(R) Xeon(R) \"Platinum\" 8480+";
    cpu.cores = static_cast<int>(1 + random.below(256));
    cpu.simd_bits = 128 << random.below(3);
    cpu.clock_mhz = random.uniform(800, 6000);
    cpu.peak.fp32 = random.uniform(1e10, 1e13);
    cpu.bandwidth = random.uniform(1e9, 1e12);
    if (random.below(2) == 0) cpu.l1 = Bytes(32 << 10), cpu.l2 = Bytes(1 << 20);
    if (random.below(2) == 0) cpu.l3 = Bytes(static_cast<std::int64_t>(random.uniform(1e6, 1e9)));
    cpu.memory = cpu.usable_memory = Bytes(static_cast<std::int64_t>(random.uniform(1e9, 4e12)));
    if (random.below(2) == 0) cpu.context_memory = Bytes(250 << 20);
    MachineFile file;
    file.name = "box";
    file.device = Device(cpu);
    const std::string text = machine_file_text(file);
    const auto back = parse_machine_file(text, "m.toml", shipped());
    ASSERT_TRUE(back.has_value()) << back.error().text() << "\n" << text;
    const Cpu& read = *back->device->cpu();
    EXPECT_EQ(read.name, cpu.name);
    EXPECT_EQ(read.cores, cpu.cores);
    EXPECT_EQ(read.simd_bits, cpu.simd_bits);
    EXPECT_DOUBLE_EQ(read.clock_mhz, cpu.clock_mhz);
    EXPECT_DOUBLE_EQ(read.peak.fp32, cpu.peak.fp32);
    EXPECT_DOUBLE_EQ(read.bandwidth, cpu.bandwidth);
    EXPECT_EQ(read.l1, cpu.l1);
    EXPECT_EQ(read.l2, cpu.l2);
    EXPECT_EQ(read.l3, cpu.l3);
    EXPECT_EQ(read.memory, cpu.memory);
    EXPECT_EQ(read.context_memory, cpu.context_memory);
  }
}

}  // namespace
}  // namespace stoker
