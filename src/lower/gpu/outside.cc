#include "lower/gpu/outside.h"

#include <algorithm>
#include <string>

namespace stoker {
namespace {

// Context and libraries of a training process, as three terms whose sums were measured
// (docs/models/memory.md, "Outside the allocator"). They are defaults: driver, CUDA and PyTorch
// move them.

/// The context alone, before the first kernel: RTX 6000 Ada, PyTorch 2.10 with CUDA 13 (unslothai,
/// unsloth-zoo pull request 1053).
constexpr Bytes kContext{426LL << 20};
/// What whole runs without convolutions kept on an A100: the smallest of 2,097 training runs of
/// multilayer perceptrons (GPUMemNet, arXiv 2602.17817) took 1,451 MiB, of which the allocator's
/// segments are 22.
constexpr Bytes kWithCublas{1430LL << 20};
/// What fitted whole runs of convolution networks on an A100, with cuDNN (docs/accuracy.md).
constexpr Bytes kWithCudnn{1720LL << 20};

/// How much less of it other GPUs keep. SchedTune's table has the same eight networks on five GPUs;
/// these are the medians of the differences to an RTX 3090 over six of them at batches 8 to 32
/// (the two VGGs are apart by their workspaces).
constexpr Bytes kLessOnKepler{930LL << 20};  ///< K80
constexpr Bytes kLessOnTuring{330LL << 20};  ///< T4; also taken for Maxwell and Pascal
constexpr Bytes kLessOnVolta{60LL << 20};    ///< V100
/// From Ampere on by multiprocessors: the RTX 3070 with 46 keeps exactly 128 MiB less than the
/// RTX 3090 with 82 in 13 of 18 rows. Larger GPUs keep no more: the A100 has 108.
constexpr std::int64_t kReferenceMultiprocessors = 82;
constexpr Bytes kPerMultiprocessor{(128LL << 20) / (82 - 46)};

/// Buffers of one NCCL communicator, which PyTorch does not see. An assumption: NCCL keeps some
/// MiB for each channel and connection, and their number depends on the links.
constexpr Bytes kNccl{300LL << 20};

Bytes less_than_reference(const Gpu& gpu) {
  switch (gpu.architecture) {
    case Architecture::kKepler:
      return kLessOnKepler;
    case Architecture::kMaxwell:
    case Architecture::kPascal:
    case Architecture::kTuring:
      return kLessOnTuring;
    case Architecture::kVolta:
      return kLessOnVolta;
    default:
      break;
  }
  if (gpu.sm_count <= 0) return Bytes(0);
  return kPerMultiprocessor * std::max<std::int64_t>(0, kReferenceMultiprocessors - gpu.sm_count);
}

}  // namespace

Libraries libraries_of(const Program& program) {
  Libraries used;
  for (const Kernel& kernel : program.kernels) {
    switch (kernel.kernel_class) {
      case KernelClass::kConvolution:
      case KernelClass::kDepthwiseConvolution:
      case KernelClass::kRnn:
        used.cudnn = true;
        [[fallthrough]];
      case KernelClass::kGemm:
      case KernelClass::kAttention:
        used.cublas = true;
        break;
      default:
        break;
    }
  }
  return used;
}

std::vector<OutsideMemory> outside_of_gpu(const Job& job, const Gpu& gpu, Libraries used) {
  std::vector<OutsideMemory> outside;
  if (gpu.context_memory) {
    outside.push_back({"context and libraries", *gpu.context_memory, "machine file"});
  } else {
    outside.push_back({"CUDA context", kContext,
                       "default: measured on an RTX 6000 Ada before it computed anything"});
    const Bytes less = less_than_reference(gpu);
    if (used.cublas) {
      outside.push_back({"kernels and cuBLAS", kWithCublas - kContext - less,
                         less > Bytes(0)
                             ? "default: measured in small runs on an A100, lowered for "
                               "this generation of GPU"
                             : "default: measured in small runs on an A100"});
    }
    if (used.cudnn) {
      outside.push_back(
          {"cuDNN", kWithCudnn - kWithCublas,
           "default: what networks with convolutions keep more than others on an A100"});
    }
  }
  if (job.gpus > 1) outside.push_back({"NCCL buffers", kNccl, "assumed"});
  return outside;
}

}  // namespace stoker
