#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/diagnostics.h"
#include "base/units.h"
#include "operators/kernel_class.h"
#include "operators/shapes.h"
#include "step/step.h"

namespace stoker {

enum class BufferId : std::uint32_t {};
enum class KernelId : std::uint32_t {};

/// Streams of the device; blocks of the allocator are reused only by the stream that they came
/// from.
enum class Stream : std::uint8_t {
  kCompute,
  kCopy,
  kCommunication,
  kReduction  ///< FSDP's reduce-scatter; its kernels queue on kCommunication with the all-gathers
};

/// What a block of device memory is for; the parts that a memory report is broken down into.
enum class BufferRole : std::uint8_t {
  kParameter,
  kModelBuffer,
  kGradient,
  kOptimizerState,
  kInput,
  kActivation,
  kTemporary,
  kWorkspace,
  kBucket,
  kOutput
};
inline constexpr std::size_t kBufferRoles = 10;
[[nodiscard]] std::string_view name_of(BufferRole role);

struct Buffer {
  Bytes bytes;  ///< as requested from the allocator, before rounding
  BufferRole role = BufferRole::kTemporary;
  Stream stream = Stream::kCompute;
  /// A workspace that the library does without when it does not fit (cuDNN then takes another
  /// algorithm).
  bool optional = false;
  ModuleId module{};
};

/// Which arithmetic units run it.
enum class MathUnit : std::uint8_t {
  kFp32,
  kTf32Tensor,
  kFp16Tensor,
  kBf16Tensor,
  kFp16,
  kFp64,
  kInteger
};

inline constexpr std::size_t kMathUnits = 7;
[[nodiscard]] std::string_view name_of(MathUnit unit);

enum class StepPhase : std::uint8_t { kLoad, kForward, kLoss, kBackward, kOptimizer };
inline constexpr std::size_t kStepPhases = 5;
[[nodiscard]] std::string_view name_of(StepPhase phase);

/// One launch (or a fixed small group of launches of one library call) on the device.
struct Kernel {
  KernelClass kernel_class = KernelClass::kUncosted;
  MathUnit unit = MathUnit::kFp32;
  DType dtype = DType::kF32;  ///< of the main operand
  StepPhase phase = StepPhase::kForward;
  Stream stream = Stream::kCompute;
  std::uint16_t launches = 1;  ///< device kernels behind it
  std::uint16_t views = 0;     ///< view operators dispatched on the host just before
  std::uint16_t modules = 0;   ///< modules called on the host on the way to it
  bool compiled = false;       ///< launched by the code of torch.compile: no dispatch, no autograd
  /// The host's processor runs it while the device waits: FSDP's optimizer over offloaded shards.
  /// What it reads and writes is the host's memory.
  bool on_host = false;
  /// Tensors that one multi-tensor call of the host is given, in all its lists; 0: no such call.
  std::uint32_t listed = 0;
  Flops flops;
  Bytes read, written;        ///< unique bytes moved to and from device memory
  std::int64_t elements = 0;  ///< of the largest output: parallelism of memory-bound kernels
  /// On CPUs, where the function decides the time: its number in Program::functions, from 1; 0:
  /// unknown.
  std::uint16_t function = 0;
  /// On CPUs: reads in another order than it writes (a transpose), or reduces across rows.
  bool strided = false;
  /// On CPUs: another operator of the same call or autograd node came just before, without Python
  /// between.
  bool chained = false;
  KernelShape shape;
  std::uint32_t source = kSynthesized;  ///< index into Step::operators
  static constexpr std::uint32_t kSynthesized = 0xffffffff;
};

enum class InstructionKind : std::uint8_t {
  kAllocate,
  kFree,
  kFreePrevious,
  kLaunch,
  kSynchronize,
  kBucketReady,
  kAwaitCommunication,  ///< the compute stream waits for one operator's kernels on kCommunication
  kEmptyCache           ///< the allocator gives its unused segments back: torch.cuda.empty_cache()
};

/// In which iterations of the replay an instruction is executed.
enum class When : std::uint8_t { kAlways, kFirst, kLater };

/// `value` is a BufferId (kAllocate, kFree), a KernelId (kLaunch), an index into buckets
/// (kBucketReady) or the operator that is awaited, as in Kernel::source (kAwaitCommunication).
/// kFree frees the buffer that this iteration allocated, kFreePrevious the one of the iteration
/// before (nothing in the first): the loss of the last step dies when the new one takes its name.
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
  std::string name;  ///< "CUDA context and libraries"
  Bytes bytes;
  std::string basis;
};

