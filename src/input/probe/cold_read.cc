#include "input/probe/cold_read.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>
#include <thread>

#include "base/opened_file.h"
#include "input/probe/residency.h"
#include "system/clocks.h"
#include "system/page_cache.h"

namespace stoker {
namespace {

/// More than this share left in memory after DONTNEED: the reads would not have been cold.
constexpr double kColdEnough = 0.05;
/// Readers at once of the second half: enough to fill the queue of a solid-state disk in part.
constexpr int kReaders = 8;
constexpr Bytes kReadBuffer = std::int64_t{64} * kKiB;

void forget(const std::vector<DataFile>& files) {
  for (const DataFile& file : files) {
    const OpenedFile opened(file.path);
    if (opened.good()) drop_cached_pages(opened.handle());
  }
}

/// ms = seek + bytes / bandwidth by least squares; not separable when sizes hardly differ or noise
/// hides the slope.
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

/// Bytes read.
std::int64_t read_through(const std::filesystem::path& path) {
  const OpenedFile opened(path);
  if (!opened.good()) return 0;
  std::vector<std::uint8_t> buffer(static_cast<std::size_t>(kReadBuffer.count()));
  std::int64_t got = 0;
  for (ssize_t part = 1; part > 0;) {
    part = ::read(opened.handle(), buffer.data(), buffer.size());
    got += std::max<ssize_t>(part, 0);
  }
  return got;
}

/// Wall ms a file with kReaders reading at once; 0 when the deadline came first.
double ms_of_readers(std::span<const DataFile> files, Nanos deadline) {
  const Nanos start = wall_time();
  std::atomic<std::size_t> next{0}, done{0};
  std::vector<std::thread> readers;
  for (int t = 0; t < kReaders; ++t) {
    readers.emplace_back([&] {
      for (std::size_t i = next++; i < files.size() && wall_time() < deadline; i = next++) {
        done += read_through(files[i].path) > 0 ? 1 : 0;
      }
    });
  }
  for (std::thread& reader : readers) reader.join();
  return done.load() == 0 ? 0
                          : milliseconds(wall_time() - start) / static_cast<double>(done.load());
}

}  // namespace

ReadFacts measure_cold_reads(const std::vector<DataFile>& files, Nanos deadline, Bytes max_read) {
  ReadFacts facts;
  facts.resident_share = residency_by_mincore(files).share;
  forget(files);
  if (files.empty() || residency_by_mincore(files).share > kColdEnough) return facts;
  // The first half is read by one reader, the second by several.
  const std::size_t half = files.size() > kReaders ? files.size() / 2 : files.size();
  std::vector<double> bytes, ms;
  Bytes total;
  for (std::size_t i = 0; i < half; ++i) {
    if (wall_time() > deadline || total + files[i].size > max_read) break;
    const Nanos start = wall_time();
    const std::int64_t got = read_through(files[i].path);
    if (got == 0) continue;
    ms.push_back(milliseconds(wall_time() - start));
    bytes.push_back(static_cast<double>(got));
    total += Bytes(got);
  }
  if (ms.empty()) return facts;
  facts.cold_measured = true;
  fit_reads(bytes, ms, facts);
  if (half < files.size() && ms.size() == half && wall_time() < deadline) {
    const std::span<const DataFile> rest(files.begin() + static_cast<std::ptrdiff_t>(half),
                                         files.end());
    const double together = ms_of_readers(rest, deadline);
    if (together > 0)
      facts.cold_speedup = std::clamp(facts.cold_ms / together, 1.0, double{kReaders});
  }
  return facts;
}

}  // namespace stoker
