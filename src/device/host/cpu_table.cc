#include "device/host/cpu_table.h"

#include <bit>

#include "base/text.h"
#include "device/host/this_cpu.h"
#include "device/scales.h"

namespace stoker {
namespace {

void read_caches(TomlTable& table, Cpu& cpu) {
  table.size("l1", range::kCacheBytes, cpu.l1);
  table.size("l2", range::kCacheBytes, cpu.l2);
  table.size("l3", range::kCacheBytes, cpu.l3);
  if (cpu.l1 > cpu.l2 && cpu.l2.count() > 0) {
    table.reject("l1", human_bytes(cpu.l1) + " exceeds the second level's " + human_bytes(cpu.l2) +
                           "; both are of one core");
  }
}

void read_memory(TomlTable& table, Cpu& cpu) {
  table.size("memory", range::kMemoryBytes, cpu.memory);
  cpu.usable_memory = cpu.memory;
  Bytes context;
  table.size("context_memory", range::kPartBytes, context);
  if (!table.has("context_memory")) return;
  cpu.context_memory = context;
  if (cpu.memory.count() > 0 && context >= cpu.memory) {
    table.reject("context_memory", human_bytes(context) + " leaves nothing of the memory of " +
                                       human_bytes(cpu.memory));
  }
}

}  // namespace

Cpu read_cpu(TomlTable& table) {
  Cpu cpu;
  table.text("name", cpu.name);
  table.text("source", cpu.source);
  table.text("notes", cpu.notes);
  table.integer("cores", range::kCpuCores, cpu.cores);
  table.integer("simd_bits", range::kSimdBits, cpu.simd_bits);
  if (!std::has_single_bit(static_cast<unsigned>(cpu.simd_bits)) && cpu.simd_bits != 0)
    table.reject("simd_bits", "must be a power of two: 128, 256 or 512");
  table.number("clock_mhz", range::kClockMhz, 1, cpu.clock_mhz);
  table.number("fp32_tflops", range::kTeraflops, kTera, cpu.peak.fp32);
  table.number("bandwidth_gbs", range::kBandwidthGbs, kGiga, cpu.bandwidth);
  table.number("tdp_watts", range::kWatts, 1, cpu.tdp_watts);
  table.number("price_per_hour", range::kPrice, 1, cpu.price_per_hour);
  read_caches(table, cpu);
  read_memory(table, cpu);
  if (table.has("name") && cpu.name.empty()) table.reject("name", "is empty");
  for (const char* needed : {"name", "cores", "memory", "bandwidth_gbs"}) {
    if (!table.has(needed)) table.reject("", std::string("lacks ") + needed + "; add it");
  }
  if (!table.has("fp32_tflops")) {
    cpu.peak.fp32 = vector_peak(cpu.cores, cpu.clock_mhz, cpu.simd_bits);
    if (cpu.peak.fp32 == 0) {
      table.reject("", "lacks fp32_tflops; add it, or clock_mhz and simd_bits, which tell it");
    } else if (const auto good = within(cpu.peak.fp32 / kTera, range::kTeraflops); !good) {
      table.reject("", "cores, clock_mhz and simd_bits make " + good.error().message);
    }
  }
  return cpu;
}

}  // namespace stoker
