#pragma once

// For tests only: the same rules as CachingAllocator, written the slow and obvious way and from
// another side. It keeps no blocks and no free lists: only what is taken, and which pages are
// mapped. Free blocks are the gaps, found anew for every request.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "memory/cuda/allocator.h"

namespace stoker {

class ReferenceAllocator {
 public:
  struct Segment {
    std::int64_t base, bytes, page;  ///< page: of an expandable segment, else 0
    bool small;
    int stream;
    std::map<std::int64_t, std::int64_t> taken;  ///< address -> size
    std::vector<bool> mapped;                    ///< by page
    std::int64_t emptied_at = 0;
  };
  struct Gap {
    std::size_t segment;
    std::int64_t address, size;
    std::int64_t reach;  ///< with the unmapped addresses right behind it
  };

  ReferenceAllocator(const AllocatorConfig& config, std::int64_t capacity)
      : config_(config), capacity_(capacity) {
    if (config.memory_fraction) {
      allowed_ = static_cast<std::int64_t>(*config.memory_fraction * static_cast<double>(capacity));
    }
  }

  /// The address, or nothing when out of memory.
  std::optional<std::int64_t> allocate(std::int64_t bytes, int stream) {
    const std::int64_t size = rounded(bytes);
    const bool small = size <= kMi;
    tried = size <= kMi       ? 2 * kMi
            : size < 10 * kMi ? config_.large_segment.count()
                              : up(size, 2 * kMi);
    ++searches_[small];
    std::optional<Gap> gap = best_gap(size, small, stream);
    if (!gap) {
      if (allowed_ && config_.garbage_collection_threshold > 0) collect_garbage();
      gap = fresh(size, small, stream);
      if (!gap && release_oversize(size, small, stream)) gap = fresh(size, small, stream);
      if (!gap) {
        release_all();
        ++retries;
        gap = fresh(size, small, stream);
      }
      if (!gap) return std::nullopt;
    }
    const std::int64_t rest = gap->size - size;
    const bool fine = small || config_.expandable_segments;
    const bool split = fine ? rest >= 512 : size < config_.max_split_size.count() && rest > kMi;
    segments[gap->segment].taken[gap->address] = split ? size : gap->size;
    return gap->address;
  }

  void free(std::int64_t address) {
    for (Segment& segment : segments) {
      if (segment.taken.erase(address) == 0) continue;
      if (segment.taken.empty()) segment.emptied_at = searches_[segment.small];
      return;
    }
    std::abort();
  }

  std::int64_t allocated() const {
    std::int64_t sum = 0;
    for (const Segment& segment : segments) {
      for (const auto& [address, size] : segment.taken) {
        if (std::find(pending.begin(), pending.end(), address) == pending.end()) sum += size;
      }
    }
    return sum;
  }
  std::int64_t reserved() const {
    std::int64_t sum = 0;
    for (const Segment& segment : segments) {
      sum += segment.page == 0
                 ? segment.bytes
                 : segment.page * std::count(segment.mapped.begin(), segment.mapped.end(), true);
    }
    return sum;
  }

  /// All free blocks, by address.
  std::vector<Gap> gaps() const {
    std::vector<Gap> result;
    for (std::size_t i = 0; i < segments.size(); ++i) add_gaps(i, result);
    return result;
  }

