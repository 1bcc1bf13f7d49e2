#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "device/calibration_data.h"
#include "device/machine.h"
#include "program/program.h"
#include "timing/cpu/cpu_point.h"
#include "timing/cpu/cpu_rules.h"
#include "timing/cpu/residual_process.h"

namespace stoker {

/// What rules and rows say of one operator in a training step, on so many threads.
struct CpuEstimate {
  Nanos time;  ///< beyond what a call on one number takes
  Nanos compute, memory;
  double factor = 1;  ///< rows over rules
  bool has_rule = true;
  bool has_rows = false;  ///< of its function
  ProcessPoint point;
};

/// How long ATen's operators take on one processor: rules by the data sheet and the measured
/// figures, times what measured operators say of the rules (docs/models/cpu-time.md). Immutable;
/// made once for many steps.
class CpuModel {
 public:
  /// Refuses rows that are unknown or contradict physics, naming them.
  [[nodiscard]] static Result<std::shared_ptr<const CpuModel>> make(const Cpu& cpu);

  [[nodiscard]] const Cpu& cpu() const { return cpu_; }
  /// Operators that the calibration measured with success.
  [[nodiscard]] std::size_t rows() const { return rows_; }
  [[nodiscard]] bool disturbed() const { return disturbed_; }

  /// A row against the rule, and against what all others say of it; logarithms.
  struct LeftOut {
    std::size_t row;  ///< of Calibration::operators
    CpuGroup group;
    double residual, error, deviation;
  };
  [[nodiscard]] std::vector<LeftOut> left_out() const;

 private:
  friend class CpuEstimator;
  CpuModel() = default;

  /// The process of a group at a number of threads: by the rows with so many, by all where there
  /// are none.
  [[nodiscard]] ResidualProcess process_of(CpuGroup group, int threads) const;

  Cpu cpu_;
  std::size_t rows_ = 0;
  bool disturbed_ = false;
  NameNumbers names_;
  struct Row {
    ProcessRow row;
    int threads = 1;
    std::size_t number = 0;  ///< of Calibration::operators
  };
  [[nodiscard]] std::vector<const Row*> rows_for(CpuGroup group, int threads) const;

  std::array<std::vector<Row>, kCpuGroups> groups_;
  double mean_ = 0;                               ///< of the groups' means, drawn to zero
  std::map<std::uint32_t, std::size_t> rows_of_;  ///< by number of the function
};

/// The model at one number of threads, for the kernels of one program. Repeated kernels are looked
/// up.
class CpuEstimator {
 public:
  /// `step_bytes`: what a whole step touches.
  CpuEstimator(const CpuModel& model, int threads, double step_bytes = 0);

  [[nodiscard]] CpuEstimate estimate(const Kernel& kernel, std::string_view function);
  /// Takes executions of it into the spread.
  void count(const Kernel& kernel, const CpuEstimate& estimate, double times);
  /// Standard deviation of the time of everything counted: what the processes do not know of it.
  [[nodiscard]] Nanos spread();
  /// Share of the counted time in operators of functions that were measured.
  [[nodiscard]] double measured_share() const;
  [[nodiscard]] const CpuProcessor& processor() const { return processor_; }

 private:
  const ResidualProcess& process(CpuGroup group);

  struct Counted {
    std::vector<ProcessPoint> points;
    std::vector<double> weights;  ///< their times in nanoseconds, as variance_of_sum() takes them
    std::map<std::vector<double>, std::size_t> known;
  };

  const CpuModel& model_;
  CpuProcessor processor_;
  Seconds call_;
  double step_bytes_ = 0;
  std::array<std::unique_ptr<const ResidualProcess>, kCpuGroups>
      processes_;  ///< as they are needed
  NameNumbers names_;
  std::map<std::vector<double>, CpuEstimate> known_;
  std::array<Counted, kCpuGroups> counted_;
  Nanos all_, measured_;
};

}  // namespace stoker
