#include "operators/shapes.h"

namespace stoker {

std::string_view name_of(KernelClass kernel_class) {
  switch (kernel_class) {
    case KernelClass::kGemm:
      return "gemm";
    case KernelClass::kConvolution:
      return "convolution";
    case KernelClass::kDepthwiseConvolution:
      return "depthwise_convolution";
    case KernelClass::kAttention:
      return "attention";
    case KernelClass::kNormalization:
      return "normalization";
    case KernelClass::kSoftmax:
      return "softmax";
    case KernelClass::kReduction:
      return "reduction";
    case KernelClass::kElementwise:
      return "elementwise";
    case KernelClass::kGather:
      return "gather";
    case KernelClass::kPooling:
      return "pooling";
    case KernelClass::kResample:
      return "resample";
    case KernelClass::kRnn:
      return "rnn";
    case KernelClass::kCopy:
      return "copy";
    case KernelClass::kOptimizer:
      return "optimizer";
    case KernelClass::kHostToDevice:
      return "host_to_device";
    case KernelClass::kFill:
      return "fill";
    case KernelClass::kCollective:
      return "collective";
    case KernelClass::kUncosted:
      return "uncosted";
  }
  return "";
}

std::string_view name_of(AttentionBackend backend) {
  switch (backend) {
    case AttentionBackend::kFlash:
      return "flash";
    case AttentionBackend::kMemoryEfficient:
      return "memory_efficient";
    case AttentionBackend::kMath:
      return "math";
  }
  return "";
}

}  // namespace stoker
