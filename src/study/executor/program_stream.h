#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "study/runner/child_process.h"

namespace stoker::study {

/// Parts a stream of JSON objects that stand one behind the other, as `kubectl get --watch -o json`
/// writes them.
class ObjectStream {
 public:
  /// Objects that are complete with these bytes.
  [[nodiscard]] std::vector<std::string> add(std::string_view bytes);

 private:
  std::string open_;
  int depth_ = 0;
  bool in_text_ = false, escaped_ = false;
};

/// A program that goes on running and whose output is read as it comes.
class ProgramStream {
 public:
  ProgramStream() = default;
  ProgramStream(const ProgramStream&) = delete;
  ProgramStream& operator=(const ProgramStream&) = delete;
  ProgramStream(ProgramStream&&) = delete;
  ProgramStream& operator=(ProgramStream&&) = delete;
  ~ProgramStream() { stop(); }

  [[nodiscard]] Status start(const std::vector<std::string>& words);
  [[nodiscard]] bool runs() const { return child_.process > 0; }
  /// What came, after waiting for it for at most so long. Empty at the end, too, after which it
  /// does not run.
  [[nodiscard]] std::string read(double wait_seconds);
  /// What it said on its standard error, at most 4 KiB of it.
  [[nodiscard]] const std::string& errors() const { return errors_; }
  void stop();

 private:
  Child child_;
  std::string errors_;
};

}  // namespace stoker::study
