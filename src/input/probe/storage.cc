#include "input/probe/storage.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <optional>
#include <thread>

#include "base/opened_file.h"
#include "base/random.h"
#include "input/data/image_pipeline.h"
#include "system/clocks.h"
#include "system/page_cache.h"

namespace stoker {
namespace {

/// O_DIRECT wants offsets, lengths and addresses in multiples of the device's block; 4 KiB is one
/// for every disk that is sold.
constexpr std::int64_t kBlock = 4096;
constexpr std::int64_t kBuffer = 1024 * 1024;
/// A file below this is over before reading it is sequential.
constexpr std::int64_t kLargeFile = 16 * 1024 * 1024;
/// A cell rests on at least so many reads, or is left out.
constexpr std::size_t kFewestReads = 8;
/// A few files read over and over tell no more: a cell ends after so many reads a file.
constexpr std::int64_t kReadsAFile = 4, kEnoughReads = 256;
/// Files kept open for the 4 KiB reads.
constexpr std::size_t kOpenAtOnce = 64;
/// Files of the warm cell: read once to warm them, then once to measure.
constexpr std::size_t kWarmFiles = 256;
constexpr std::int64_t kWarmBytes = 64 * 1024 * 1024;
/// Above this share of pages that stay in memory, forgetting did not work.
constexpr double kForgotten = 0.05;

struct Freer {
  void operator()(std::uint8_t* memory) const { std::free(memory); }
};
using Buffer = std::unique_ptr<std::uint8_t, Freer>;

Buffer aligned_buffer() {
  return Buffer(static_cast<std::uint8_t*>(
      std::aligned_alloc(static_cast<std::size_t>(kBlock), static_cast<std::size_t>(kBuffer))));
}

int flags_of(ColdMethod method) { return method == ColdMethod::kDirect ? O_DIRECT : 0; }

/// O_DIRECT works here: opening may be refused, and on some file systems only reading is.
bool direct_works(const DataFile& file) {
  const OpenedFile opened(file.path, O_DIRECT);
  const Buffer buffer = aligned_buffer();
  return opened.good() && buffer != nullptr &&
         ::pread(opened.handle(), buffer.get(), static_cast<std::size_t>(kBlock), 0) > 0;
}

/// The file leaves the page cache when asked to.
bool forgets(const DataFile& file) {
  const OpenedFile opened(file.path);
  if (!opened.good()) return false;
  drop_cached_pages(opened.handle());
  return residency_by_mincore({&file, 1}).share <= kForgotten;
}

/// What one thread of a cell did.
struct Reads {
  std::vector<double> ms;
  std::int64_t bytes = 0;
};

class StorageMeter {
 public:
  StorageMeter(const std::vector<DataFile>& files, const StorageOptions& options, StorageFacts& out,
               Diagnostics& diagnostics)
      : files_(files),
        options_(options),
        out_(out),
        diagnostics_(diagnostics),
        left_(options.max_read.count()) {}

  void run();

 private:
  [[nodiscard]] bool may_go_on() const { return wall_time() < options_.deadline && left_ > 0; }
  /// One cell's share of what is left of time and bytes.
  void begin_cell(int cells_left);
  [[nodiscard]] bool cell_open() const {
    return wall_time() < cell_ends_ && cell_left_.load() > 0 && cell_reads_.load() > 0;
  }
  /// Books a read of the cell.
  void book(Reads& reads, Nanos start, std::int64_t bytes) {
    reads.ms.push_back(milliseconds(wall_time() - start));
    reads.bytes += bytes;
    cell_left_ -= bytes;
    --cell_reads_;
  }

  std::optional<DepthFacts> at_depth(int depth, void (StorageMeter::*work)(int, int, Reads&));
  void random_reads(int thread, int depth, Reads& reads);
  void whole_file_reads(int thread, int depth, Reads& reads);
  void sequential();
  void warm_files();
  std::int64_t read_whole(const DataFile& file, std::uint8_t* buffer, int flags);