/// Instructions [from, to) of a list that are executed `times` times in a row: micro-batches that
/// are alike.
struct Repeated {
  std::size_t from = 0, to = 0;
  std::int64_t times = 1;

  [[nodiscard]] std::int64_t times_of(std::size_t instruction) const {
    return instruction >= from && instruction < to ? times : 1;
  }
};

/// A part of a run that is no ordinary iteration and may have its own peak: the last, smaller batch
/// of an epoch, the validation. Its instructions run `repeats` times after the training iterations;
/// then `end` runs once and training goes on. kFirst means its first repetition; kFreePrevious
/// frees what the repetition before it allocated, or for a buffer of the iteration what the last
/// iteration did. The first iteration after the passes finds dead what a pass has freed of it.
struct ExtraPass {
  std::string name;  ///< "validation, batch 64"
  int repeats = 2;
  std::vector<Instruction> instructions;
  /// What the last repetition leaves alive dies here: a validation's batch and loss, say.
  std::vector<Instruction> end{};
  Repeated repeated{};  ///< of `instructions`
};

/// What one machine would execute and allocate for one job, in order. Memory and timing read this
/// and know nothing of each other. `setup` runs once, then `iteration` as often as one likes, then
/// the `passes`, then `iteration` again.
struct Program {
  std::vector<Buffer> buffers;
  std::vector<Kernel> kernels;
  std::vector<std::string> functions;  ///< ATen names without namespace: "add_", "gelu_backward"
  std::vector<Instruction> setup;
  std::vector<Instruction> iteration;
  std::vector<ExtraPass> passes;
  std::vector<GradientBucket> buckets;
  std::vector<OutsideMemory> outside;
  Bytes input_bytes;  ///< of one batch, host to device
  std::int64_t batch = 0;
  /// Gradient accumulation. `iteration` has the micro-batches one after another; of many that are
  /// alike it has two, which are `repeated`.
  std::int64_t micro_batches = 1;
  Repeated repeated{};  ///< of `iteration`
  /// The iteration is captured once and replayed as CUDA graphs: all but the copies of the batch
  /// and, where the host waits for the device in it, the optimizer's part.
  bool cuda_graphs = false;
  /// Whether the forward's operators record a graph for a backward.
  bool records_graph = true;
  Diagnostics diagnostics;

  /// Empty where it is not known.
  [[nodiscard]] std::string_view function_of(const Kernel& kernel) const {
    return kernel.function == 0 || kernel.function > functions.size()
               ? std::string_view()
               : std::string_view(functions[kernel.function - 1]);
  }

  /// Calls visit(kernel, its index, times) for what an iteration after the first launches.
  template <class Visit>
  void for_each_launch(Visit&& visit) const {
    for_each_launch(iteration, repeated, visit);
  }
  /// Likewise of other instructions, which are repeated as `often` says.
  template <class Visit>
  void for_each_launch(const std::vector<Instruction>& instructions, const Repeated& often,
                       Visit&& visit) const {
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      const Instruction& in = instructions[i];
      if (in.kind != InstructionKind::kLaunch || in.when == When::kFirst) continue;
      if (in.value < kernels.size()) visit(kernels[in.value], in.value, often.times_of(i));
    }
  }

  /// Leaves instructions out of the iteration.
  template <class Gone>
  void drop(Gone&& gone) {
    std::vector<Instruction> kept;
    Repeated moved{0, 0, repeated.times};
    for (std::size_t i = 0; i <= iteration.size(); ++i) {
      if (i == repeated.from) moved.from = kept.size();
      if (i == repeated.to) moved.to = kept.size();
      if (i < iteration.size() && !gone(iteration[i])) kept.push_back(iteration[i]);
    }
    iteration = std::move(kept);
    repeated = moved;
  }
};

}  // namespace stoker
