#pragma once

#include "program/program.h"
#include "timing/common/coefficients.h"

/// Round-numbered machines and kernels for the tests of this folder.
namespace stoker::timing_test {

/// 1 TFLOP/s on 10 SMs, 1 GB/s, no cache, no power limit: one byte takes one nanosecond.
inline Gpu round_gpu() {
  Gpu gpu;
  gpu.name = "round";
  gpu.architecture = Architecture::kOther;
  gpu.boost_mhz = 4000;  // narrow tensor cores: no discount
  gpu.sm_count = 10;
  gpu.peak.fp32 = 1e12;
  gpu.bandwidth = 1e9;
  gpu.pcie_bandwidth = 1e9;
  return gpu;
}

/// An Ampere GPU by its data sheet: 108 SMs, tensor cores, 1.5 TB/s.
inline Gpu ampere_gpu() {
  Gpu gpu;
  gpu.name = "mine";
  gpu.architecture = Architecture::kAmpere;
  gpu.compute_capability = 80;
  gpu.sm_count = 108;
  gpu.peak = {19.5e12, 78e12, 156e12, 312e12, 312e12};
  gpu.bandwidth = 1.5e12;
  gpu.pcie_bandwidth = 3.2e10;
  gpu.l2 = kMiB * 40;
  return gpu;
}

/// Four cores with vectors of 512 bits at 2 GHz (128 FLOP/s x 10^9 each), caches of 1 MiB and 16
/// MiB.
inline Cpu round_cpu() {
  Cpu cpu;
  cpu.name = "round-cpu";
  cpu.cores = 4;
  cpu.clock_mhz = 2000;
  cpu.peak.fp32 = 4 * 128e9;
  cpu.bandwidth = 20e9;
  cpu.memory = cpu.usable_memory = kGiB * 8;
  cpu.simd_bits = 512;
  cpu.l1 = kKiB * 32, cpu.l2 = kMiB, cpu.l3 = kMiB * 16;
  return cpu;
}

/// Efficiencies of 1, and nothing that costs time by itself.
inline Coefficients ideal() {
  Coefficients c;
  for (auto& entry : c.classes) entry = {1, 1, 0.1};
  c.kernel.floor = Micros(0);
  c.kernel.launch = Micros(0);
  c.kernel.tile_prologue = 0;
  c.kernel.lone_block = 1;
  c.host = {.forward = Micros(0),
            .autograd = Micros(0),
            .module = Micros(0),
            .backward = Micros(0),
            .library = Micros(0),
            .product = Micros(0),
            .rows = Micros(0),
            .attention = Micros(0),
            .conversion = Micros(0),
            .optimizer = Micros(0),
            .list = Micros(0),
            .update = Micros(0),
            .view = Micros(0),
            .launch = Micros(0),
            .synchronize = Micros(0),
            .step = Micros(0),
            .graph = Micros(0),
            .graph_kernel = Micros(0),
            .spread = 0.5,
            .speed = 1};
  c.copy = {1, 0.5, Micros(0)};
  c.collective.contention = 0;
  c.collective.straggler = 0;
  c.collective.straggler_wait = Micros(0);
  return c;
}

/// An all-reduce between two GPUs that takes a nanosecond a byte and no latency.
inline FabricFit wire() { return {"wire", 2, {{1e-3, 1e-6_us}, {1e9, 1e6_us}}, {{1e9, 0.1}}}; }

/// Takes `microseconds` on round_gpu().
inline Kernel moving(double microseconds, StepPhase phase = StepPhase::kForward) {
  Kernel kernel;
  kernel.kernel_class = KernelClass::kElementwise;
  kernel.phase = phase;
  kernel.read = Bytes(static_cast<std::int64_t>(microseconds * 1000));
  return kernel;
}

/// Appends one launch of `kernel` to the iteration.
inline void launch(Program& program, const Kernel& kernel) {
  program.iteration.push_back({InstructionKind::kLaunch, When::kAlways,
                               static_cast<std::uint32_t>(program.kernels.size())});
  program.kernels.push_back(kernel);
  program.kernels.back().source = static_cast<std::uint32_t>(program.kernels.size());
}

}  // namespace stoker::timing_test