  const std::vector<DataFile>& files_;
  const StorageOptions& options_;
  StorageFacts& out_;
  Diagnostics& diagnostics_;
  std::int64_t left_;
  Nanos cell_ends_;
  std::atomic<std::int64_t> cell_left_{0};
  std::atomic<std::int64_t> cell_reads_{0};
  std::atomic<std::size_t> next_file_{0};
};

void StorageMeter::begin_cell(int cells_left) {
  const Nanos now = wall_time();
  cell_ends_ = now + (options_.deadline - now) / static_cast<double>(std::max(1, cells_left));
  cell_left_ = left_ / std::max(1, cells_left);
  cell_reads_ = std::max(kEnoughReads, kReadsAFile * static_cast<std::int64_t>(files_.size()));
}

std::optional<DepthFacts> StorageMeter::at_depth(int depth,
                                                 void (StorageMeter::*work)(int, int, Reads&)) {
  std::vector<Reads> reads(static_cast<std::size_t>(depth));
  const Nanos start = wall_time();
  std::vector<std::thread> threads;
  for (int t = 0; t < depth; ++t)
    threads.emplace_back([this, t, depth, work, &reads] { (this->*work)(t, depth, reads[t]); });
  for (std::thread& thread : threads) thread.join();
  const double spent = seconds(wall_time() - start);
  std::vector<double> ms;
  std::int64_t bytes = 0;
  for (const Reads& part : reads) {
    ms.insert(ms.end(), part.ms.begin(), part.ms.end());
    bytes += part.bytes;
  }
  left_ -= bytes;
  out_.read += Bytes(bytes);
  if (ms.size() < kFewestReads || spent <= 0) return std::nullopt;
  DepthFacts facts{.depth = depth, .reads = static_cast<std::int64_t>(ms.size())};
  for (const double one : ms) facts.mean_ms += one / static_cast<double>(ms.size());
  std::sort(ms.begin(), ms.end());
  facts.p95_ms = ms[ms.size() * 95 / 100];
  facts.reads_per_s = static_cast<double>(ms.size()) / spent;
  facts.bytes_per_s = static_cast<double>(bytes) / spent;
  return facts;
}

void StorageMeter::random_reads(int thread, int depth, Reads& reads) {
  const Buffer buffer = aligned_buffer();
  if (buffer == nullptr) return;
  Random random(options_.seed * 1000 + static_cast<std::uint64_t>(thread + depth * 32));
  std::vector<std::unique_ptr<OpenedFile>> opened(std::min(kOpenAtOnce, files_.size()));
  while (cell_open()) {
    const auto at = static_cast<std::size_t>(random.below(opened.size()));
    const DataFile& file = files_[at];
    if (opened[at] == nullptr)
      opened[at] = std::make_unique<OpenedFile>(file.path, flags_of(out_.method));
    if (!opened[at]->good()) {
      // Gone since it was listed; a cell of nothing but such files has to end.
      cell_left_ -= kBlock;
      continue;
    }
    const std::int64_t blocks = std::max<std::int64_t>(1, file.size.count() / kBlock);
    const auto block = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(blocks)));
    if (out_.method == ColdMethod::kForget) {
      // Read-ahead would fetch more than is asked for.
      ::posix_fadvise(opened[at]->handle(), 0, 0, POSIX_FADV_RANDOM);
      drop_cached_pages(opened[at]->handle());
    }
    const Nanos start = wall_time();
    const ssize_t got = ::pread(opened[at]->handle(), buffer.get(),
                                static_cast<std::size_t>(kBlock), block * kBlock);
    book(reads, start, std::max<std::int64_t>(got, 1));
  }
}

/// Bytes read; the size of the file is not trusted, it may have changed.
std::int64_t StorageMeter::read_whole(const DataFile& file, std::uint8_t* buffer, int flags) {
  const OpenedFile opened(file.path, flags);
  if (!opened.good()) return 0;
  std::int64_t sum = 0;
  for (;;) {
    const ssize_t got = ::read(opened.handle(), buffer, static_cast<std::size_t>(kBuffer));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    sum += got;
    // A short read is the end; the next offset would not be aligned.
    if (got < kBuffer || !cell_open()) break;
  }
  return sum;
}

void StorageMeter::whole_file_reads(int, int, Reads& reads) {
  const Buffer buffer = aligned_buffer();
  if (buffer == nullptr) return;
  while (cell_open()) {
    const DataFile& file = files_[next_file_++ % files_.size()];
    if (out_.method == ColdMethod::kForget) {
      const OpenedFile opened(file.path);
      if (opened.good()) drop_cached_pages(opened.handle());
    }
    const Nanos start = wall_time();
    const std::int64_t got = read_whole(file, buffer.get(), flags_of(out_.method));
    if (got > 0) {
      book(reads, start, got);
    } else {
      cell_left_ -= kBlock;
    }
  }
}

