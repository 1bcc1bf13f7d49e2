#include "observe/proc/kept_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

namespace stoker {
namespace {

constexpr std::size_t kMostBytes = 4096;

KeptFile::State state_of(int error) {
  const bool denied = error == EACCES || error == EPERM;
  return denied ? KeptFile::State::kDenied : KeptFile::State::kGone;
}

}  // namespace

std::string_view KeptFile::read() {
  static thread_local std::array<char, kMostBytes> buffer;
  if (state_ != State::kFine || path_.empty()) return {};
  if (handle_ < 0) handle_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (handle_ < 0) {
    // Without a free descriptor this reading is lost, not the file.
    if (errno != EMFILE && errno != ENFILE) state_ = state_of(errno);
    return {};
  }
  const ssize_t size = ::pread(handle_, buffer.data(), buffer.size(), 0);
  if (size < 0) {
    state_ = state_of(errno);
    close();
    return {};
  }
  return {buffer.data(), static_cast<std::size_t>(size)};
}

void KeptFile::close() {
  if (handle_ >= 0) ::close(handle_);
  handle_ = -1;
}

void raise_open_file_limit() {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace stoker
