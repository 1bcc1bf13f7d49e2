#include "observe/told/told_watch.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <utility>

#include "observe/proc/proc_text.h"
#include "system/system_files.h"

namespace stoker {
namespace {

/// Polls between two searches while nothing was found, after the first ones.
constexpr int kFirstSearches = 10, kSearchEvery = 5;
/// So much is read of a file at a time; of a longer one that was there before, only the end.
constexpr std::size_t kPiece = 1 << 16;
constexpr std::int64_t kLongBefore = 4 << 20;
/// A poll reads no more than this, so that a fast loop does not hold up the samples.
constexpr int kMostPieces = 16;

std::string link_of(const std::string& path) {
  std::array<char, 1024> target{};
  const ssize_t size = ::readlink(path.c_str(), target.data(), target.size());
  return size > 0 ? std::string(target.data(), static_cast<std::size_t>(size)) : std::string();
}

/// Whether a descriptor adds to the end of a file, as who keeps a record does.
bool appends(const std::string& fdinfo) {
  constexpr std::string_view kFlags = "flags:";
  const std::size_t at = fdinfo.find(kFlags);
  if (at == std::string::npos) return false;
  const long flags = std::strtol(fdinfo.c_str() + at + kFlags.size(), nullptr, 8);
  return (flags & O_APPEND) != 0 && (flags & O_ACCMODE) != O_RDONLY;
}

}  // namespace

ToldWatch::~ToldWatch() {
  if (handle_ >= 0) ::close(handle_);
}

ToldWatch::ToldWatch(ToldWatch&& other) noexcept
    : folder_(std::move(other.folder_)),
      since_ns_(other.since_ns_),
      refused_(std::move(other.refused_)),
      steps_(std::move(other.steps_)),
      handle_(std::exchange(other.handle_, -1)),
      offset_(other.offset_),
      polls_(other.polls_) {}

bool ToldWatch::follow(const std::string& path) {
  // Not a pipe that somebody else would then miss, nor a file that opening changes.
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return false;
  const int handle = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (handle < 0) return false;
  std::string first(kPiece, '\0');
  const ssize_t size = ::pread(handle, first.data(), first.size(), 0);
  auto steps = std::make_unique<ToldSteps>(since_ns_);
  if (size > 0) steps->take(std::string_view(first).substr(0, static_cast<std::size_t>(size)));
  if (!steps->known()) {
    ::close(handle);
    return false;
  }
  handle_ = handle;
  offset_ = size;
  if (info.st_size > kLongBefore) {
    offset_ = info.st_size - static_cast<std::int64_t>(kPiece);
    steps->skip();
  }
  steps_ = std::move(steps);
  return true;
}

void ToldWatch::find() {
  const std::string environment = system_files()(folder_ + "/environ").value_or("");
  const std::string reports = proc::text_in_environment(environment, "STOKER_REPORTS");
  for (const std::string& entry : system_folders()(folder_ + "/fd")) {
    const std::string path = folder_ + "/fd/" + entry;
    const std::string target = link_of(path);
    if (!target.starts_with('/') || refused_.contains(target)) continue;
    if (target.starts_with("/dev/") || target.starts_with("/proc/")) continue;
    if (!appends(system_files()(folder_ + "/fdinfo/" + entry).value_or(""))) {
      refused_.insert(target);
      continue;
    }
    if (follow(path)) return;
    // A file that was opened and not yet written to is looked at again.
    struct stat info {};
    if (::stat(path.c_str(), &info) == 0 && info.st_size > 0) refused_.insert(target);
  }
  // What an observation tells is more than what reports do, and comes with a file that stays open.
  if (!reports.empty()) follow(folder_ + "/root" + reports);
}

void ToldWatch::read_on() {
  std::string piece(kPiece, '\0');
  for (int i = 0; i < kMostPieces; ++i) {
    const ssize_t size = ::pread(handle_, piece.data(), piece.size(), offset_);
    if (size <= 0) return;
    offset_ += size;
    steps_->take(std::string_view(piece).substr(0, static_cast<std::size_t>(size)));
    if (static_cast<std::size_t>(size) < piece.size()) return;
  }
}

Told ToldWatch::poll() {
  if (!steps_ && (polls_ < kFirstSearches || polls_ % kSearchEvery == 0)) find();
  ++polls_;
  if (!steps_) return {};
  read_on();
  return steps_->told();
}

}  // namespace stoker
