#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

namespace stoker::cli {

/// A rows file without a name, for runs that are not kept: it is gone however this process ends.
class UnnamedRows {
 public:
  UnnamedRows() = default;
  /// False: there is no folder for temporary files.
  [[nodiscard]] bool make();
  ~UnnamedRows();
  UnnamedRows(const UnnamedRows&) = delete;
  UnnamedRows& operator=(const UnnamedRows&) = delete;
  /// A path that this process and its children can open.
  [[nodiscard]] std::filesystem::path path() const;

 private:
  int descriptor_ = -1;
};

/// Where a run is measured into: `named`, or a file without a name. `flag` is what names one.
[[nodiscard]] Result<std::filesystem::path> rows_path(const std::string& named, const char* flag,
                                                      UnnamedRows& unnamed);

/// While it lives Ctrl-C is the child's to answer: it puts its own things away and then ends.
class InterruptsForChild {
 public:
  InterruptsForChild();
  ~InterruptsForChild();
  InterruptsForChild(const InterruptsForChild&) = delete;
  InterruptsForChild& operator=(const InterruptsForChild&) = delete;

 private:
  void (*before_)(int);
};

}  // namespace stoker::cli
