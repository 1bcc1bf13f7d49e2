#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace stoker::study {

/// Reads what was added to a file of lines since the last look. Half a line waits for its end.
class ReportTail {
 public:
  explicit ReportTail(std::filesystem::path path) : path_(std::move(path)) {}
  ReportTail(const ReportTail&) = delete;
  ReportTail& operator=(const ReportTail&) = delete;
  ReportTail(ReportTail&&) = delete;
  ReportTail& operator=(ReportTail&&) = delete;
  ~ReportTail();

  void read(const std::function<void(std::string_view line)>& sink);

 private:
  std::filesystem::path path_;
  std::string line_;
  int descriptor_ = -1;
};

}  // namespace stoker::study
