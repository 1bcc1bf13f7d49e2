#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/figure.h"

namespace stoker {

/// Something that a run pays once.
struct RunPart {
  std::string name;  ///< "CUDA context, libraries, first kernels"
  Figure seconds;
};

/// How long a whole run of several epochs takes on the wall clock. All figures in seconds, of the
/// whole job, which ends with its last validation. Money and energy follow from `seconds_total` and
/// the number of GPUs.
struct RunTime {
  std::int64_t epochs = 0;
  /// From the start of Python to the first training step, and what the first epoch pays more than
  /// the others: imports, CUDA, algorithm trials, cold files. In order.
  std::vector<RunPart> start_up;
  Figure seconds_start_up;     ///< their sum
  Figure seconds_validation;   ///< the validation of one epoch; 0: none, or of unknown size
  Figure seconds_epoch;        ///< an epoch after the first, its validation included
  Figure seconds_first_epoch;  ///< from the start of Python to the end of the first epoch
  Figure seconds_total;
};

struct Forecast;
struct Knowledge;
struct Program;
struct Scenario;

/// The run of `scenario.epochs` epochs, when the size of the data set is known; otherwise nothing
/// (epochs 0). `forecast` is what is known of one step and one epoch.
[[nodiscard]] RunTime run_time_of(const Scenario& scenario, const Program& program,
                                  const Forecast& forecast);

}  // namespace stoker
