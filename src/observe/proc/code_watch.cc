#include "observe/proc/code_watch.h"

#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "base/text.h"
#include "system/system_files.h"

namespace stoker {
namespace {

/// Questions a second of time on a core. A prime, so that a loop that repeats in whole parts of a
/// second is not always met at the same place.
constexpr std::uint64_t kFrequency = 97;
/// Pages of the ring behind its first one: 1,000 answers, of ten seconds.
constexpr std::size_t kPages = 4;
/// Libraries are loaded now and then; the maps of a training process are long.
constexpr std::int64_t kMapEvery = 10'000'000'000;

std::size_t page() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

/// One answer, as asked for by PERF_SAMPLE_IP.
struct Answer {
  perf_event_header header;
  std::uint64_t address;
};

}  // namespace

CodeMap::CodeMap(const std::string& maps) {
  for (const std::string& line : split(maps, '\n')) {
    // 7f1c0a000000-7f1c0a021000 r-xp 00000000 08:01 1234   /usr/lib/libz.so.1
    std::uint64_t from = 0, to = 0;
    const char* end = line.data() + line.size();
    const auto low = std::from_chars(line.data(), end, from, 16);
    if (low.ec != std::errc() || low.ptr == end || *low.ptr != '-') continue;
    const auto high = std::from_chars(low.ptr + 1, end, to, 16);
    if (high.ec != std::errc() || end - high.ptr < 5 || high.ptr[3] != 'x') continue;
    const std::size_t path = line.find('/');
    pieces_.push_back({from, to, code_kind(path == std::string::npos ? "" : line.substr(path))});
  }
  std::ranges::sort(pieces_, std::less<>(), &Piece::from);
}

std::optional<CodeKind> CodeMap::find(std::uint64_t address) const {
  const auto after = std::ranges::upper_bound(pieces_, address, std::less<>(), &Piece::from);
  if (after == pieces_.begin() || address >= (after - 1)->to) return std::nullopt;
  return (after - 1)->kind;
}

Result<CodeWatch> CodeWatch::open(std::int64_t tid, std::string folder) {
  perf_event_attr attributes{};
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.size = sizeof attributes;
  attributes.config = PERF_COUNT_SW_TASK_CLOCK;
  attributes.freq = 1;
  attributes.sample_freq = kFrequency;
  attributes.sample_type = PERF_SAMPLE_IP;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  const auto handle = static_cast<int>(::syscall(
      SYS_perf_event_open, &attributes, static_cast<pid_t>(tid), -1, -1, PERF_FLAG_FD_CLOEXEC));
  if (handle < 0)
    return fail(errno == ESRCH ? ErrorCode::kNotFound : ErrorCode::kIo,
                std::string("perf_event_open: ") + std::strerror(errno));
  void* ring =
      ::mmap(nullptr, (1 + kPages) * page(), PROT_READ | PROT_WRITE, MAP_SHARED, handle, 0);
  if (ring == MAP_FAILED) {
    const int error = errno;
    ::close(handle);
    return fail(ErrorCode::kIo, std::string("perf_event_open: ") + std::strerror(error));
  }
  return CodeWatch(handle, ring, std::move(folder));
}

CodeWatch::~CodeWatch() {
  if (ring_ != nullptr) ::munmap(ring_, (1 + kPages) * page());
  if (handle_ >= 0) ::close(handle_);
}

CodeWatch::CodeWatch(CodeWatch&& other) noexcept
    : handle_(std::exchange(other.handle_, -1)),
      ring_(std::exchange(other.ring_, nullptr)),
      folder_(std::move(other.folder_)),
      map_(std::move(other.map_)),
      mapped_ns_(other.mapped_ns_) {}

void CodeWatch::count(std::uint64_t address, std::int64_t now_ns, CodeCounts& counts) {
  auto kind = map_.find(address);
  if (!kind && (mapped_ns_ < 0 || now_ns - mapped_ns_ > kMapEvery)) {
    map_ = CodeMap(system_files()(folder_ + "/maps").value_or(""));
    mapped_ns_ = now_ns;
    kind = map_.find(address);
  }
  ++counts[static_cast<std::size_t>(kind.value_or(CodeKind::kOther))];
}

void CodeWatch::read(std::int64_t now_ns, CodeCounts& counts) {
  auto* head = static_cast<perf_event_mmap_page*>(ring_);
  const char* data = static_cast<const char*>(ring_) + page();
  const std::size_t size = kPages * page();
  // The kernel writes up to data_head, and no further than data_tail lets it.
  const std::uint64_t end = std::atomic_ref(head->data_head).load(std::memory_order_acquire);
  std::uint64_t at = head->data_tail;
  while (at + sizeof(perf_event_header) <= end) {
    Answer answer{};
    // All records are multiples of eight bytes, so that a header never lies across the ring's end.
    std::memcpy(&answer.header, data + at % size, sizeof answer.header);
    if (answer.header.size < sizeof answer.header) break;
    if (answer.header.type == PERF_RECORD_SAMPLE && answer.header.size >= sizeof answer) {
      std::memcpy(&answer.address, data + (at + sizeof answer.header) % size,
                  sizeof answer.address);
      count(answer.address, now_ns, counts);
    }
    at += answer.header.size;
  }
  std::atomic_ref(head->data_tail).store(at, std::memory_order_release);
}

}  // namespace stoker
