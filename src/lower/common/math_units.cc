#include "lower/common/math_units.h"

namespace stoker {

MathUnit unit_for(const Work& work, const Job& job, const DeviceFacts& device) {
  const bool product = work.kernel_class == KernelClass::kGemm ||
                       work.kernel_class == KernelClass::kAttention ||
                       work.kernel_class == KernelClass::kRnn;
  const bool convolution = work.kernel_class == KernelClass::kConvolution;
  switch (work.dtype) {
    case DType::kF16:
      if ((product || convolution) && device.peak.fp16_tensor > 0) return MathUnit::kFp16Tensor;
      return product || convolution ? MathUnit::kFp16 : MathUnit::kFp32;
    case DType::kBf16:
      // Without bf16 units PyTorch computes in fp32 and rounds.
      return (product || convolution) && device.peak.bf16_tensor > 0 ? MathUnit::kBf16Tensor
                                                                     : MathUnit::kFp32;
    case DType::kF64:
      return MathUnit::kFp64;
    case DType::kTf32:
      return MathUnit::kTf32Tensor;
    case DType::kI64:
    case DType::kI32:
    case DType::kI16:
    case DType::kI8:
    case DType::kU8:
    case DType::kBool:
      return MathUnit::kInteger;
    default:
      break;
  }
  // torch.backends.cudnn.allow_tf32 is on by default and holds for convolutions and recurrent
  // layers.
  const bool cudnn = convolution || work.kernel_class == KernelClass::kRnn;
  const bool allowed = job.precision == Precision::kTf32 || cudnn || (product && job.tf32_matmul);
  return allowed && (product || convolution) && device.peak.tf32_tensor > 0 ? MathUnit::kTf32Tensor
                                                                            : MathUnit::kFp32;
}

void note_units(const Job& job, const DeviceFacts& device, Diagnostics& diagnostics) {
  const auto note = [&](const char* what) {
    diagnostics.add("no_unit_for_precision", Severity::kWarning, device.name + " has no " + what);
  };
  const bool bf16 = job.precision == Precision::kAmpBf16 || job.precision == Precision::kBf16;
  const bool fp16 = job.precision == Precision::kAmpFp16 || job.precision == Precision::kFp16;
  if (bf16 && device.peak.bf16_tensor <= 0) note("BF16 units: products are computed in FP32");
  if (fp16 && device.peak.fp16_tensor <= 0)
    note("FP16 tensor cores: half precision saves bytes only");
  if (job.precision == Precision::kTf32 && device.peak.tf32_tensor <= 0) {
    note("TF32: this is plain FP32");
  }
}

}  // namespace stoker
