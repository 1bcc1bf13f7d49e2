#include "input/cold_read.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "input/image_pipeline.h"

namespace stoker {
namespace {

/// More than this share left in memory after DONTNEED: the reads would not have been cold.
constexpr double kColdEnough = 0.05;

class File {
 public:
  explicit File(const std::filesystem::path& path) : handle_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~File() {
    if (handle_ >= 0) ::close(handle_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  [[nodiscard]] int handle() const { return handle_; }

 private:
  int handle_;
};

struct Pages {
  double resident = 0, all = 0;
};

Pages pages_of(const PictureFile& file) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto size = static_cast<std::size_t>(file.size.count());
  Pages pages{0, static_cast<double>((size + page - 1) / page)};
  const File opened(file.path);
  if (opened.handle() < 0 || size == 0) return pages;
  void* map = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, opened.handle(), 0);
  if (map == MAP_FAILED) return pages;
  std::vector<unsigned char> flags((size + page - 1) / page);
  if (::mincore(map, size, flags.data()) == 0) {
    for (const unsigned char flag : flags) pages.resident += flag & 1U;
  }
  ::munmap(map, size);
  return pages;
}

void forget(const std::vector<PictureFile>& files) {
  for (const PictureFile& file : files) {
    const File opened(file.path);
    if (opened.handle() >= 0) ::posix_fadvise(opened.handle(), 0, 0, POSIX_FADV_DONTNEED);
  }
}

/// ms = seek + bytes / bandwidth by least squares; not separable when sizes hardly differ or noise hides
/// the slope.
void fit_reads(const std::vector<double>& bytes, const std::vector<double>& ms, ReadFacts& facts) {
  const auto n = static_cast<double>(bytes.size());
  double sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    sx += bytes[i];
    sy += ms[i];
    sxx += bytes[i] * bytes[i];
    sxy += bytes[i] * ms[i];
  }
  facts.cold_ms = sy / n;
  facts.cold_seek_ms = facts.cold_ms;
  const double spread = sxx - sx * sx / n;
  if (n < 8 || spread <= 0) return;
  const double slope = (sxy - sx * sy / n) / spread;
  const double seek = (sy - slope * sx) / n;
  if (slope <= 0 || seek <= 0) return;
  facts.cold_seek_ms = seek;
  facts.cold_bandwidth = 1000 / slope;
}

}  // namespace

double resident_share(const std::vector<PictureFile>& files) {
  Pages sum;
  for (const PictureFile& file : files) {
    const Pages pages = pages_of(file);
    sum.resident += pages.resident;
    sum.all += pages.all;
  }
  return sum.all == 0 ? 0 : sum.resident / sum.all;
}

ReadFacts measure_cold_reads(const std::vector<PictureFile>& files, Nanos deadline, Bytes max_read) {
  ReadFacts facts;
  facts.resident_share = resident_share(files);
  forget(files);
  if (files.empty() || resident_share(files) > kColdEnough) return facts;
  std::vector<std::uint8_t> buffer(static_cast<std::size_t>(kMiB.count()));
  std::vector<double> bytes, ms;
  Bytes total;
  for (const PictureFile& file : files) {
    if (wall_time() > deadline || total + file.size > max_read) break;
    const Nanos start = wall_time();
    const File opened(file.path);
    if (opened.handle() < 0) continue;
    std::int64_t got = 0;
    for (ssize_t part = 1; part > 0;) {
      part = ::read(opened.handle(), buffer.data(), buffer.size());
      got += std::max<ssize_t>(part, 0);
    }
    if (got == 0) continue;
    ms.push_back(milliseconds(wall_time() - start));
    bytes.push_back(static_cast<double>(got));
    total += Bytes(got);
  }
  if (ms.empty()) return facts;
  facts.cold_measured = true;
  fit_reads(bytes, ms, facts);
  return facts;
}

}  // namespace stoker
