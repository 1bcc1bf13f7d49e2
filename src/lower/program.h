#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/diagnostics.h"
#include "base/units.h"
#include "step/step.h"

namespace stoker {

enum class BufferId : std::uint32_t {};
enum class KernelId : std::uint32_t {};

/// Streams of the device; blocks of the allocator are reused only by the stream that they came from.
enum class Stream : std::uint8_t { kCompute, kCopy, kCommunication };

/// What a block of device memory is for; the parts that a memory report is broken down into.
enum class BufferRole : std::uint8_t {
  kParameter, kModelBuffer, kGradient, kOptimizerState, kInput, kActivation, kTemporary, kWorkspace,
  kBucket, kOutput
};
inline constexpr std::size_t kBufferRoles = 10;
[[nodiscard]] std::string_view name_of(BufferRole role);

struct Buffer {
  Bytes bytes;  ///< as requested from the allocator, before rounding
  BufferRole role = BufferRole::kTemporary;
  Stream stream = Stream::kCompute;
  /// A workspace that the library does without when it does not fit (cuDNN then takes another algorithm).
  bool optional = false;
  ModuleId module{};
};

/// The class of a kernel decides which cost rule applies (src/timing) and how reports group.
enum class KernelClass : std::uint8_t {
  kGemm, kConvolution, kDepthwiseConvolution, kAttention, kNormalization, kSoftmax, kReduction,
  kElementwise, kGather, kPooling, kResample, kRnn, kCopy, kOptimizer, kHostToDevice, kFill,
  kCollective, kUncosted
};
inline constexpr std::size_t kKernelClasses = 18;
[[nodiscard]] std::string_view name_of(KernelClass kernel_class);

/// Which arithmetic units run it.
enum class MathUnit : std::uint8_t { kFp32, kTf32Tensor, kFp16Tensor, kBf16Tensor, kFp16, kFp64, kInteger };

enum class Pass : std::uint8_t { kForward, kBackwardInput, kBackwardWeight };

/// C[m, n] += A[m, k] B[k, n], `batch` times.
struct GemmShape {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
};

/// Up to three spatial dimensions; unused ones are 1 (kernel, stride, dilation) and 1 (sizes).
struct ConvolutionShape {
  std::int64_t batch = 0, in_channels = 0, out_channels = 0, groups = 1;
  std::array<std::int64_t, 3> in{1, 1, 1}, out{1, 1, 1}, kernel{1, 1, 1}, stride{1, 1, 1},
      dilation{1, 1, 1};
  int spatial = 2;
  bool transposed = false;
  bool channels_last = false;
  Pass pass = Pass::kForward;
};

enum class AttentionBackend : std::uint8_t { kFlash, kMemoryEfficient, kMath };

struct AttentionShape {
  std::int64_t batch = 0, heads = 0, query_length = 0, key_length = 0, head_dim = 0;
  bool causal = false;
  bool backward = false;
  AttentionBackend backend = AttentionBackend::kMath;
};

/// One cuDNN recurrent call: layers x directions x time steps of gates GEMMs.
struct RnnShape {
  std::int64_t batch = 0, length = 0, input = 0, hidden = 0, layers = 1;
  int gates = 3, directions = 1;
  bool backward = false;
};

using KernelShape =
    std::variant<std::monostate, GemmShape, ConvolutionShape, AttentionShape, RnnShape>;

enum class StepPhase : std::uint8_t { kLoad, kForward, kLoss, kBackward, kOptimizer };
inline constexpr std::size_t kStepPhases = 5;
[[nodiscard]] std::string_view name_of(StepPhase phase);

/// One launch (or a fixed small group of launches of one library call) on the device.
struct Kernel {
  KernelClass kernel_class = KernelClass::kUncosted;
  MathUnit unit = MathUnit::kFp32;
  DType dtype = DType::kF32;      ///< of the main operand
  StepPhase phase = StepPhase::kForward;
  Stream stream = Stream::kCompute;
  std::uint16_t launches = 1;     ///< device kernels behind it
  std::uint16_t views = 0;        ///< view operators dispatched on the host just before
  Flops flops;
  Bytes read, written;            ///< unique bytes moved to and from device memory
  std::int64_t elements = 0;      ///< of the largest output: parallelism of memory-bound kernels
  KernelShape shape;
  std::uint32_t source = kSynthesized;  ///< index into Step::operators
  static constexpr std::uint32_t kSynthesized = 0xffffffff;
};

enum class InstructionKind : std::uint8_t { kAllocate, kFree, kFreePrevious, kLaunch, kSynchronize, kBucketReady };

/// In which iterations of the replay an instruction is executed.
enum class When : std::uint8_t { kAlways, kFirst, kLater };

/// `value` is a BufferId (kAllocate, kFree), a KernelId (kLaunch) or an index into buckets (kBucketReady).
/// kFree frees the buffer that this iteration allocated, kFreePrevious the one of the iteration before
/// (nothing in the first): the loss of the last step dies when the new one takes its name.
struct Instruction {
  InstructionKind kind;
  When when = When::kAlways;
  std::uint32_t value = 0;
};

/// One bucket of gradients that DDP reduces together, in order of readiness.
struct GradientBucket {
  Bytes bytes;
  std::uint32_t parameters = 0;
};

/// A named amount outside PyTorch's allocator.
struct OutsideMemory {
  std::string name;   ///< "CUDA context and libraries"
  Bytes bytes;
  std::string basis;
};

/// What one machine would execute and allocate for one job, in order. Memory and timing read this and know
/// nothing of each other. `setup` runs once, then `iteration` as often as one likes.
struct Program {
  std::vector<Buffer> buffers;
  std::vector<Kernel> kernels;
  std::vector<Instruction> setup;
  std::vector<Instruction> iteration;
  std::vector<GradientBucket> buckets;
  std::vector<OutsideMemory> outside;
  Bytes input_bytes;                ///< of one batch, host to device
  std::int64_t batch = 0;
  std::int64_t micro_batches = 1;   ///< gradient accumulation
  Diagnostics diagnostics;
};

}  // namespace stoker
