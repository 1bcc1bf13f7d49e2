#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "study/runner/bounded_output.h"

namespace stoker::study {

/// Reads what was added to a file since the last look.
class FileTail {
 public:
  explicit FileTail(std::filesystem::path path) : path_(std::move(path)) {}
  FileTail(const FileTail&) = delete;
  FileTail& operator=(const FileTail&) = delete;
  FileTail(FileTail&&) = delete;
  FileTail& operator=(FileTail&&) = delete;
  ~FileTail();

  void read(const std::function<void(std::string_view bytes)>& sink);

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

/// Reads the reports that were added to a file, a line each. Half a line waits for its end.
class ReportTail {
 public:
  explicit ReportTail(std::filesystem::path path) : file_(std::move(path)) {}
  void read(const std::function<void(std::string_view line)>& sink);

 private:
  FileTail file_;
  std::string line_;
};

/// Reads what a command printed, in the lines of LineSplitter: a pattern sees the same while a
/// trial runs as when it has ended, and no line that is too long for it.
class OutputTail {
 public:
  explicit OutputTail(std::filesystem::path path) : file_(std::move(path)) {}
  void read(const LineSplitter::Sink& sink);

 private:
  FileTail file_;
  LineSplitter lines_;
};

}  // namespace stoker::study