  void release_all() {
    for (const std::int64_t address : pending) free(address);
    pending.clear();
    for (std::size_t i = segments.size(); i-- > 0;) {
      Segment& segment = segments[i];
      bool gone = segment.page == 0 && segment.taken.empty();
      if (segment.page != 0) {
        std::vector<Gap> free;
        add_gaps(i, free);
        for (const Gap& gap : free) {
          const std::int64_t first = (gap.address - segment.base + segment.page - 1) / segment.page;
          const std::int64_t last = (gap.address + gap.size - segment.base) / segment.page;
          for (std::int64_t p = first; p < last; ++p)
            segment.mapped[static_cast<std::size_t>(p)] = false;
        }
        gone = !free.empty() && segment.taken.empty();
      }
      if (gone) segments.erase(segments.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  std::vector<Segment> segments;  ///< by address
  /// Freed by the program and still used by another stream: taken until all streams are waited for,
  /// or until the test frees them.
  std::vector<std::int64_t> pending;
  std::int64_t retries = 0;
  std::int64_t tried = 0;  ///< of the last request

 private:
  static constexpr std::int64_t kMi = 1 << 20;

  static std::int64_t up(std::int64_t value, std::int64_t step) {
    while (value % step != 0) value += step - value % step;
    return value;
  }

  std::int64_t rounded(std::int64_t bytes) const {
    if (bytes < 512) return 512;
    std::size_t interval = 0;
    for (std::int64_t end = 2 * kMi; end <= bytes && interval < 15; end *= 2) ++interval;
    const std::int64_t parts = config_.roundup_power2_divisions[interval];
    if (parts < 2 || bytes <= 512 * parts) return up(bytes, 512);
    std::int64_t power = 1;
    while (power * 2 <= bytes) power *= 2;
    for (std::int64_t part = 0;; ++part) {
      if (power + part * (power / parts) >= bytes) return power + part * (power / parts);
    }
  }

  bool is_mapped(const Segment& segment, std::int64_t address) const {
    if (segment.page == 0) return true;
    return segment.mapped[static_cast<std::size_t>((address - segment.base) / segment.page)];
  }
  /// Where the run of equal mapping that `address` lies in ends, at most `end`.
  std::int64_t run_end(const Segment& segment, std::int64_t address, std::int64_t end) const {
    if (segment.page == 0) return end;
    const bool mapped = is_mapped(segment, address);
    while (address < end && is_mapped(segment, address) == mapped) {
      address = segment.base + ((address - segment.base) / segment.page + 1) * segment.page;
    }
    return std::min(address, end);
  }
  /// Calls f(begin, end) for every stretch that nobody has taken.
  template <class F>
  void for_untaken(const Segment& segment, F f) const {
    std::int64_t at = segment.base;
    for (const auto& [address, size] : segment.taken) {
      if (at < address) f(at, address);
      at = address + size;
    }
    if (at < segment.base + segment.bytes) f(at, segment.base + segment.bytes);
  }

  void add_gaps(std::size_t index, std::vector<Gap>& result) const {
    const Segment& segment = segments[index];
    for_untaken(segment, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t at = begin, next = 0; at < end; at = next) {
        next = run_end(segment, at, end);
        if (!is_mapped(segment, at)) continue;
        const std::int64_t reach = next < end ? run_end(segment, next, end) : next;
        result.push_back({index, at, next - at, reach - at});
      }
    });
  }

  std::vector<Gap> gaps_of(bool small, int stream) const {
    std::vector<Gap> result;
    for (std::size_t i = 0; i < segments.size(); ++i) {
      if (segments[i].small == small && segments[i].stream == stream) add_gaps(i, result);
    }
    std::stable_sort(result.begin(), result.end(),
                     [](const Gap& a, const Gap& b) { return a.size < b.size; });
    return result;
  }

  std::optional<Gap> best_gap(std::int64_t size, bool small, int stream) const {
    std::vector<Gap> all = gaps_of(small, stream);
    std::erase_if(all, [&](const Gap& gap) { return gap.size < size; });
    if (all.empty()) return std::nullopt;
    std::size_t best = 0;
    while (config_.expandable_segments && best + 1 < all.size() &&
           all[best + 1].reach < all[best].reach) {
      ++best;
    }
    const std::int64_t limit = config_.max_split_size.count();
    if (size < limit && all[best].size >= limit) return std::nullopt;
    if (size >= limit && all[best].size >= size + config_.max_non_split_rounding.count())
      return std::nullopt;
    return all[best];
  }

  std::optional<Gap> fresh(std::int64_t size, bool small, int stream) {
    if (allowed_ && reserved() + tried > *allowed_) return std::nullopt;
    if (config_.expandable_segments) return grow(size, small, stream);
    if (reserved() + tried > capacity_) return std::nullopt;
    segments.push_back({next_, tried, 0, small, stream, {}, {}});
    next_ += up(tried, 2 * kMi);
    return Gap{segments.size() - 1, segments.back().base, tried, tried};
  }

  std::optional<Gap> grow(std::int64_t size, bool small, int stream) {
    for (int attempt = 0;; ++attempt) {
      for (std::size_t i = 0; i < segments.size(); ++i) {
        if (segments[i].small != small || segments[i].stream != stream) continue;
        std::optional<std::int64_t> start;
        for_untaken(segments[i], [&](std::int64_t begin, std::int64_t end) {
          const bool grows =
              !is_mapped(segments[i], begin) || run_end(segments[i], begin, end) < end;
          if (!start && grows && end - begin >= size) start = begin;
        });
        if (start) return map(i, *start, size);
      }
      Segment segment{next_, 0, small ? 2 * kMi : config_.large_segment.count(), small, stream,
                      {},    {}};
      segment.bytes = up(std::max(capacity_ + capacity_ / 8, size), segment.page);
      segment.mapped.assign(static_cast<std::size_t>(segment.bytes / segment.page), false);
      next_ += up(segment.bytes, 2 * kMi);
      segments.push_back(segment);
    }
  }

  std::optional<Gap> map(std::size_t index, std::int64_t start, std::int64_t size) {
    Segment& segment = segments[index];
    auto next_taken = segment.taken.lower_bound(start);
    const std::int64_t end =
        next_taken == segment.taken.end() ? segment.base + segment.bytes : next_taken->first;
    while (true) {
      const std::int64_t ready = is_mapped(segment, start) ? run_end(segment, start, end) : start;
      if (ready - start >= size) return Gap{index, start, ready - start, 0};
      const std::int64_t run =
          std::min(run_end(segment, ready, end) - ready, size - (ready - start));
      const std::int64_t pages = up(run, segment.page) / segment.page;
      if (reserved() + pages * segment.page > capacity_) return std::nullopt;
      const std::int64_t first = (ready - segment.base) / segment.page;
      for (std::int64_t p = first; p < first + pages; ++p)
        segment.mapped[static_cast<std::size_t>(p)] = true;
    }
  }

  void release(std::size_t index) {
    segments.erase(segments.begin() + static_cast<std::ptrdiff_t>(index));
  }

  bool release_oversize(std::int64_t size, bool small, int stream) {
    if (config_.max_split_size == kNoSplitLimit || config_.expandable_segments) return false;
    const std::int64_t wanted = std::max(size, config_.max_split_size.count());
    for (const Gap& gap : gaps_of(small, stream)) {
      if (gap.size >= wanted) return release(gap.segment), true;
    }
    std::int64_t released = 0;
    while (released < wanted) {
      const std::vector<Gap> all = gaps_of(small, stream);
      if (all.empty() || all.back().size < config_.max_split_size.count()) return false;
      // Among equal sizes the highest address goes first: the stable sort has left it last.
      released += all.back().size;
      release(all.back().segment);
    }
    return true;
  }

  void collect_garbage() {
    const auto threshold = static_cast<std::int64_t>(config_.garbage_collection_threshold *
                                                     static_cast<double>(*allowed_));
    const std::int64_t target = reserved() - threshold;
    std::int64_t reclaimed = 0;
    while (reclaimed < target) {
      std::vector<std::size_t> idle;
      double ages = 0;
      for (std::size_t i = 0; i < segments.size(); ++i) {
        if (segments[i].small || segments[i].page != 0 || !segments[i].taken.empty()) continue;
        idle.push_back(i);
        ages += static_cast<double>(searches_[0] - segments[i].emptied_at);
      }
      const double average = ages / static_cast<double>(idle.size());
      bool freed = false;
      for (std::size_t k = idle.size(); k-- > 0;) {
        if (static_cast<double>(searches_[0] - segments[idle[k]].emptied_at) < average) continue;
        reclaimed += segments[idle[k]].bytes;
        release(idle[k]);
        freed = true;
      }
      if (!freed) return;
    }
  }

  AllocatorConfig config_;
  std::int64_t capacity_;
  std::optional<std::int64_t> allowed_;
  std::int64_t next_ = 0x7f00'0000'0000;
  std::int64_t searches_[2] = {0, 0};  ///< [0]: large, [1]: small
};

}  // namespace stoker
