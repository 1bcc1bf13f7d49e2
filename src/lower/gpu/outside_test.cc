#include "lower/gpu/outside.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace stoker {
namespace {

Gpu gpu_with(Architecture architecture, int multiprocessors) {
  Gpu gpu;
  gpu.architecture = architecture;
  gpu.sm_count = multiprocessors;
  return gpu;
}

Program program_with(std::initializer_list<KernelClass> classes) {
  Program program;
  for (const KernelClass kernel_class : classes) {
    Kernel kernel;
    kernel.kernel_class = kernel_class;
    program.kernels.push_back(kernel);
  }
  return program;
}

std::int64_t mebibytes_of(const std::vector<OutsideMemory>& outside) {
  Bytes sum;
  for (const OutsideMemory& term : outside) {
    EXPECT_FALSE(term.basis.empty()) << term.name;
    EXPECT_GE(term.bytes, Bytes(0)) << term.name;
    sum += term.bytes;
  }
  return sum.count() >> 20;
}

TEST(Outside, OnlyTheLibrariesThatAreCalled) {
  const Gpu a100 = gpu_with(Architecture::kAmpere, 108);
  const auto at = [&](const Program& p) {
    return mebibytes_of(outside_of_gpu({}, a100, libraries_of(p)));
  };
  EXPECT_EQ(at(program_with({KernelClass::kElementwise, KernelClass::kOptimizer})), 426);
  EXPECT_EQ(at(program_with({KernelClass::kElementwise, KernelClass::kGemm})), 1430);
  EXPECT_EQ(at(program_with({KernelClass::kAttention})), 1430);
  EXPECT_EQ(at(program_with({KernelClass::kConvolution})), 1720);
  EXPECT_EQ(at(program_with({KernelClass::kGemm, KernelClass::kRnn})), 1720);
  EXPECT_EQ(mebibytes_of(outside_of_gpu({}, a100, {true, true})), 1720);
}

/// SchedTune's ResNet-50 at batch 16 on K80, T4, V100, RTX 3070 and RTX 3090: the differences of
/// the whole device peaks, which the terms must give to within the spread of the six networks.
TEST(Outside, DiffersByGpuAsMeasured) {
  const std::int64_t reference =
      mebibytes_of(outside_of_gpu({}, gpu_with(Architecture::kAmpere, 82), {true, true}));
  const auto less = [&](Architecture architecture, int multiprocessors) {
    return reference -
           mebibytes_of(outside_of_gpu({}, gpu_with(architecture, multiprocessors), {true, true}));
  };
  constexpr int kSpreadMiB = 50;
  EXPECT_NEAR(static_cast<double>(less(Architecture::kKepler, 13)), 3121 - 2216, kSpreadMiB);
  EXPECT_NEAR(static_cast<double>(less(Architecture::kTuring, 40)), 3121 - 2800, kSpreadMiB);
  EXPECT_NEAR(static_cast<double>(less(Architecture::kVolta, 80)), 3121 - 3089, kSpreadMiB);
  EXPECT_NEAR(static_cast<double>(less(Architecture::kAmpere, 46)), 3121 - 2993, 1);
  EXPECT_EQ(less(Architecture::kHopper, 132), 0);
  EXPECT_EQ(less(Architecture::kAmpere, 0), 0);  // unknown
}

TEST(Outside, AMachineFileStandsForContextAndLibraries) {
  Gpu gpu = gpu_with(Architecture::kKepler, 13);
  gpu.context_memory = 999 * kMiB;
  Job job;
  job.gpus = 2;
  const auto outside =
      outside_of_gpu(job, gpu, libraries_of(program_with({KernelClass::kConvolution})));
  ASSERT_EQ(outside.size(), 2U);
  EXPECT_EQ(outside[0].bytes, 999 * kMiB);
  EXPECT_EQ(outside[1].name, "NCCL buffers");
  EXPECT_EQ(outside[1].basis, "assumed");
}

}  // namespace
}  // namespace stoker
