#include "lower/outside.h"

namespace stoker {
namespace {

/// CUDA context, kernels and libraries of a training process. It differs by GPU, driver and PyTorch
/// (docs/memory-model.md): 1,720 MiB is what fitted whole training runs on an A100 under PyTorch
/// 2.x with cuDNN and cuBLAS loaded. gpu.context_memory in a machine file replaces it.
constexpr Bytes kContextDefault{1720LL << 20};
/// Buffers of one NCCL communicator; not visible to PyTorch. An assumption until measured.
constexpr Bytes kNcclDefault{300LL << 20};

}  // namespace

std::vector<OutsideMemory> outside_memory(const Job& job, const Machine& machine) {
  std::vector<OutsideMemory> outside;
  if (machine.gpu.context_memory) {
    outside.push_back({"context and libraries", *machine.gpu.context_memory, "machine file"});
  } else {
    outside.push_back(
        {"context and libraries", kContextDefault, "default; fitted on A100 training runs"});
  }
  if (job.gpus > 1) outside.push_back({"NCCL buffers", kNcclDefault, "assumed"});
  return outside;
}

}  // namespace stoker
