#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stoker {

/// What a user can set. The core names settings by these ids, in an error's
/// `where` and inside of sentences; how one is spelled (a flag, a keyword of
/// Python) is known at the edge alone.
enum class Setting : std::uint8_t {
  kModel,
  kMachine,
  kGpu,
  kGpus,
  kHost,
  kCoefficients,
  kPrice,
  kData,
  kRecapture,
  kAssume,
  kLora,
  kReprobe,
  kSamples,
  kSampleCost,
  kStorage,
  kImageSize,
  kWorkers,
  kPrefetch,
  kPin,
  kPersistentWorkers,
  kStartMethod,
  kBatch,
  kPrecision,
  kOptimizer,
  kOptimizerLoop,
  kMomentum,
  kWeightDecay,
  kNesterov,
  kClip,
  kClipChecks,
  kEma,
  kGradScaler,
  kZeroGradAfter,
  kZeroGradFills,
  kZeroGradBetween,
  kAccumulate,
  kCheckpoint,
  kSeqLen,
  kDim,
  kThreads,
  kDropOutput,
  kChannelsLast,
  kCudnnBenchmark,
  kCudaGraphs,
  kCompile,
  kCopy,
  kPrefetchingLoader,
  kValidation,
  kValidationSamples,
  kValidationWithGrad,
  kLastBatch,
  kEpochs,
  kNodes,
  kGpusPerNode,
  kNetwork,
  kLink,
  kStrong,
  kParallel,
  kFsdpMixedPrecision,
  kFsdpGroup,
  kFsdpOffload,
  kLoss,
  kBucketView,
  kAllocConf,
  kMemoryFraction,
  kCublasWorkspace,
  kObjective,
  kMaxGlobalBatch,
  kBudget,
  kRunBudget,
  kMethod,
  kReading,
  kStepMs,
  kBlocking,
  kCores,
  kExplain,
  kByLayer,
  kDevice,
  kMode,
  kKind,
  kMaxRead,
  kDram,
  kLearn,
  kCount  ///< of the settings; none itself
};

/// "gpus-per-node": the words of the setting, joined by hyphens.
[[nodiscard]] std::string_view name_of(Setting setting);

/// How a sentence of the core speaks of a setting: "{gpus-per-node}".
[[nodiscard]] std::string mark(Setting setting);
/// How a sentence of the core speaks of a switch that is turned off: "{no-pin}".
[[nodiscard]] std::string mark_off(Setting setting);

/// The sentence with its marks spelled as the command line's flags: "{no-pin}"
/// -> "--no-pin". Both are as long, so that a layout keeps its columns. Braces
/// around anything else stay.
[[nodiscard]] std::string with_flags(std::string_view sentence);

}  // namespace stoker
