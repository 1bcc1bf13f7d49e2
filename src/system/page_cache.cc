#include "system/page_cache.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <vector>

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

}  // namespace

Bytes page_size() { return Bytes(::sysconf(_SC_PAGESIZE)); }

double pages_in(Bytes size) {
  const std::int64_t page = page_size().count();
  return static_cast<double>((size.count() + page - 1) / page);
}

std::optional<double> cached_pages_by_cachestat(int handle) {
  CachestatRange range{0, 0};
  Cachestat answer{};
  if (::syscall(kCachestatCall, handle, &range, &answer, 0U) != 0) return std::nullopt;
  return static_cast<double>(answer.cached);
}

std::optional<double> cached_pages_by_mincore(int handle, Bytes size) {
  const auto bytes = static_cast<std::size_t>(size.count());
  if (bytes == 0) return 0;
  void* map = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, handle, 0);
  if (map == MAP_FAILED) return std::nullopt;
  std::vector<unsigned char> flags(static_cast<std::size_t>(pages_in(size)));
  std::optional<double> resident;
  if (::mincore(map, bytes, flags.data()) == 0) {
    resident = 0;
    for (const unsigned char flag : flags) *resident += flag & 1U;
  }
  ::munmap(map, bytes);
  return resident;
}

void drop_cached_pages(int handle) { ::posix_fadvise(handle, 0, 0, POSIX_FADV_DONTNEED); }

}  // namespace stoker
