#include "lower/common/math_units.h"

#include <gtest/gtest.h>

#include "lower/common/test_jobs.h"

namespace stoker {
namespace {

using testing_support::ampere;

TEST(MathUnits, Tf32IsTakenWhereSwitchesAllowIt) {
  Work product;
  product.kernel_class = KernelClass::kGemm;
  Work convolution;
  convolution.kernel_class = KernelClass::kConvolution;
  Job job;
  const Gpu gpu = *ampere().device.gpu();
  Gpu volta = gpu;
  volta.peak.tf32_tensor = volta.peak.bf16_tensor = 0;
  const auto unit = [&](const Work& w, const Gpu& g) {
    return static_cast<int>(unit_for(w, job, g));
  };
  EXPECT_EQ(unit(product, gpu), static_cast<int>(MathUnit::kFp32));
  EXPECT_EQ(unit(convolution, gpu), static_cast<int>(MathUnit::kTf32Tensor));
  EXPECT_EQ(unit(convolution, volta), static_cast<int>(MathUnit::kFp32));
  Work recurrent;
  recurrent.kernel_class = KernelClass::kRnn;  // cuDNN's flag covers it too
  EXPECT_EQ(unit(recurrent, gpu), static_cast<int>(MathUnit::kTf32Tensor));
  job.precision = Precision::kTf32;
  EXPECT_EQ(unit(product, gpu), static_cast<int>(MathUnit::kTf32Tensor));
  product.dtype = DType::kBf16;
  EXPECT_EQ(unit(product, volta), static_cast<int>(MathUnit::kFp32));
  EXPECT_EQ(unit(product, gpu), static_cast<int>(MathUnit::kBf16Tensor));
}

}  // namespace
}  // namespace stoker
