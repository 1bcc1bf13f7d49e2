#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "input/loader/loader_simulation.h"
#include "input/pipeline/pipeline_probe.h"

namespace stoker {

/// One timed epoch of a real DataLoader (docs/reference/rows-files.md).
struct LoaderRepetition {
  Nanos epoch;        ///< from before iter() until the last step ended
  Nanos first_batch;  ///< from before iter() until batch 0
  Nanos interval;     ///< median between batches
  Bytes shared_memory;
  Nanos main_cpu, workers_cpu;
  double foreign = 0, steal = 0;  ///< shares of all cores' time
  double speed = 1;               ///< of a reference kernel, against that at calibration
  bool good = false;
  std::string why;  ///< not good
};

/// One setting of a loader and its repetitions.
struct LoaderPoint {
  LoaderSettings settings;  ///< dataset_samples: of the epoch
  Nanos step;               ///< the loop sleeps for so long after each batch
  int cores = 1;
  bool cold = false;  ///< the files were dropped from the page cache before
  std::vector<LoaderRepetition> repetitions;

  /// "batch 32, 2 workers, prefetch 4, step 40 ms, 1 core, any order"; what is usual is left out.
  [[nodiscard]] std::string label() const;
};

/// Cold reads of the scenario's files, measured at calibration.
struct ColdReads {
  bool measured = false;
  double seek_ms = 0;    ///< one reader: a file, without its bytes
  double bandwidth = 0;  ///< one reader, bytes/s
  double speedup = 0;    ///< of several readers over one
};

/// A data set, its one calibration and its measured points.
struct LoaderScenario {
  std::string name, what;
  bool batches_differ = false;
  bool cut = false;  ///< the loop left epochs after a point's samples; the data set is longer
  PipelineProbe probe;
  ColdReads cold;
  std::vector<LoaderPoint> points;
};

struct LoaderRuns {
  std::string date, cpu_model, python, torch;
  int cores = 1;
  std::string rule;      ///< when a repetition is thrown away
  int needed = 2;        ///< good repetitions of a point; with fewer it is dropped
  double agreement = 0;  ///< relative, of the epochs of the best `needed` ones; 0: not asked for
  struct Skipped {
    std::string name, why;
  };
  std::vector<Skipped> skipped;  ///< scenarios that could not run on that machine
  std::vector<LoaderScenario> scenarios;
};

/// Reads a rows file and checks every number. `where` names the file in errors.
[[nodiscard]] Result<LoaderRuns> parse_loader_runs(std::string_view text,
                                                   const std::string& where = {});
[[nodiscard]] Result<LoaderRuns> read_loader_runs(const std::filesystem::path& path);

}  // namespace stoker
