#include "step/work.h"

#include <gtest/gtest.h>

#include "step/step_reader.h"
#include "step/test_step.h"

namespace stoker {
namespace {

/// Builds steps of one operator, so that each rule can be held against arithmetic by hand.
class OneOperator {
 public:
  explicit OneOperator(std::string name) {
    step_.operator_names = {std::move(name)};
    step_.module_names = {""};
    step_.dimensions = {{"batch", 1, 1, 1, 0}};
    step_.attributes.emplace_back();
  }
  OneOperator& in(DType dtype, std::vector<std::int64_t> shape) {
    return add(op_.inputs, dtype, std::move(shape));
  }
  OneOperator& out(DType dtype, std::vector<std::int64_t> shape) {
    return add(op_.outputs, dtype, std::move(shape));
  }
  Attributes& attributes() {
    op_.attributes = 1;
    if (step_.attributes.size() < 2) step_.attributes.emplace_back();
    return step_.attributes.back();
  }
  std::vector<Work> work() {
    step_.operators = {op_};
    const auto sizes = Sizes::at(step_, {});
    std::vector<Work> result;
    append_work(step_, step_.operators[0], *sizes, result);
    return result;
  }

 private:
  OneOperator& add(std::vector<TensorRef>& list, DType dtype, std::vector<std::int64_t> shape) {
    TensorType type;
    type.dtype = dtype;
    std::int64_t elements = 1;
    for (const std::int64_t side : shape) {
      type.shape.emplace_back(side);
      elements *= side;
    }
    list.push_back({TypeId(static_cast<std::uint32_t>(step_.types.size())),
                    StorageId(static_cast<std::uint32_t>(step_.storages.size()))});
    step_.types.push_back(std::move(type));
    step_.storages.push_back({Polynomial(elements * size_of(dtype)), StorageKind::kTransient});
    return *this;
  }
  Step step_;
  Operator op_;
};

RowShape rows_of(const std::vector<Work>& work) {
  const auto* shape = work.empty() ? nullptr : std::get_if<RowShape>(&work[0].shape);
  return shape == nullptr ? RowShape{} : *shape;
}

TEST(Work, RowsOfSoftmaxAndLayerNorm) {
  const RowShape softmax = rows_of(OneOperator("aten::_softmax")
                                       .in(DType::kF32, {4, 8, 100})
                                       .out(DType::kF32, {4, 8, 100})
                                       .work());
  EXPECT_EQ(softmax.rows, 32);
  EXPECT_EQ(softmax.width, 100);
  // The norm runs over the last two dimensions: a mean for each of 4 rows.
  const RowShape norm = rows_of(OneOperator("aten::native_layer_norm")
                                    .in(DType::kF32, {4, 8, 100})
                                    .out(DType::kF32, {4, 8, 100})
                                    .out(DType::kF32, {4, 1, 1})
                                    .out(DType::kF32, {4, 1, 1})
                                    .work());
  EXPECT_EQ(norm.rows, 4);
  EXPECT_EQ(norm.width, 800);
  EXPECT_EQ(
      rows_of(OneOperator("aten::native_batch_norm").in(DType::kF32, {4, 8, 5, 5}).work()).rows, 0);
}

TEST(Work, MatrixProducts) {
  const auto mm = OneOperator("aten::mm")
                      .in(DType::kF16, {64, 32})
                      .in(DType::kF16, {32, 16})
                      .out(DType::kF16, {64, 16})
                      .work();
  ASSERT_EQ(mm.size(), 1U);
  EXPECT_EQ(mm[0].flops.count(), 2.0 * 64 * 32 * 16);
  EXPECT_EQ(mm[0].read, Bytes(2 * (64 * 32 + 32 * 16)));
  EXPECT_EQ(mm[0].written, Bytes(2 * 64 * 16));
  const auto& g = std::get<GemmShape>(mm[0].shape);
  EXPECT_EQ(g.m, 64);
  EXPECT_EQ(g.n, 16);
  EXPECT_EQ(g.k, 32);

  const auto bmm = OneOperator("aten::bmm")
                       .in(DType::kF32, {5, 4, 3})
                       .in(DType::kF32, {5, 3, 2})
                       .out(DType::kF32, {5, 4, 2})
                       .work();
  EXPECT_EQ(bmm[0].flops.count(), 2.0 * 5 * 4 * 3 * 2);
  const auto addmm = OneOperator("aten::addmm")
                         .in(DType::kF32, {7})
                         .in(DType::kF32, {9, 8})
                         .in(DType::kF32, {8, 7})
                         .out(DType::kF32, {9, 7})
                         .work();
  EXPECT_EQ(addmm[0].flops.count(), 2.0 * 9 * 8 * 7);
}

TEST(Work, ConvolutionForwardAndBackward) {
  OneOperator forward("aten::convolution");
  forward.in(DType::kF32, {2, 8, 10, 10})
      .in(DType::kF32, {16, 4, 3, 3})
      .out(DType::kF32, {2, 16, 8, 8});
  forward.attributes().groups = 2;
  const auto work = forward.work();
  ASSERT_EQ(work.size(), 1U);
  EXPECT_EQ(work[0].flops.count(), 2.0 * 2 * 8 * 8 * 16 * 4 * 9);
  EXPECT_EQ(work[0].kernel_class, KernelClass::kConvolution);

  OneOperator backward("aten::convolution_backward");
  backward.in(DType::kF32, {2, 8, 10, 10})
      .in(DType::kF32, {2, 8, 10, 10})
      .in(DType::kF32, {8, 1, 3, 3});
  backward.attributes().groups = 8;
  backward.attributes().gradients = {true, true, true};
  const auto parts = backward.work();
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[0].kernel_class, KernelClass::kDepthwiseConvolution);
  EXPECT_EQ(std::get<ConvolutionShape>(parts[0].shape).pass, Pass::kBackwardInput);
  EXPECT_EQ(std::get<ConvolutionShape>(parts[1].shape).pass, Pass::kBackwardWeight);
  EXPECT_EQ(parts[2].kernel_class, KernelClass::kReduction);
  EXPECT_EQ(parts[0].flops.count(), 2.0 * 2 * 10 * 10 * 8 * 9);
}

TEST(Work, AttentionAndItsCausalHalf) {
  OneOperator op("stoker::attention");
  for (int i = 0; i < 3; ++i) op.in(DType::kF16, {2, 4, 64, 16});
  op.out(DType::kF16, {2, 4, 64, 16});
  EXPECT_EQ(op.work()[0].flops.count(), 2 * 2.0 * 2 * 4 * 64 * 64 * 16);
  op.attributes().causal = true;  // query i sees i + 1 keys
  EXPECT_EQ(op.work()[0].flops.count(), 2 * 2.0 * 2 * 4 * (64 * 65 / 2) * 16);
}

TEST(Work, EmbeddingReadsRowsNotTheTable) {
  const auto work = OneOperator("aten::embedding")
                        .in(DType::kF32, {50000, 64})
                        .in(DType::kI64, {10})
                        .out(DType::kF32, {10, 64})
                        .work();
  EXPECT_EQ(work[0].read, Bytes(10 * 64 * 4 + 10 * 8));
}

TEST(Work, NegativeLogLikelihoodPicksOneElementARow) {
  const auto forward = OneOperator("aten::nll_loss_forward")
                           .in(DType::kF32, {10, 50000})
                           .in(DType::kI64, {10})
                           .out(DType::kF32, {})
                           .out(DType::kF32, {})
                           .work();
  EXPECT_EQ(forward[0].read, Bytes(10 * 4 + 10 * 8));
  const auto backward = OneOperator("aten::nll_loss_backward")
                            .in(DType::kF32, {})
                            .in(DType::kF32, {10, 50000})
                            .in(DType::kI64, {10})
                            .out(DType::kF32, {10, 50000})
                            .work();
  EXPECT_EQ(backward[0].read, Bytes(10 * 8));
  EXPECT_EQ(backward[0].written, Bytes(10 * 50000 * 4));
}

TEST(Work, NamesFindTheirClass) {
  EXPECT_EQ(class_of("aten::relu_"), KernelClass::kElementwise);
  EXPECT_EQ(class_of("aten::native_layer_norm_backward"), KernelClass::kNormalization);
  EXPECT_EQ(class_of("aten::add.Tensor"), KernelClass::kElementwise);
  EXPECT_EQ(class_of("aten::_log_softmax_backward_data"), KernelClass::kSoftmax);
  EXPECT_EQ(class_of("my::own_operator"), KernelClass::kUncosted);
  EXPECT_TRUE(launches_nothing("aten::empty_strided"));
  EXPECT_FALSE(launches_nothing("aten::zeros"));
}

TEST(Work, TotalsOfTheSmallStep) {
  const auto step = parse_step(testing_support::linear_step_json(), "test");
  const auto totals = totals_of(*step, *Sizes::at(*step, {{"batch", 10}}));
  EXPECT_EQ(totals.parameters, Bytes(48));
  EXPECT_EQ(totals.gradients, Bytes(48));
  EXPECT_EQ(totals.inputs, Bytes(160));
  EXPECT_EQ(totals.activations, Bytes(120 + 4));  // the output and the loss
  EXPECT_EQ(totals.forward.count(),
            2.0 * 10 * 4 * 3 + 30);  // the product, and the sum over 30 elements
}

}  // namespace
}  // namespace stoker
