#include "lower/cpu/cpu_work.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lower/common/test_jobs.h"
#include "lower/loop/lower.h"
#include "step/sizes.h"
#include "step/step_reader.h"

namespace stoker {
namespace {

/// A convolution with bias, a batch norm, pooling, the copy of a transpose, a softmax, and some of
/// their gradients, at batch 2.
std::string step_json() {
  return R"({
  "format": "stoker-step", "schema_version": [1, 0], "name": "small", "mode": "train",
    "precision": "fp32",
  "provenance": {"spec": "test", "capture": "fake-cpu", "torch": "2.13.0"},
  "dimensions": [{"name": "batch", "default": 8, "min": 1}],
  "diagnostics": {},
  "strings": {"operators": ["aten::convolution", "aten::native_batch_norm",
    "aten::max_pool2d_with_indices",
                            "aten::clone", "aten::_softmax_backward_data",
                              "aten::convolution_backward",
                            "aten::add_.Tensor", "aten::sum.dim_IntList"], "modules": ["", "body"]},
  "types": [["f32", [{"batch": 1}, 8, 4, 4]], ["f32", [16, 8, 3, 3]], ["f32",
    [{"batch": 1}, 16, 4, 4]],
            ["f32", [16]], ["f32", [{"batch": 1}, 16, 2, 2]], ["i64", [{"batch": 1}, 16, 2, 2]],
            ["f32", [{"batch": 1}, 64]], ["f32", [64, {"batch": 1}], [1, 0]], ["f32", [64,
              {"batch": 1}]]],
  "storages": [[4608, "parameter"], [64, "parameter"], [{"batch": 512}, "input"],
    [{"batch": 1024}, "transient"],
               [{"batch": 1024}, "transient"], [64, "transient"], [64, "transient"],
                 [{"batch": 256}, "transient"],
               [{"batch": 512}, "transient"], [{"batch": 256}, "output"], [4608,
                 "gradient"], [64, "gradient"],
               [{"batch": 512}, "transient"], [64, "transient"]],
  "parameters": [{"name": "w", "type": 1, "storage": 0, "requires_grad": true, "gradient": 10},
                 {"name": "b", "type": 3, "storage": 1, "requires_grad": true, "gradient": 11}],
  "buffers": [], "inputs": [{"name": "x", "type": 0, "storage": 2}],
  "events": [
    ["p", "forward"], ["a", 3], ["o", 0, 1, 7, [0, 2, 1, 0, 3, 1], [2, 3]],
    ["a", 4], ["a", 5], ["a", 6], ["o", 1, 1, 8, [2, 3], [2, 4, 3, 5, 3, 6], {"train": true}],
    ["a", 7], ["a", 8], ["o", 2, 1, 9, [2, 4], [4, 7, 5, 8], {"kernel": [2, 2], "stride": [2, 2]}],
    ["p", "loss"], ["a", 9], ["o", 3, 0, 10, [7, 7], [8, 9]],
    ["p", "backward"], ["a", 13], ["o", 4, 0, 10, [6, 7, 6, 7], [6, 7]],
    ["o", 6, 0, 10, [6, 7, 6, 7], [6, 7]], ["o", 7, 0, 10, [6, 7], [3, 13], {"dim": [0]}],
    ["o", 7, 0, 10, [6, 7], [3, 13], {"dim": [1]}],
    ["a", 10], ["a", 11], ["a", 12],
    ["o", 5, 1, 7, [2, 4, 0, 2, 1, 0], [0, 12, 1, 10, 3, 11], {"mask": [true, true, true]}],
    ["f", 3], ["f", 4], ["f", 5], ["f", 6], ["f", 7], ["f", 8], ["f", 12], ["f", 13], ["p", "end"]
  ]})";
}

class CpuWork : public ::testing::Test {
 protected:
  std::vector<Work> work_of(std::size_t op) {
    std::vector<Work> work;
    append_work(step_, step_.operators[op], sizes_, work);
    join_for_cpu(step_, step_.operators[op], sizes_, work);
    return work;
  }
  bool crosses(std::size_t op) { return crosses_rows(step_, step_.operators[op], sizes_); }

  Step step_ = parse_step(step_json(), "test").value();
  Sizes sizes_ = Sizes::at(step_, {{"batch", 2}}).value();
};

TEST_F(CpuWork, ABiasComesWithItsConvolution) {
  const auto forward = work_of(0);
  ASSERT_EQ(forward.size(), 1U);
  EXPECT_EQ(forward[0].kernel_class, KernelClass::kConvolution);
  const auto backward = work_of(8);
  ASSERT_EQ(backward.size(), 2U);
  EXPECT_EQ(std::get<ConvolutionShape>(backward[0].shape).pass, Pass::kBackwardInput);
  EXPECT_EQ(std::get<ConvolutionShape>(backward[1].shape).pass, Pass::kBackwardWeight);
}

TEST_F(CpuWork, OneCallForWhatGpusDoInTwoKernels) {
  const auto norm = work_of(1);
  ASSERT_EQ(norm.size(), 1U);
  EXPECT_EQ(norm[0].kernel_class, KernelClass::kNormalization);
  EXPECT_EQ(norm[0].elements, 2 * 16 * 16);
  EXPECT_GE(norm[0].read.count(), 2 * 2 * 16 * 16 * 4);  // moments first, then the result
  const auto softmax = work_of(4);
  ASSERT_EQ(softmax.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<RowShape>(softmax[0].shape));
}

TEST_F(CpuWork, PoolingCountsItsWindows) {
  const auto pooling = work_of(2);
  ASSERT_EQ(pooling.size(), 1U);
  EXPECT_EQ(pooling[0].flops.count(), 2.0 * 16 * 4 * 4);
}

TEST_F(CpuWork, TransposesAndSumsOverRowsCross) {
  EXPECT_TRUE(crosses(3));  // permuted in, row-major out
  EXPECT_TRUE(crosses(6));  // over the first dimension
  EXPECT_FALSE(crosses(7));
  EXPECT_FALSE(crosses(5));  // the same order
}

TEST_F(CpuWork, KernelsOfACpuNameTheirFunction) {
  Machine machine = testing_support::ampere();
  const auto on_gpu = lower(step_, testing_support::plain_job(), machine);
  ASSERT_TRUE(on_gpu) << on_gpu.error().text();
  machine.device = Cpu();
  const auto on_cpu = lower(step_, testing_support::plain_job(), machine);
  ASSERT_TRUE(on_cpu) << on_cpu.error().text();
  EXPECT_GT(on_gpu->kernels.size(), on_cpu->kernels.size());
  std::vector<std::string> names;
  for (const Kernel& k : on_cpu->kernels) names.emplace_back(on_cpu->function_of(k));
  EXPECT_EQ(std::ranges::count(names, "convolution_backward"), 2);
  EXPECT_EQ(std::ranges::count(names, "native_batch_norm"), 1);
  EXPECT_GE(std::ranges::count(names, "add_"), 1);  // the optimizer has some too
  for (const Kernel& k : on_gpu->kernels) {
    if (k.source != Kernel::kSynthesized) {
      EXPECT_EQ(on_gpu->function_of(k), "");
    }
  }
}

}  // namespace
}  // namespace stoker
