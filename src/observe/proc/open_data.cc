#include "observe/proc/open_data.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string_view>

#include "system/page_cache.h"
#include "system/system_files.h"

namespace stoker {
namespace {

/// Smaller files are code, settings and logs more often than data.
constexpr std::int64_t kLeastData = 1 << 20;

std::string target_of(const std::string& path) {
  std::array<char, 1024> target{};
  const ssize_t size = ::readlink(path.c_str(), target.data(), target.size());
  return size > 0 ? std::string(target.data(), static_cast<std::size_t>(size)) : std::string();
}

bool reads_only(const std::string& fdinfo) {
  constexpr std::string_view kFlags = "flags:";
  const std::size_t at = fdinfo.find(kFlags);
  if (at == std::string::npos) return false;
  return (std::strtol(fdinfo.c_str() + at + kFlags.size(), nullptr, 8) & O_ACCMODE) == O_RDONLY;
}

void add_file(const std::string& path, std::int64_t size, OpenData& data) {
  // Asking leaves no trace in the file's times where this user may leave none.
  int handle = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOATIME);
  if (handle < 0) handle = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (handle < 0) return;
  auto pages = cached_pages_by_cachestat(handle);
  if (!pages) pages = cached_pages_by_mincore(handle, Bytes(size));
  ::close(handle);
  if (!pages) return;
  const auto cached = static_cast<std::int64_t>(*pages * static_cast<double>(page_size().count()));
  data.files += 1;
  data.bytes += size;
  data.cached += std::min(size, cached);
}

}  // namespace

OpenData open_data(const std::string& folder, int most) {
  OpenData data;
  for (const std::string& entry : system_folders()(folder + "/fd")) {
    if (data.files >= most) break;
    const std::string path = folder + "/fd/" + entry;
    const std::string target = target_of(path);
    if (!target.starts_with('/') || target.starts_with("/dev/") || target.starts_with("/proc/"))
      continue;
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    if (info.st_size < kLeastData) continue;
    if (!reads_only(system_files()(folder + "/fdinfo/" + entry).value_or(""))) continue;
    add_file(path, info.st_size, data);
  }
  return data;
}

}  // namespace stoker
