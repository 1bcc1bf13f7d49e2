#include "base/files.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace stoker {
namespace fs = std::filesystem;

namespace {

std::string system_reason() { return std::strerror(errno); }

struct FileCloser {
  void operator()(std::FILE* f) const { std::fclose(f); }
};
using File = std::unique_ptr<std::FILE, FileCloser>;

std::string too_large(Bytes limit) {
  return "is larger than " + std::to_string(limit.count() / kMiB.count()) +
         " MiB; this cannot be the file that is meant";
}

/// Signals that would end the program between writing and renaming are held back, and what
/// RLIMIT_FSIZE sends becomes the error EFBIG.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t held;
    sigemptyset(&held);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGXFSZ}) sigaddset(&held, signal);
    pthread_sigmask(SIG_BLOCK, &held, &before_);
  }
  ~SignalsHeld() {
    const int error = errno;
    sigset_t too_large;
    sigemptyset(&too_large);
    sigaddset(&too_large, SIGXFSZ);
    const timespec now{};
    while (sigtimedwait(&too_large, nullptr, &now) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

 private:
  sigset_t before_{};
};

bool write_all(int handle, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(handle, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

Status write_into(const fs::path& path, std::string_view content) {
  const int handle = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  const bool written = handle >= 0 && write_all(handle, content);
  const std::string reason = system_reason();
  if (handle >= 0) ::close(handle);
  if (written) return {};
  return fail(ErrorCode::kIo, "cannot be written: " + reason, path.string());
}

/// A file in the folder of `target` that has no name until it is whole (O_TMPFILE), so that not
/// even SIGKILL leaves it behind; named `name` from the beginning where the file system has no such
/// files.
class TemporaryFile {
 public:
  TemporaryFile(const fs::path& target, fs::path name) : name_(std::move(name)) {
    const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
    handle_ = ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    if (handle_ < 0) {
      handle_ = ::open(name_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
      named_ = handle_ >= 0;
    }
  }
  ~TemporaryFile() {
    const int error = errno;
    if (named_) ::unlink(name_.c_str());
    if (handle_ >= 0) ::close(handle_);
    errno = error;
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  [[nodiscard]] bool good() const { return handle_ >= 0; }

  [[nodiscard]] bool write(std::string_view content) const {
    return write_all(handle_, content) && ::fsync(handle_) == 0;
  }

  /// Takes the place of `target` in one step.
  [[nodiscard]] bool becomes(const fs::path& target) {
    if (!named_) {
      const std::string unnamed = "/proc/self/fd/" + std::to_string(handle_);
      ::unlink(name_.c_str());  // of a process of the same number that was killed
      if (::linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, name_.c_str(), AT_SYMLINK_FOLLOW) != 0)
        return false;
    }
    named_ = true;
    if (::rename(name_.c_str(), target.c_str()) != 0) return false;
    named_ = false;
    return true;
  }

 private:
  fs::path name_;
  int handle_ = -1;
  bool named_ = false;
};

}  // namespace

/// Bytes of a file that are made room for at once; what a file says of its size need not be true.
constexpr std::uintmax_t kMostReserved = 16 << 20;

Result<std::string> read_file(const fs::path& path, Bytes limit) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    return fail(ErrorCode::kBadInput, "is a folder, a file is needed", path.string());
  }
  const File file(std::fopen(path.c_str(), "rb"));
  if (!file && errno == ENOENT)
    return fail(ErrorCode::kIo, "no such file; check the path", path.string());
  if (!file) return fail(ErrorCode::kIo, "cannot be read: " + system_reason(), path.string());
  std::string content;
  if (const auto size = fs::file_size(path, ignored); !ignored && size <= kMostReserved)
    content.reserve(size);
  std::array<char, 1 << 16> block{};
  while (const std::size_t n = std::fread(block.data(), 1, block.size(), file.get())) {
    content.append(block.data(), n);
    if (static_cast<std::int64_t>(content.size()) > limit.count()) {
      return fail(ErrorCode::kBadInput, too_large(limit), path.string());
    }
  }
  if (std::ferror(file.get())) {
    return fail(ErrorCode::kIo, "cannot be read to its end: " + system_reason(), path.string());
  }
  return content;
}

std::uint32_t crc32_of(std::string_view text) {
  return static_cast<std::uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(text.data()), text.size()));
}

