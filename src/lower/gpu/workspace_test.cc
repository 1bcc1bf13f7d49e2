#include "lower/gpu/workspace.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

Gpu gpu_of(Architecture architecture) {
  Gpu gpu;
  gpu.architecture = architecture;
  return gpu;
}

TEST(Workspace, CublasByArchitectureUnlessTheJobNamesASize) {
  Job job;
  EXPECT_EQ(cublas_workspace(gpu_of(Architecture::kVolta), job), Bytes(8519680));
  EXPECT_EQ(cublas_workspace(gpu_of(Architecture::kAda), job), Bytes(8519680));
  EXPECT_EQ(cublas_workspace(gpu_of(Architecture::kHopper), job), 32 * kMiB);
  EXPECT_EQ(cublas_workspace(gpu_of(Architecture::kBlackwell), job), 32 * kMiB);
  Gpu amd = gpu_of(Architecture::kCdna);
  amd.vendor = Vendor::kAmd;
  EXPECT_EQ(cublas_workspace(amd, job), 32 * kMiB);
  amd.chip = "gfx942";
  EXPECT_EQ(cublas_workspace(amd, job), 128 * kMiB);
  EXPECT_EQ(cublas_workspace(gpu_of(Architecture::kOther), job), Bytes(8519680));
  job.cublas_workspace = Bytes(0);
  EXPECT_EQ(cublas_workspace(gpu_of(Architecture::kHopper), job), Bytes(0));
}

TEST(Workspace, CublasLtSharesUnlessTheJobNamesASize) {
  Job job;
  EXPECT_FALSE(cublaslt_workspace(gpu_of(Architecture::kHopper), job));
  job.cublaslt_workspace = kMiB;
  EXPECT_EQ(cublaslt_workspace(gpu_of(Architecture::kHopper), job), kMiB);
}

TEST(Workspace, ReadsCublasWorkspaceConfig) {
  EXPECT_EQ(parse_cublas_workspace_config(":4096:2:16:8").value(), Bytes(8519680));
  EXPECT_EQ(parse_cublas_workspace_config(":16:8").value(), 128 * kKiB);
  EXPECT_EQ(parse_cublas_workspace_config(":0:0").value(), Bytes(0));
  for (const char* bad :
       {"", "4096:2", ":4096", ":4096:", ":4096:2:", ":4096:2:16", ":a:1", ":-1:1", ":1:1 ",
        ":99999999999999999999:1", ":1073741824:1073741824", ":1073741824:1:1:1", "::"}) {
    const auto size = parse_cublas_workspace_config(bad);
    ASSERT_FALSE(size) << bad;
    EXPECT_EQ(size.error().code, ErrorCode::kUsage);
    EXPECT_EQ(size.error().where, "CUBLAS_WORKSPACE_CONFIG");
    EXPECT_NE(size.error().message.find(":4096:2:16:8"), std::string::npos);  // the cure
  }
}

TEST(Workspace, ReadsCublasLtWorkspaceSize) {
  EXPECT_EQ(parse_cublaslt_workspace_size("4096").value(), 4 * kMiB);
  EXPECT_EQ(parse_cublaslt_workspace_size("0").value(), Bytes(0));
  for (const char* bad : {"", "4M", "-1", "1.5", " 1", "99999999999999999999", "2147483648"}) {
    const auto size = parse_cublaslt_workspace_size(bad);
    ASSERT_FALSE(size) << bad;
    EXPECT_EQ(size.error().where, "CUBLASLT_WORKSPACE_SIZE");
  }
}

TEST(Workspace, RulesOfTheTwoProfiles) {
  ConvolutionShape dense{8, 64, 64, 1};
  dense.kernel = {3, 3, 1};
  const auto at = [&](const ConvolutionShape& c, CudnnProfile p) {
    return convolution_workspace(c, kMiB, 2 * kMiB, Bytes(7), p);
  };
  const Bytes copies = 3 * kMiB + Bytes(7);
  EXPECT_EQ(at(dense, CudnnProfile::kDefault), copies);
  EXPECT_FALSE(at(dense, CudnnProfile::kBenchmark));
  dense.pass = Pass::kBackwardInput;
  EXPECT_EQ(at(dense, CudnnProfile::kBenchmark), copies);
  dense.groups = 4;
  EXPECT_EQ(at(dense, CudnnProfile::kBenchmark), copies);
  EXPECT_FALSE(at(dense, CudnnProfile::kDefault));
  dense.groups = 64;
  EXPECT_FALSE(at(dense, CudnnProfile::kBenchmark));
}

}  // namespace
}  // namespace stoker
