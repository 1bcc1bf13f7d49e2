#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "input/findings/findings.h"
#include "plan/loader_search.h"

namespace stoker {

/// What turning a knob takes.
enum class KnobKind : std::uint8_t {
  kSetting,  ///< an argument of the DataLoader
  kCode,     ///< a change of the program
  kData,     ///< the data set rewritten once
  kHardware  ///< another host
};
[[nodiscard]] std::string_view name_of(KnobKind kind);

/// One thing to change and what it is worth. Settings count one on top of the other, in the order
/// of the list; everything else counts alone, on top of the recommended settings.
struct Knob {
  std::string name;  ///< "workers", "prefetch", "smaller_files", ...
  KnobKind kind = KnobKind::kSetting;
  std::string change;  ///< "num_workers=6 instead of 2"
  /// Relative change of the samples a second over an epoch: 0.25 = +25 %; low and high with samples
  /// as cheap and as costly as their band allows (both sides of the comparison share that error).
  double gain = 0, gain_low = 0, gain_high = 0;
  double samples_per_s = 0;  ///< then, the whole job
  double epoch_seconds = 0;  ///< saved an epoch; 0 where the data set's size is unknown
  double epoch_money = 0;    ///< likewise; 0 without a price
  Bytes memory;              ///< host memory held in addition, all processes; below 0: freed
  std::string risk;          ///< what it may cost or break
};

/// How the training loop consumes with other loader settings: another batch takes another step, and
/// pageable memory a blocking copy.
using StepOf = std::function<Consumer(const LoaderSettings&)>;

/// What is weighed, and what it is measured by.
struct KnobRequest {
  LoaderCase now;         ///< the loader as it is, or PyTorch's defaults
  LoaderSettings best;    ///< the recommended settings
  LoaderFreedom freedom;  ///< what a what-if may change to make the most of it; batch as in `best`
  Host room;
  StepOf step;
  const LoaderProfile* profile = nullptr;  ///< for what-ifs on images; not owned
  double price_per_gpu_hour = 0;           ///< 0: unknown
  int gpus = 1;                            ///< of the whole job
};

/// Settings that differ between now and the best, each on top of those before it, the most valuable
/// first.
[[nodiscard]] std::vector<Knob> setting_knobs(const KnobRequest& request);

/// What else would bring at least kMustBring on top of the best settings, the most valuable first.
[[nodiscard]] std::vector<Knob> other_knobs(const KnobRequest& request);

}  // namespace stoker
