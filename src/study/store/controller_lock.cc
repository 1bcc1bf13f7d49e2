#include "study/store/controller_lock.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <thread>

#include "base/text.h"
#include "study/trial/no_writing.h"
#include "study/trial/trial_files.h"
#include "system/system_files.h"

namespace stoker::study {
namespace fs = std::filesystem;
namespace {

/// A byte far behind the text, so that others can read who holds it.
struct flock byte(int type) {
  struct flock lock {};
  lock.l_type = static_cast<short>(type);
  lock.l_whence = SEEK_SET;
  lock.l_start = 1 << 20;
  lock.l_len = 1;
  return lock;
}

fs::path lock_path(const fs::path& store) { return store.string() + ".lock"; }

std::string text_of(int descriptor) {
  std::array<char, 256> text{};
  const ssize_t count = pread(descriptor, text.data(), text.size(), 0);
  return std::string(trimmed({text.data(), count > 0 ? static_cast<std::size_t>(count) : 0}));
}

/// How long the lock is waited for that a dead controller has left to its children. A child that
/// was forked shares the lock until it runs another program, or has seen that its parent is gone: a
/// matter of milliseconds, on a busy machine of more.
constexpr std::chrono::seconds kLongestInheritance{5};
constexpr std::chrono::milliseconds kBetweenLooks{10};

/// Whether a holder, "process 123 on node1", was of this host and runs no more.
bool has_died(const std::string& holder) {
  const auto words = split(holder, ' ');
  if (words.size() != 4 || words[3] != host_name()) return false;
  const auto process = whole_number(words[1]);
  return process && !runs(static_cast<int>(*process));
}

/// Whether the lock was taken; errno says why not.
bool taken(int descriptor) {
  const auto deadline = std::chrono::steady_clock::now() + kLongestInheritance;
  struct flock wanted = byte(F_WRLCK);
  while (fcntl(descriptor, F_OFD_SETLK, &wanted) != 0) {
    const int reason = errno;
    if ((reason != EAGAIN && reason != EACCES) || !has_died(text_of(descriptor)) ||
        std::chrono::steady_clock::now() >= deadline) {
      errno = reason;
      return false;
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
  return true;
}

}  // namespace

Result<ControllerLock> ControllerLock::take(const fs::path& store) {
  const fs::path path = lock_path(store);
  const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (descriptor < 0) return no_writing("made", path);
  ControllerLock lock(descriptor);
  if (!taken(descriptor)) {
    if (errno != EAGAIN && errno != EACCES) return no_writing("locked", path);
    const std::string holder = text_of(descriptor);
    return fail(ErrorCode::kIo,
                "is being run by " + (holder.empty() ? "another process" : holder) +
                    "; `stoker study` shows how far it is",
                store.string());
  }
  const std::string text = "process " + std::to_string(getpid()) + " on " + host_name() + "\n";
  if (ftruncate(descriptor, 0) != 0 ||
      pwrite(descriptor, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
    return no_writing("written", path);
  return lock;
}

std::string ControllerLock::holder(const fs::path& store) {
  const int descriptor = open(lock_path(store).c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return {};
  struct flock asked = byte(F_RDLCK);
  std::string text;
  if (fcntl(descriptor, F_OFD_GETLK, &asked) == 0 && asked.l_type != F_UNLCK)
    text = text_of(descriptor);
  close(descriptor);
  return text;
}

ControllerLock::~ControllerLock() {
  if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace stoker::study
