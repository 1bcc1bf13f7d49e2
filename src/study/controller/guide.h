#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "study/store/store.h"

namespace stoker::study {

/// Advises a controller on trials that wait, by what those that ended taught. Rows are as the store
/// hands them out without figures; those of ended trials have their metrics and time.
class Guide {
 public:
  Guide() = default;
  Guide(const Guide&) = delete;
  Guide& operator=(const Guide&) = delete;
  Guide(Guide&&) = delete;
  Guide& operator=(Guide&&) = delete;
  virtual ~Guide() = default;

  /// A trial has come to its final state.
  virtual void ended(const TrialRow& row) = 0;
  /// Why a trial need not run; nothing: it is to.
  [[nodiscard]] virtual std::optional<std::string> leave_out(const TrialRow& row) = 0;
  /// Figures that are expected of a trial by now: kept beside it when it begins or is left out.
  [[nodiscard]] virtual std::map<std::string, double> expected(const TrialRow& row) = 0;
  /// Puts trials that wait into the order in which they are to run.
  virtual void arrange(std::deque<TrialRow>& waiting) = 0;
};

}  // namespace stoker::study
