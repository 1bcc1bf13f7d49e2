#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace stoker {

/// One figure that was forecast and then measured.
struct AccuracyEntry {
  std::string date;  ///< "2026-11-28T15:34:30Z", UTC
  std::string model, machine;
  std::string device;  ///< "cpu" or "gpu"
  std::string stoker, torch, driver;
  std::int64_t batch = 0;
  int threads = 0;
  std::string precision;
  std::string figure, unit;  ///< "step", "ms"
  double forecast = 0, low = 0, high = 0, fact = 0;
  std::string basis;  ///< what the forecast rested on
  bool disturbed = false;

  [[nodiscard]] bool within() const { return fact >= low && fact <= high; }
  [[nodiscard]] double error() const { return forecast / fact - 1; }
};

/// $XDG_STATE_HOME/stoker/accuracy.db, or ~/.local/state/stoker/accuracy.db. Empty: no such folder
/// is known.
[[nodiscard]] std::filesystem::path accuracy_log_path();

/// Adds entries to the log at `path`, all or none; it and its folder are made when they are
/// missing. Another process that writes is waited for, two seconds at most.
[[nodiscard]] Status append_accuracy(const std::filesystem::path& path,
                                     const std::vector<AccuracyEntry>& entries);

/// The newest `at_most` entries, oldest first. A log that does not exist is empty.
[[nodiscard]] Result<std::vector<AccuracyEntry>> read_accuracy(const std::filesystem::path& path,
                                                               std::size_t at_most);

/// Now, as the entries have it.
[[nodiscard]] std::string utc_now();

}  // namespace stoker
