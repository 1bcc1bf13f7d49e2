#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "observe/sample/sample.h"
#include "observe/told/told_steps.h"

namespace stoker {

/// Finds the file in which a training process tells of its steps, among the files that it has open
/// and in its environment, and follows it. Reads only; a file that this user may not open is as if
/// there were none.
class ToldWatch {
 public:
  /// `folder`: "/proc/4242"; steps from `since_ns` (CLOCK_MONOTONIC) on count.
  ToldWatch(std::string folder, std::int64_t since_ns)
      : folder_(std::move(folder)), since_ns_(since_ns) {}
  ~ToldWatch();
  ToldWatch(ToldWatch&& other) noexcept;
  ToldWatch& operator=(ToldWatch&&) = delete;

  /// Reads what was added since; looks for a file where none is known yet. About once a second.
  Told poll();

 private:
  void find();
  bool follow(const std::string& path);
  void read_on();

  std::string folder_;
  std::int64_t since_ns_;
  std::set<std::string> refused_;  ///< files that are something else
  std::unique_ptr<ToldSteps> steps_;
  int handle_ = -1;
  std::int64_t offset_ = 0;
  int polls_ = 0;
};

}  // namespace stoker
