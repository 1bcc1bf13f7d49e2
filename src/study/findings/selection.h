#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "study/store/store.h"

namespace stoker::study {

/// Trials of a study with what they measured, as they are shown.
struct StudyView {
  Study study;
  std::vector<std::string> axes;
  std::vector<TrialRow> rows;
  std::vector<std::string> metrics;           ///< columns: those asked for, else those of any trial
  std::map<TrialState, std::int64_t> counts;  ///< of all trials, whatever was selected
  std::string running_by;                     ///< "process 12 on node1"; empty: nobody runs it
};

struct Selection {
  std::string where{};                 ///< an expression over axes, metrics, resources, state ...
  std::vector<std::string> metrics{};  ///< empty: all
};

/// A trial that was run again is left out where the newer one is final.
[[nodiscard]] Result<StudyView> select(const Store& store, const Selection& selection);

/// The value of a metric or resource of a trial; also wall_s.
[[nodiscard]] std::optional<double> figure_of(const TrialRow& row, const std::string& name);

/// Trials that share the values of some axes.
struct Group {
  std::vector<std::string> values;  ///< of these axes
  std::int64_t trials = 0, done = 0;
  struct Mean {
    std::int64_t count = 0;
    double mean = 0;
    std::optional<double> deviation{};  ///< of a sample; from two on
  };
  std::vector<Mean> means{};  ///< of view.metrics
};

/// Trials grouped by axes, in the order in which their values come first.
[[nodiscard]] Result<std::vector<Group>> grouped(const StudyView& view,
                                                 const std::vector<std::string>& by);

}  // namespace stoker::study
