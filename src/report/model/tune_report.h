#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tune/method/method.h"
#include "tune/run/tuner.h"

namespace stoker {

/// The batch that was chosen, or that the command fixes.
struct BatchReport {
  double per_device = 0, devices = 1;
  std::optional<double> rate{};  ///< the learning rate that belongs to it

  [[nodiscard]] double global() const { return per_device * devices; }
};

/// A search as far as it went: what `stoker tune` prints, as text and as JSON.
struct TuneReport {
  std::string method;
  tune::Objective objective{};
  std::vector<std::string> axes{};  ///< names of a choice's values
  std::vector<tune::Decision> decisions{};
  std::optional<tune::Choice> choice{};
  tune::Spent spent{};
  std::string problem{};  ///< why it could not go on; empty: it could
  std::string over{};     ///< why it ended before its end: a budget, a wish
  std::string command{};  ///< with what was chosen
  std::string store{};
  std::string go_on{};  ///< words behind `stoker tune STORE` that go on with it
  std::optional<BatchReport> batch{};
};

[[nodiscard]] std::string tune_text(const TuneReport& report);
[[nodiscard]] std::string tune_json(const TuneReport& report, std::string_view version);
/// A decision as a line while the search goes on: "lr 0.01: accuracy 0.75 (trial 3 ...)".
[[nodiscard]] std::string decision_line(const tune::Decision& decision);

}  // namespace stoker
