#pragma once

#include <filesystem>

#include "base/result.h"
#include "study/trial/trial_result.h"

namespace stoker::study {

/// The place for a trial's result, taken from the disk before the trial starts, so that a disk that
/// fills meanwhile cannot cost it.
class ResultFile {
 public:
  explicit ResultFile(std::filesystem::path path);
  ResultFile(const ResultFile&) = delete;
  ResultFile& operator=(const ResultFile&) = delete;
  ResultFile(ResultFile&&) = delete;
  ResultFile& operator=(ResultFile&&) = delete;
  ~ResultFile();

  /// Writes and renames; without points and output where the disk has no room for those.
  [[nodiscard]] Status write(const TrialResult& result);

 private:
  [[nodiscard]] bool put(const std::string& text) const;

  std::filesystem::path path_, draft_;
  int descriptor_ = -1;
};

}  // namespace stoker::study
