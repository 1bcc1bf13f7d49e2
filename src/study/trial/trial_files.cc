#include "study/trial/trial_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>

#include "base/files.h"
#include "base/text.h"
#include "study/trial/no_writing.h"
#include "system/system_files.h"

namespace stoker::study {
namespace fs = std::filesystem;
namespace {

constexpr Bytes kLargestClaim{4096};
constexpr std::string_view kWithdrawn = "withdrawn\n";

/// Made and filled in one instant: a claim that can be seen has its content, whatever dies when.
/// -1 with EEXIST: there is one.
int make_claim(const fs::path& path, std::string_view content) {
  const fs::path draft =
      path.string() + "." + host_name() + "." + std::to_string(getpid()) + ".tmp";
  const int descriptor =
      open(draft.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, S_IRUSR | S_IWUSR | S_IRGRP);
  if (descriptor < 0) return -1;
  const bool written =
      write(descriptor, content.data(), content.size()) == static_cast<ssize_t>(content.size());
  // The lock is taken before the name exists, so that nobody sees a claim whose owner holds none.
  const bool locked = written && flock(descriptor, LOCK_EX | LOCK_NB) == 0;
  const bool named = locked && link(draft.c_str(), path.c_str()) == 0;
  const int reason = errno;
  unlink(draft.c_str());
  if (named) return descriptor;
  close(descriptor);
  errno = written && !locked ? ENOLCK : reason;
  return -1;
}

/// The fields of /proc/PID/stat behind the name, which stands in brackets and may hold blanks: the
/// state is the first, the start the 20th. Empty: there is no such process.
std::vector<std::string> stat_fields(int process) {
  const auto text = system_files()("/proc/" + std::to_string(process) + "/stat");
  const auto bracket = text ? text->rfind(')') : std::string::npos;
  if (bracket == std::string::npos || bracket + 2 > text->size()) return {};
  return split(std::string_view(*text).substr(bracket + 2), ' ');
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

std::int64_t start_ticks(int process) {
  const auto fields = stat_fields(process);
  constexpr std::size_t kStart = 19;
  if (fields.size() <= kStart) return 0;
  return whole_number(fields[kStart]).value_or(0);
}

bool runs(int process) {
  const auto fields = stat_fields(process);
  return !fields.empty() && fields[0] != "Z" && fields[0] != "X";
}

TrialFiles files_of(const fs::path& store, std::int64_t trial) {
  char name[32];
  std::snprintf(name, sizeof name, "%06lld", static_cast<long long>(trial));
  return {fs::path(store.string() + ".trials") / name};
}

Result<std::optional<Claim>> Claim::take(const TrialFiles& files) {
  const std::string content = host_name() + " " + std::to_string(getpid()) + " 0 0\n";
  const int descriptor = make_claim(files.claim(), content);
  if (descriptor >= 0) return std::optional<Claim>(Claim(descriptor));
  if (errno == EEXIST) return std::optional<Claim>();
  return no_writing("made", files.claim());
}

Result<bool> Claim::withdraw(const TrialFiles& files) {
  std::error_code ignored;
  fs::create_directories(files.folder, ignored);
  const int descriptor = make_claim(files.claim(), kWithdrawn);
  if (descriptor >= 0) {
    close(descriptor);
    return true;
  }
  if (errno != EEXIST) return no_writing("made", files.claim());
  return look(files) == Found::kWithdrawn;
}

Claim::Found Claim::look(const TrialFiles& files) {
  const int descriptor = open(files.claim().c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    if (errno != ENOENT) return Found::kUnknown;
    return access(files.folder.parent_path().c_str(), F_OK) == 0 ? Found::kNone : Found::kUnknown;
  }
  std::array<char, 16> begin{};
  const ssize_t count = read(descriptor, begin.data(), begin.size());
  Found found = Found::kLeft;
  if (std::string_view(begin.data(), count > 0 ? static_cast<std::size_t>(count) : 0) ==
      kWithdrawn) {
    found = Found::kWithdrawn;
  } else if (flock(descriptor, LOCK_SH | LOCK_NB) != 0) {
    found = errno == EWOULDBLOCK ? Found::kHeld : Found::kUnknown;
  }
  close(descriptor);
  return found;
}

Claim::Owner Claim::owner(const TrialFiles& files) {
  const auto text = read_file(files.claim(), kLargestClaim);
  if (!text) return {};
  const auto words = split(trimmed(*text), ' ');
  if (words.size() != 4) return {};
  return {words[0], static_cast<int>(whole_number(words[1]).value_or(0)),
          static_cast<int>(whole_number(words[2]).value_or(0)), whole_number(words[3]).value_or(0)};
}

void Claim::note_group(int group) const {
  const std::string content = host_name() + " " + std::to_string(getpid()) + " " +
                              std::to_string(group) + " " + std::to_string(start_ticks(group)) +
                              "\n";
  // One write of a few bytes: a reader sees the old line or the new one.
  [[maybe_unused]] const ssize_t ignored = pwrite(descriptor_, content.data(), content.size(), 0);
}

Claim::~Claim() {
  if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace stoker::study