/// One reader, large files from front to back.
void StorageMeter::sequential() {
  const Buffer buffer = aligned_buffer();
  std::int64_t bytes = 0;
  double spent = 0;
  for (const DataFile& file : files_) {
    if (buffer == nullptr || !cell_open()) break;
    if (file.size.count() < kLargeFile) continue;
    const OpenedFile opened(file.path, flags_of(out_.method));
    if (!opened.good()) continue;
    if (out_.method == ColdMethod::kForget) drop_cached_pages(opened.handle());
    const Nanos start = wall_time();
    while (cell_open()) {
      const ssize_t got = ::read(opened.handle(), buffer.get(), static_cast<std::size_t>(kBuffer));
      if (got <= 0) break;
      bytes += got;
      cell_left_ -= got;
      if (got < kBuffer) break;
    }
    spent += seconds(wall_time() - start);
  }
  left_ -= bytes;
  out_.read += Bytes(bytes);
  if (bytes >= kLargeFile / 2 && spent > 0)
    out_.sequential_bytes_per_s = static_cast<double>(bytes) / spent;
}

/// Files that are in the page cache: what opening, reading and closing cost without a disk.
void StorageMeter::warm_files() {
  const Buffer buffer = aligned_buffer();
  std::vector<const DataFile*> warm;
  std::int64_t bytes = 0;
  for (const DataFile& file : files_) {
    if (buffer == nullptr || !cell_open() || warm.size() >= kWarmFiles) break;
    if (file.size.count() > kBuffer || bytes + file.size.count() > kWarmBytes) continue;
    const std::int64_t got = read_whole(file, buffer.get(), 0);
    if (got == 0) continue;
    bytes += got;
    cell_left_ -= got;
    warm.push_back(&file);
  }
  left_ -= bytes;
  out_.read += Bytes(bytes);
  const Nanos start = wall_time();
  for (const DataFile* file : warm) (void)read_whole(*file, buffer.get(), 0);
  if (!warm.empty()) {
    out_.small_file_warm_us =
        1e3 * milliseconds(wall_time() - start) / static_cast<double>(warm.size());
  }
}

void StorageMeter::run() {
  if (files_.empty()) return;
  // Files may have gone since they were listed; the first one that is there tells for all.
  const auto there = std::find_if(files_.begin(), files_.end(), [](const DataFile& file) {
    return OpenedFile(file.path).good();
  });
  if (there == files_.end()) return;
  const DataFile& first = *there;
  const bool memory = out_.file_system.kind == FileSystemKind::kMemory;
  // tmpfs takes O_DIRECT from Linux 6.6 on and serves it from memory all the same.
  if (!memory && direct_works(first)) {
    out_.method = ColdMethod::kDirect;
  } else if (!memory && forgets(first)) {
    out_.method = ColdMethod::kForget;
    diagnostics_.add("no_direct_reads", Severity::kNote,
                     "The file system refuses O_DIRECT: cold reads were measured through the page "
                     "cache, after asking the kernel to forget the files.");
  } else {
    diagnostics_.add("no_cold_reads", Severity::kNote,
                     "Cold reads cannot be measured on this file system.");
  }
  int cells = 2 * static_cast<int>(std::size(kQueueDepths)) + 2;
  if (out_.method != ColdMethod::kNone) {
    for (const int depth : kQueueDepths) {
      for (const bool whole : {false, true}) {
        begin_cell(cells--);
        if (!may_go_on()) break;
        const auto facts =
            at_depth(depth, whole ? &StorageMeter::whole_file_reads : &StorageMeter::random_reads);
        if (facts) (whole ? out_.whole_files : out_.random_4k).push_back(*facts);
      }
    }
    begin_cell(2);
    if (may_go_on()) sequential();
  }
  begin_cell(1);
  if (may_go_on()) warm_files();
}

}  // namespace

std::string_view cold_method_name(ColdMethod method) {
  constexpr std::string_view kNames[] = {"none", "o_direct", "fadvise"};
  return kNames[static_cast<std::size_t>(method)];
}

const DepthFacts* StorageFacts::best_whole_files() const {
  const auto best = std::max_element(
      whole_files.begin(), whole_files.end(),
      [](const DepthFacts& a, const DepthFacts& b) { return a.reads_per_s < b.reads_per_s; });
  return best == whole_files.end() ? nullptr : &*best;
}

Bytes StorageFacts::usable_memory() const {
  return limit.count() > 0 ? std::min(available, limit) : available;
}

void measure_storage(const std::vector<DataFile>& files, const StorageOptions& options,
                     StorageFacts& out, Diagnostics& diagnostics) {
  StorageMeter(files, options, out, diagnostics).run();
}

}  // namespace stoker