Result<std::string> read_gzip_file(const fs::path& path, Bytes limit) {
  auto packed = read_file(path, limit);
  if (!packed) return packed;
  z_stream stream{};
  constexpr int kGzipOnly = 15 + 16;  // zlib.h, inflateInit2: window 2^15, gzip header required
  if (inflateInit2(&stream, kGzipOnly) != Z_OK) {
    return fail(ErrorCode::kIo, "cannot be decompressed: zlib did not start", path.string());
  }
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, inflateEnd);
  stream.next_in = reinterpret_cast<Bytef*>(packed->data());
  stream.avail_in = static_cast<uInt>(packed->size());
  std::string content;
  std::vector<char> block(1 << 18);
  int state = Z_OK;
  while (state != Z_STREAM_END) {
    stream.next_out = reinterpret_cast<Bytef*>(block.data());
    stream.avail_out = static_cast<uInt>(block.size());
    state = inflate(&stream, Z_NO_FLUSH);
    const std::size_t produced = block.size() - stream.avail_out;
    content.append(block.data(), produced);
    if (static_cast<std::int64_t>(content.size()) > limit.count()) {
      return fail(ErrorCode::kBadInput, "decompresses to more than it may; " + too_large(limit),
                  path.string());
    }
    if (state == Z_DATA_ERROR || state == Z_NEED_DICT) {
      return fail(ErrorCode::kBadInput,
                  "is not gzip, or is damaged; write it again (a step file: `stoker capture`)",
                  path.string());
    }
    if (state != Z_STREAM_END && produced == 0 && stream.avail_in == 0) {
      return fail(ErrorCode::kBadInput,
                  "is cut short; write it again (a step file: `stoker capture`)", path.string());
    }
  }
  return content;
}

Status write_file(const fs::path& path, std::string_view content) {
  const SignalsHeld held;
  std::error_code ignored;
  const fs::file_status there = fs::status(path, ignored);
  // A device or a pipe is written to, never replaced.
  if (fs::exists(there) && !fs::is_regular_file(there)) return write_into(path, content);
  const fs::path temporary = path.string() + ".tmp" + std::to_string(::getpid());
  TemporaryFile file(path, temporary);
  if (!file.good())
    return fail(ErrorCode::kIo, "cannot be written: " + system_reason(), path.string());
  if (!file.write(content)) {
    return fail(ErrorCode::kIo,
                "cannot be written whole: " + system_reason() + "; the old file is untouched",
                path.string());
  }
  if (!file.becomes(path))
    return fail(ErrorCode::kIo, "cannot be replaced: " + system_reason(), path.string());
  return {};
}

Result<fs::path> data_folder() {
  std::vector<fs::path> candidates;
  if (const char* given = std::getenv("STOKER_DATA"); given != nullptr && *given != '\0') {
    candidates.emplace_back(given);
  } else {
    std::error_code error;
    const fs::path binary = fs::read_symlink("/proc/self/exe", error).parent_path();
    if (!error) {
      candidates.push_back(binary / "../share/stoker");  // installed
      candidates.push_back(binary / "../data");     // inside the wheel: stoker/bin, stoker/data
      candidates.push_back(binary / "../../data");  // build/release/stoker in the source tree
      candidates.push_back(binary / "../../../data");
    }
#ifdef STOKER_SOURCE_DATA
    candidates.emplace_back(STOKER_SOURCE_DATA);
#endif
  }
  for (const fs::path& candidate : candidates) {
    std::error_code ignored;
    if (fs::exists(candidate / "gpus", ignored)) return fs::weakly_canonical(candidate);
  }
  return fail(ErrorCode::kNotFound,
              "the data that ships with stoker was not found; set STOKER_DATA to the project's "
              "data folder");
}

fs::path cache_folder() {
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && *xdg != '\0') {
    return fs::path(xdg) / "stoker";
  }
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home != '\0') return fs::path(home) / ".cache" / "stoker";
  return fs::path("/tmp") / ("cache-" + std::to_string(::getuid())) / "stoker";
}

}  // namespace stoker
