#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "device/catalogue/gpu_catalogue.h"
#include "device/machine.h"
#include "program/job.h"
#include "program/program.h"
#include "step/step.h"

namespace stoker {

/// A measured time of the user's: an operator called alone, one layer inside a step (kernels
/// alone), or a whole step. docs/guide/fit.md describes the columns.
struct FitRow {
  Gpu gpu;
  std::string group;    ///< what errors are told by: "gemm", "layers", "steps"
  std::string subject;  ///< rows of one shape or model: left out together in cross-validation
  std::string where;    ///< "rows.csv:12"
  double time_us = 0;
  double spread = 0;  ///< relative standard deviation of the timing
  /// One kernel of an operator, or all of a layer's, in its program.
  std::vector<Kernel> kernels;
  std::shared_ptr<const Program> program;  ///< of a whole step; else null
  Machine machine;                         ///< of a whole step
  bool alone = false;                      ///< an operator: its time contains a launch
};

struct FitTable {
  std::vector<FitRow> rows;
  std::map<std::string, double> launch_floor_us;  ///< by GPU, from rows of kind "launch"
};

/// Finds the step that a row's model means.
using StepLoader =
    std::function<Result<std::shared_ptr<const Step>>(const std::string& model, Precision)>;

/// What GPU a row's cell means.
using GpuFinder = std::function<Result<Gpu>(const std::string& name)>;

/// Parses and lowers. `gpu`: of rows whose own cell is empty; may be empty too. `name` is the file
/// that errors point at. Refuses columns and kinds that are unknown, figures that cannot be, and
/// operators that contradict physics, each with its line.
[[nodiscard]] Result<FitTable> read_fit_rows(std::string_view text, const std::string& name,
                                             const std::string& gpu, const GpuFinder& find_gpu,
                                             const StepLoader& load_step);

}  // namespace stoker
