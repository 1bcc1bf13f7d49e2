#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace stoker {

/// A regular file opened for reading, closed in any case. A pipe or a device that has taken the
/// place of a file is not waited for (O_NONBLOCK) and not taken.
class OpenedFile {
 public:
  explicit OpenedFile(const std::filesystem::path& path, int extra_flags = 0)
      : handle_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | extra_flags)) {
    struct stat info {};
    if (handle_ >= 0 && (::fstat(handle_, &info) != 0 || !S_ISREG(info.st_mode))) {
      ::close(handle_);
      handle_ = -1;
    }
  }
  ~OpenedFile() {
    if (handle_ >= 0) ::close(handle_);
  }
  OpenedFile(const OpenedFile&) = delete;
  OpenedFile& operator=(const OpenedFile&) = delete;

  [[nodiscard]] bool good() const { return handle_ >= 0; }
  [[nodiscard]] int handle() const { return handle_; }

 private:
  int handle_;
};

}  // namespace stoker
