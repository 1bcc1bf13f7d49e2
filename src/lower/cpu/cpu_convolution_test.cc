#include "lower/cpu/cpu_convolution.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace stoker {
namespace {

/// Sizes as they are allocated (positive) and freed (negative), in order.
using Sequence = std::vector<std::int64_t>;

/// Smaller ones were not recorded.
constexpr std::int64_t kRecorded = 16384;

struct Call {
  std::string name;
  std::int64_t batch, in_channels, out_channels, kernel, side, stride, groups;
  bool channels_last;
  int threads;
  Pass pass;
  Sequence recorded;
};

ConvolutionShape shape_of(const Call& c) {
  ConvolutionShape s;
  s.batch = c.batch;
  s.in_channels = c.in_channels;
  s.out_channels = c.out_channels;
  s.groups = c.groups;
  s.spatial = 2;
  s.channels_last = c.channels_last;
  s.pass = c.pass;
  const std::int64_t padding = c.kernel / 2;
  const std::int64_t out = (c.side + 2 * padding - c.kernel) / c.stride + 1;
  for (std::size_t d = 0; d < 2; ++d) {
    s.in[d] = c.side;
    s.out[d] = out;
    s.kernel[d] = c.kernel;
    s.stride[d] = c.stride;
  }
  return s;
}

std::int64_t output_bytes(const ConvolutionShape& s) {
  const std::int64_t element = 4;
  switch (s.pass) {
    case Pass::kForward:
      return element * s.batch * s.out_channels * s.out[0] * s.out[1];
    case Pass::kBackwardInput:
      return element * s.batch * s.in_channels * s.in[0] * s.in[1];
    case Pass::kBackwardWeight:
      return element * s.out_channels * s.in_channels / s.groups * s.kernel[0] * s.kernel[1];
  }
  return 0;
}

Sequence emitted(const Call& call) {
  Program program;
  Emitter emit(program);
  const ConvolutionShape shape = shape_of(call);
  int outputs = 0;
  emit_cpu_convolution(emit, {shape, DType::kF32, call.threads, ModuleId{}}, Kernel{}, [&] {
    ++outputs;
    emit.allocate(emit.buffer({Bytes(output_bytes(shape))}));
  });
  EXPECT_EQ(outputs, 1) << call.name;
  EXPECT_EQ(program.kernels.size(), 1U) << call.name;
  Sequence sequence;
  for (const Instruction& i : program.iteration) {
    if (i.kind == InstructionKind::kLaunch) continue;
    const std::int64_t bytes = program.buffers[i.value].bytes.count();
    if (bytes < kRecorded) continue;
    sequence.push_back(i.kind == InstructionKind::kAllocate ? bytes : -bytes);
  }
  return sequence;
}

/// What PyTorch 2.13 (oneDNN, AVX-512) allocated in each of these calls: recorded by a malloc that
/// writes down what it is asked for.
std::vector<Call> calls() {
  const Pass f = Pass::kForward, i = Pass::kBackwardInput, w = Pass::kBackwardWeight;
  return {
      {"3x3",
       8,
       64,
       64,
       3,
       56,
       1,
       1,
       false,
       1,
       f,
       {6422528, 147456, 6422528, -147456, -6422528, 6422528, -6422528}},
      {"3x3",
       8,
       64,
       64,
       3,
       56,
       1,
       1,
       false,
       1,
       i,
       {6422528, 147456, 6422528, -147456, -6422528, 6422528, -6422528}},
      {"3x3",
       8,
       64,
       64,
       3,
       56,
       1,
       1,
       false,
       1,
       w,
       {6422528, 6422528, 147456, -6422528, -6422528, 147456, -147456}},
      {"3x3, 2 threads",
       8,
       64,
       64,
       3,
       56,
       1,
       1,
       false,
       2,
       w,
       {6422528, 6422528, 147456, 156032, -156032, -6422528, -6422528, 147456, -147456}},
      {"one picture, 2 threads",
       1,
       64,
       64,
       3,
       56,
       1,
       1,
       false,
       2,
       w,
       {802816, 802816, 147456, -802816, -802816, 147456, -147456}},
      {"3x3 by 2",
       8,
       64,
       128,
       3,
       56,
       2,
       1,
       false,
       1,
       f,
       {6422528, 294912, 3211264, -294912, -6422528, 3211264, -3211264}},
      {"3x3 by 2",
       8,
       64,
       128,
       3,
       56,
       2,
       1,
       false,
       1,
       i,
       {3211264, 294912, 6422528, 462872, -462872, -294912, -3211264, 6422528, 6422528, -6422528,
        -6422528}},
      {"3x3 by 2, 2 threads",
       8,
       64,
       128,
       3,
       56,
       2,
       1,
       false,
       2,
       i,
       {3211264, 294912, 6422528, 913456, -913456, -294912, -3211264, 6422528, 6422528, -6422528,
        -6422528}},
      {"first layer",
       8,
       3,
       64,
       7,
       224,
       2,
       1,
       false,
       1,
       f,
       {37632, 25690112, -37632, 25690112, -25690112}},
      {"first layer",
       8,
       3,
       64,
       7,
       224,
       2,
       1,
       false,
       1,
       i,
       {25690112, 200704, 4816896, 3411992, -3411992, -200704, -25690112, 4816896, 4816896,
        -4816896, -4816896}},
      {"first layer",
       8,
       3,
       64,
       7,
       224,
       2,
       1,
       false,
       1,
       w,
       {25690112, 37632, -25690112, 37632, -37632}},
      {"first layer by 1",
       8,
       3,
       64,
       3,
       64,
       1,
       1,
       false,
       1,
       i,
       {8388608, 36864, 2097152, -36864, -8388608, 393216, -2097152}},
      {"1x1, own loops", 8, 64, 256, 1, 56, 1, 1, false, 1, f, {25690112}},
      {"1x1, own loops", 8, 64, 256, 1, 56, 1, 1, false, 1, i, {6422528, 802816, -802816}},
      {"1x1, own loops", 8, 64, 256, 1, 56, 1, 1, false, 1, w, {65536}},
      {"1x1, 2 threads",
       8,
       64,
       256,
       1,
       56,
       1,
       1,
       false,
       2,
       f,
       {6422528, 65536, 25690112, -65536, -6422528, 25690112, -25690112}},
      {"1x1, 2 threads",
       8,
       64,
       256,
       1,
       56,
       1,
       1,
       false,
       2,
       i,
       {25690112, 65536, 6422528, -65536, -25690112, 6422528, -6422528}},
      {"1x1, 2 threads",
       8,
       64,
       256,
       1,
       56,
       1,
       1,
       false,
       2,
       w,
       {25690112, 6422528, 65536, 73856, -73856, -6422528, -25690112, 65536, -65536}},
      {"1x1, padded blocks",
       8,
       96,
       24,
       1,
       56,
       1,
       1,
       false,
       2,
       f,
       {9633792, 3211264, -9633792, 2408448, -3211264}},
      {"1x1, 16 pictures",
       16,
       96,
       24,
       1,
       28,
       1,
       1,
       false,
       1,
       f,
       {4816896, 1605632, -4816896, 1204224, -1605632}},
      {"1x1 by 2",
       8,
       64,
       128,
       1,
       56,
       2,
       1,
       false,
       1,
       f,
       {200832, 6422528, 32768, 3211264, -32768, -6422528, -200832, 3211264, -3211264}},
      {"depthwise",
       8,
       96,
       96,
       3,
       56,
       1,
       96,
       false,
       1,
       f,
       {9633792, 9633792, -9633792, 9633792, -9633792}},
      {"depthwise", 8, 96, 96, 3, 56, 1, 96, false, 2, w, {9633792, 9633792, -9633792, -9633792}},
      {"depthwise by 2",
       8,
       96,
       96,
       3,
       56,
       2,
       96,
       false,
       1,
       i,
       {2408448, 9633792, -2408448, 9633792, -9633792}},
      {"4 groups",
       8,
       64,
       64,
       3,
       28,
       1,
       4,
       false,
       1,
       w,
       {1605632, 1605632, 36864, -1605632, -1605632, 36864, -36864}},
      {"padded blocks",
       8,
       30,
       50,
       3,
       28,
       1,
       1,
       false,
       1,
       f,
       {802816, 73728, 1605632, -73728, -802816, 1254400, -1605632}},
      {"padded blocks",
       8,
       30,
       50,
       3,
       28,
       1,
       1,
       false,
       1,
       i,
       {1605632, 73728, 802816, -73728, -1605632, 752640, -802816}},
      {"padded blocks",
       8,
       30,
       50,
       3,
       28,
       1,
       1,
       false,
       2,
       w,
       {1605632, 802816, 73728, 82304, -82304, -802816, -1605632, 54000, -73728}},
      {"channels last", 8, 64, 64, 3, 56, 1, 1, true, 1, f, {6422528, 147456, -147456}},
      {"channels last", 8, 64, 64, 3, 56, 1, 1, true, 1, i, {6422528, 147456, -147456}},
  };
}

TEST(CpuConvolution, AllocatesWhatPyTorchWasSeenToAllocate) {
  for (const Call& call : calls()) {
    const Sequence model = emitted(call);
    const std::string name = call.name + ", pass " + std::to_string(static_cast<int>(call.pass));
    ASSERT_EQ(model.size(), call.recorded.size()) << name;
    for (std::size_t i = 0; i < model.size(); ++i) {
      // Tensors and copies of them but for an alignment; scratch, freed as soon as it was used,
      // nearly.
      constexpr double kAlignment = 128;
      const std::int64_t truth = call.recorded[i];
      const bool scratch = (i + 1 < model.size() && call.recorded[i + 1] == -truth) ||
                           (i > 0 && call.recorded[i - 1] == -truth);
      EXPECT_NEAR(static_cast<double>(model[i]), static_cast<double>(truth),
                  scratch ? 0.04 * static_cast<double>(std::abs(truth)) : kAlignment)
          << name << ", " << i;
    }
  }
}

}  // namespace
}  // namespace stoker
