#include "work/work.h"

#include <gtest/gtest.h>

#include "step/step_reader.h"
#include "step/test_step.h"
#include "work/operator_totals.h"

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
  /// An output that lies in the first input's storage.
  OneOperator& out_is_first_input() {
    op_.outputs.push_back(op_.inputs[0]);
    return *this;
  }
  /// An input whose storage holds fewer bytes than its elements would take: a broadcast view.
  OneOperator& in_storage(DType dtype, std::vector<std::int64_t> shape, std::int64_t bytes) {
    add(op_.inputs, dtype, std::move(shape));
    step_.storages.back().bytes = Polynomial(bytes);
    return *this;
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

Bytes read_by(const std::vector<Work>& work) {
  Bytes total;
  for (const Work& w : work) total += w.read;
  return total;
}
Bytes written_by(const std::vector<Work>& work) {
  Bytes total;
  for (const Work& w : work) total += w.written;
  return total;
}

TEST(Work, AnEmbeddingsGradientFillsTheTableAndAddsRows) {
  const auto few = OneOperator("aten::embedding_dense_backward")
                       .in(DType::kF32, {10, 64})
                       .in(DType::kI64, {10})
                       .out(DType::kF32, {50000, 64})
                       .work();
  ASSERT_EQ(few.size(), 2U);
  EXPECT_EQ(few[0].kernel_class, KernelClass::kFill);
  EXPECT_EQ(few[0].written, Bytes(50000 * 64 * 4));
  EXPECT_EQ(few[0].read, Bytes(0));
  EXPECT_EQ(few[1].read, Bytes(10 * 64 * 4 + 10 * 8));
  EXPECT_EQ(few[1].written, Bytes(10 * 64 * 4));
  EXPECT_EQ(few[1].launches, 1);
  // More rows than the table has: no more is written than it holds. Many indices are sorted.
  const auto many = OneOperator("aten::embedding_dense_backward")
                        .in(DType::kF32, {4000, 64})
                        .in(DType::kI64, {4000})
                        .out(DType::kF32, {100, 64})
                        .work();
  const std::int64_t sorting = 4000 * (8 + 8) * 4;
  EXPECT_EQ(many[1].written, Bytes(100 * 64 * 4 + sorting));
  EXPECT_EQ(many[1].read, Bytes(4000 * 64 * 4 + 4000 * 8 + sorting));
  EXPECT_GT(many[1].launches, 1);
}

TEST(Work, ScattersMoveWhatIsWritten) {
  OneOperator out_of_place("aten::index_add");
  out_of_place.in(DType::kF32, {100, 8}).in(DType::kI64, {5}).in(DType::kF32, {5, 8});
  const auto apart = out_of_place.out(DType::kF32, {100, 8}).work();
  ASSERT_EQ(apart.size(), 2U);  // a copy, and the sum into it
  EXPECT_EQ(apart[0].kernel_class, KernelClass::kCopy);
  EXPECT_EQ(apart[1].read, Bytes(5 * 8 + 5 * 8 * 4 + 5 * 8 * 4));  // indices, source, target
  EXPECT_EQ(apart[1].written, Bytes(5 * 8 * 4));
  const auto in_place = OneOperator("aten::scatter_.src")
                            .in(DType::kF32, {100, 8})
                            .in(DType::kI64, {5, 8})
                            .in(DType::kF32, {5, 8})
                            .out_is_first_input()
                            .work();
  ASSERT_EQ(in_place.size(), 1U);
  EXPECT_EQ(in_place[0].read, Bytes(5 * 8 * 8 + 5 * 8 * 4));
  EXPECT_EQ(in_place[0].written, Bytes(5 * 8 * 4));
  const auto one_value = OneOperator("aten::scatter_.value")
                             .in(DType::kF32, {100, 8})
                             .in(DType::kI64, {5, 8})
                             .out_is_first_input()
                             .work();
  EXPECT_EQ(one_value[0].written, Bytes(5 * 8 * 4));
}

TEST(Work, CopiesReadTheirSourceAndCastsHaveTwoWidths) {
  const auto copy = OneOperator("aten::copy_")
                        .in(DType::kF32, {100})
                        .in(DType::kF16, {100})
                        .out_is_first_input()
                        .work();
  EXPECT_EQ(read_by(copy), Bytes(200));
  EXPECT_EQ(written_by(copy), Bytes(400));
  const auto random =
      OneOperator("aten::bernoulli_.float").in(DType::kF32, {100}).out_is_first_input().work();
  EXPECT_EQ(read_by(random), Bytes(0));
  EXPECT_EQ(written_by(random), Bytes(400));
}

TEST(Work, BackwardDoesNotReadWhatGivesSizesOnly) {
  const auto pool = OneOperator("aten::avg_pool2d_backward")
                        .in(DType::kF32, {1, 2, 4, 4})
                        .in(DType::kF32, {1, 2, 8, 8})
                        .out(DType::kF32, {1, 2, 8, 8})
                        .work();
  EXPECT_EQ(read_by(pool), Bytes(32 * 4));
  EXPECT_EQ(written_by(pool), Bytes(128 * 4));
  const auto maximum = OneOperator("aten::max_pool2d_with_indices_backward")
                           .in(DType::kF32, {1, 2, 4, 4})
                           .in(DType::kF32, {1, 2, 8, 8})
                           .in(DType::kI64, {1, 2, 4, 4})
                           .out(DType::kF32, {1, 2, 8, 8})
                           .work();
  ASSERT_EQ(maximum.size(), 2U);  // zeros first
  EXPECT_EQ(read_by(maximum), Bytes(32 * 4 + 32 * 8));
  EXPECT_EQ(written_by(maximum), Bytes(2 * 128 * 4));
  const auto part =
      OneOperator("aten::slice_backward").in(DType::kF32, {1, 10}).out(DType::kF32, {8, 10}).work();
  EXPECT_EQ(written_by(part), Bytes(80 * 4 + 10 * 4));
}

TEST(Work, BroadcastOperandsAreReadOnce) {
  const auto bias = OneOperator("aten::add.Tensor")
                        .in(DType::kF32, {32, 64, 10})
                        .in(DType::kF32, {64, 1})
                        .out(DType::kF32, {32, 64, 10})
                        .work();
  EXPECT_EQ(bias[0].read, Bytes((32 * 64 * 10 + 64) * 4));
  // A view of 4 bytes that expand() has spread over a million elements.
  const auto scalar = OneOperator("aten::mul.Tensor")
                          .in(DType::kF32, {1000, 1000})
                          .in_storage(DType::kF32, {1000, 1000}, 4)
                          .out(DType::kF32, {1000, 1000})
                          .work();
  EXPECT_EQ(scalar[0].read, Bytes(4'000'004));
  EXPECT_EQ(scalar[0].written, Bytes(4'000'000));
}

TEST(Work, GroupNormIsTwoPasses) {
  const auto norm = OneOperator("aten::native_group_norm")
                        .in(DType::kF16, {2, 8, 100})
                        .out(DType::kF16, {2, 8, 100})
                        .work();
  ASSERT_EQ(norm.size(), 2U);
  EXPECT_EQ(read_by(norm), Bytes(2 * 1600 * 2));
  EXPECT_EQ(written_by(norm), Bytes(1600 * 2));
}

TEST(Work, TransposedAndDilatedConvolutionsCountTapsAtTheirPositions) {
  OneOperator transposed("aten::convolution");
  transposed.in(DType::kF32, {2, 8, 5, 5})
      .in(DType::kF32, {8, 4, 2, 2})
      .out(DType::kF32, {2, 4, 10, 10});
  transposed.attributes().transposed = true;
  EXPECT_EQ(transposed.work()[0].flops.count(), 2.0 * 2 * 25 * 4 * 8 * 4);
  OneOperator dilated("aten::convolution");
  dilated.in(DType::kF32, {1, 3, 20}).in(DType::kF32, {6, 3, 3}).out(DType::kF32, {1, 6, 12});
  dilated.attributes().dilation = {4};
  const auto work = dilated.work();
  EXPECT_EQ(work[0].flops.count(), 2.0 * 12 * 3 * 3 * 6);
  EXPECT_EQ(std::get<ConvolutionShape>(work[0].shape).dilation[0], 4);
}

TEST(Work, DepthwiseConvolutionAddsItsBiasItself) {
  OneOperator op("aten::convolution");
  op.in(DType::kF32, {2, 8, 10, 10})
      .in(DType::kF32, {8, 1, 3, 3})
      .in(DType::kF32, {8})
      .out(DType::kF32, {2, 8, 10, 10});
  op.attributes().groups = 8;
  EXPECT_EQ(op.work().size(), 1U);
  op.attributes().groups = 1;  // cuDNN's convolution is followed by an addition
  EXPECT_EQ(op.work().size(), 2U);
}

TEST(Work, CrossAndGroupedAttention) {
  const auto grouped = OneOperator("stoker::attention")
                           .in(DType::kF16, {2, 8, 32, 16})
                           .in(DType::kF16, {2, 2, 48, 16})
                           .in(DType::kF16, {2, 2, 48, 24})
                           .out(DType::kF16, {2, 8, 32, 24})
                           .work();
  EXPECT_EQ(grouped[0].flops.count(), 2.0 * 2 * 8 * 32 * 48 * (16 + 24));
  EXPECT_EQ(grouped[0].read, Bytes(2 * (2 * 8 * 32 * 16 + 2 * 2 * 48 * (16 + 24))));
  const auto& s = std::get<AttentionShape>(grouped[0].shape);
  EXPECT_EQ(s.key_heads, 2);
  EXPECT_EQ(s.value_dim, 24);
  OneOperator causal("stoker::attention");
  for (const int length : {4, 6, 6}) causal.in(DType::kF16, {1, 1, length, 8});
  causal.out(DType::kF16, {1, 1, 4, 8}).attributes().causal = true;
  EXPECT_EQ(causal.work()[0].flops.count(), 4.0 * 8 * (1 + 2 + 3 + 4));
}

TEST(Work, RecurrentLayersCountGatesLayersAndProjections) {
  OneOperator op("aten::_cudnn_rnn");
  op.in(DType::kF32, {7, 3, 10}).in(DType::kF32, {1000}).in(DType::kF32, {4, 3, 20});
  op.attributes().rnn_mode = "lstm";
  op.attributes().hidden = 20;
  op.attributes().layers = 2;
  op.attributes().bidirectional = true;
  // 4 gates of 20 units for 7 x 3 rows: inputs of 10, then of 2 x 20, and the state of 20.
  const double plain = 2.0 * 21 * 4 * 20 * 2 * ((10 + 20) + (40 + 20));
  EXPECT_EQ(op.work()[0].flops.count(), plain);
  OneOperator projected("aten::_cudnn_rnn");
  projected.in(DType::kF32, {7, 3, 10}).in(DType::kF32, {1000}).in(DType::kF32, {1, 3, 5});
  projected.attributes().rnn_mode = "lstm";
  projected.attributes().hidden = 20;
  EXPECT_EQ(projected.work()[0].flops.count(), 2.0 * 21 * (4 * 20 * (10 + 5) + 20 * 5));
}

TEST(Work, PackedSequencesAreAllTheirWords) {
  OneOperator packed("aten::_cudnn_rnn");  // 21 words of 3 sequences
  packed.in(DType::kF32, {21, 10}).in(DType::kF32, {1000}).in(DType::kF32, {1, 3, 20});
  packed.attributes().rnn_mode = "gru";
  packed.attributes().hidden = 20;
  const auto work = packed.work();
  EXPECT_EQ(work[0].flops.count(), 2.0 * 21 * 3 * 20 * (10 + 20));
  const auto& shape = std::get<RnnShape>(work[0].shape);
  EXPECT_EQ(shape.batch, 3);
  EXPECT_EQ(shape.length, 7);
  EXPECT_EQ(shape.input, 10);
}

TEST(Work, DistancesCompareEveryPair) {
  const auto work = OneOperator("aten::_cdist_forward")
                        .in(DType::kF32, {10, 16})
                        .in(DType::kF32, {20, 16})
                        .out(DType::kF32, {10, 20})
                        .work();
  EXPECT_EQ(work[0].flops.count(), 3.0 * 10 * 20 * 16);
}

TEST(Work, FourierTransformsPassOnceForEachDimension) {
  OneOperator op("aten::_fft_c2c");
  op.in(DType::kC64, {4, 8, 16}).out(DType::kC64, {4, 8, 16});
  op.attributes().dim = {1, 2};
  const auto work = op.work();
  ASSERT_EQ(work.size(), 2U);
  EXPECT_EQ(work[0].flops.count() + work[1].flops.count(), 5.0 * 512 * (3 + 4));
  EXPECT_EQ(read_by(work), Bytes(2 * 512 * 8));
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

TEST(OperatorTotals, AreByOperatorPassAndClassMostFlopsFirst) {
  const auto step = parse_step(testing_support::linear_step_json(), "test");
  const auto sizes = Sizes::at(*step, {{"batch", 10}});
  const auto rows = operator_totals(*step, *sizes);
  const auto totals = totals_of(*step, *sizes);
  Flops forward, backward;
  for (const OperatorTotal& row : rows) (row.backward ? backward : forward) += row.flops;
  EXPECT_EQ(forward, totals.forward);
  EXPECT_EQ(backward, totals.backward);
  ASSERT_FALSE(rows.empty());
  EXPECT_EQ(rows[0].kernel_class, KernelClass::kGemm);
  for (std::size_t i = 1; i < rows.size(); ++i)
    EXPECT_GE(rows[i - 1].flops.count(), rows[i].flops.count());
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
