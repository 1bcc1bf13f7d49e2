#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "evidence/calibration/measured_device.h"

namespace stoker {

/// Where the time of a training step goes, by the loop's own marks. Absent: not told apart.
struct MeasuredPhases {
  std::optional<Nanos> forward, backward, optimizer;  ///< forward with the loss
  std::optional<Nanos> input;                         ///< waiting for data and copying it
};

/// Peaks of memory; absent: such a device has none.
struct MeasuredPeaks {
  std::optional<Bytes> resident;         ///< of the process
  std::optional<Bytes> resident_before;  ///< the process before the model
  std::optional<Bytes> allocated, reserved, device;
};

/// One process that trained for some steps.
struct TrainingRepetition {
  Nanos step;  ///< median from one step's end to the next one's
  MeasuredPhases phases;
  MeasuredPeaks peaks;
  bool good = true;  ///< undisturbed, by the measuring's own rule
  std::string why;   ///< else
};

enum class RunStatus : std::uint8_t { kOk, kOutOfMemory, kFailed };

/// One setting of a training job, measured.
struct MeasuredRun {
  std::string model;  ///< as `stoker predict` takes it
  std::string name;   ///< for reports
  std::int64_t batch = 1;
  int threads = 0;  ///< of PyTorch on a CPU; 0: not told
  std::string precision = "fp32";
  bool compile = false;            ///< under torch.compile
  std::string optimizer;           ///< empty: the captured one
  std::optional<double> momentum;  ///< of it
  std::optional<double> weight_decay;
  std::map<std::string, std::int64_t> dimensions;
  RunStatus status = RunStatus::kOk;
  std::string note;  ///< why it failed
  /// Good repetitions that the measuring's rule asks for, and how close the two best must be,
  /// relative.
  std::size_t needed = 1;
  double agreement = 1;
  std::vector<TrainingRepetition> repetitions;

  /// "resnet18, batch 8, 2 threads, fp32"
  [[nodiscard]] std::string label() const;
};

/// What was measured of a run: the fastest good repetition's time, since what disturbs only ever
/// adds; the middle of the peaks.
struct TrainingFact {
  Nanos step;
  MeasuredPhases phases;
  MeasuredPeaks peaks;
  double spread = 0;     ///< of the good repetitions' step times: (slowest - fastest) / fastest
  std::size_t good = 0;  ///< repetitions
  bool settled =
      false;  ///< as many as the rule asks for, and they agree: fit to judge a forecast by
  std::string disturbed_by;  ///< why it is not settled; without a good repetition all were taken
};
/// nullopt: the run has no repetition.
[[nodiscard]] std::optional<TrainingFact> fact_of(const MeasuredRun& run);

/// What `python -m stoker training-runs` wrote (docs/reference/rows-files.md).
struct TrainingRuns {
  std::map<std::string, std::string> provenance;
  std::optional<MeasuredDevice> device;  ///< absent: an observation of an unknown device
  std::string rule;                      ///< when a repetition is thrown away, in words
  std::vector<MeasuredRun> runs;
  bool complete = true;
};

/// `where` names the file in errors.
[[nodiscard]] Result<TrainingRuns> parse_training_runs(std::string_view text,
                                                       const std::string& where);
[[nodiscard]] Result<TrainingRuns> read_training_runs(const std::filesystem::path& path);

}  // namespace stoker
