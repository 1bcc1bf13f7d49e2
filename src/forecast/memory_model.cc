#include "forecast/memory_model.h"

namespace stoker {
namespace {

/// One fragment in thirty: fitted to the resident peaks of eight runs of six models of five steps
/// (docs/models/cpu-memory.md); those of the proof and the rows of the band are others.
constexpr double kKeptFragments = 1.0 / 30;

constexpr MemoryModel kGpuMemory{.heap = std::nullopt,
                                 .refuses = true,
                                 .simulation = "PyTorch's allocator simulated",
                                 .outside = "CUDA context and libraries",
                                 .cure = "take a GPU with more memory (`stoker gpus`)",
                                 .error_case = ""};

constexpr MemoryModel kCpuMemory{.heap = HeapRules{.kept_fragments = kKeptFragments},
                                 .refuses = false,
                                 .simulation = "the C library's heap simulated",
                                 .outside = "Python and PyTorch",
                                 .cure = "take a machine with more memory",
                                 .error_case = "cpu"};

}  // namespace

const MemoryModel& memory_model_of(const Device& device) {
  return *device.visit([](const Gpu&) { return &kGpuMemory; },
                       [](const Cpu&) { return &kCpuMemory; });
}

}  // namespace stoker
