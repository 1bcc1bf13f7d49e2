#include "input/probe/residency.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/opened_file.h"
#include "input/data/image_pipeline.h"

namespace stoker {
namespace {

// linux/mman.h has these from 6.5 on; older headers lack them.
struct CachestatRange {
  std::uint64_t offset, length;  ///< length 0: to the end
};
struct Cachestat {
  std::uint64_t cached, dirty, writeback, evicted, recently_evicted;  ///< pages
};
constexpr long kCachestatCall = 451;  // the same number on every architecture

std::size_t page_size() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

double pages_in(Bytes size) {
  const auto page = static_cast<std::int64_t>(page_size());
  return static_cast<double>((size.count() + page - 1) / page);
}

/// Pages of the file in the page cache; nullopt where the kernel or the file system cannot say.
std::optional<double> by_cachestat(int handle) {
  CachestatRange range{0, 0};
  Cachestat answer{};
  if (::syscall(kCachestatCall, handle, &range, &answer, 0U) != 0) return std::nullopt;
  return static_cast<double>(answer.cached);
}

std::optional<double> by_mincore(int handle, Bytes bytes) {
  const auto size = static_cast<std::size_t>(bytes.count());
  if (size == 0) return 0;
  void* map = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, handle, 0);
  if (map == MAP_FAILED) return std::nullopt;
  std::vector<unsigned char> flags((size + page_size() - 1) / page_size());
  std::optional<double> resident;
  if (::mincore(map, size, flags.data()) == 0) {
    resident = 0;
    for (const unsigned char flag : flags) *resident += flag & 1U;
  }
  ::munmap(map, size);
  return resident;
}

Residency ask(std::span<const DataFile> files, Nanos deadline, bool cachestat) {
  Residency out;
  double resident = 0, all = 0;
  for (const DataFile& file : files) {
    if (out.files > 0 && wall_time() > deadline) break;
    const OpenedFile opened(file.path);
    if (!opened.good()) continue;
    const auto pages =
        cachestat ? by_cachestat(opened.handle()) : by_mincore(opened.handle(), file.size);
    if (!pages) {
      if (cachestat) return ask(files, deadline, false);
      continue;
    }
    const double whole = pages_in(file.size);
    resident += std::min(*pages, whole);
    all += whole;
    ++out.files;
  }
  if (out.files > 0) out.method = cachestat ? "cachestat" : "mincore";
  out.share = all > 0 ? resident / all : 0;
  return out;
}

}  // namespace

Residency residency_of(std::span<const DataFile> files, std::size_t at_most, Nanos deadline) {
  return ask(files.first(std::min(at_most, files.size())), deadline, true);
}

Residency residency_by_mincore(std::span<const DataFile> files) {
  return ask(files, 1e18 * kSecond, false);
}

}  // namespace stoker
