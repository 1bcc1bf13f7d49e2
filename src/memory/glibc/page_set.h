#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace stoker {

/// Which pages of a range of addresses are resident; pages are numbered from 0.
class PageSet {
 public:
  /// Adds pages first..last (both in it); how many of them are new.
  std::int64_t add(std::int64_t first, std::int64_t last) {
    grow(last);
    std::int64_t added = 0;
    for (std::int64_t word = first / kBits; word <= last / kBits; ++word) {
      std::uint64_t& bits = words_[static_cast<std::size_t>(word)];
      const std::uint64_t wanted = mask(word, first, last);
      added += std::popcount(wanted & ~bits);
      bits |= wanted;
    }
    return added;
  }

  /// Takes out all pages from `first` on; how many there were.
  std::int64_t remove_from(std::int64_t first) {
    std::int64_t removed = 0;
    const auto words = static_cast<std::int64_t>(words_.size());
    for (std::int64_t word = first / kBits; word < words; ++word) {
      std::uint64_t& bits = words_[static_cast<std::size_t>(word)];
      const std::uint64_t gone = mask(word, first, words * kBits - 1);
      removed += std::popcount(bits & gone);
      bits &= ~gone;
    }
    return removed;
  }

 private:
  static constexpr std::int64_t kBits = 64;

  void grow(std::int64_t last) {
    const auto needed = static_cast<std::size_t>(last / kBits) + 1;
    if (words_.size() < needed) words_.resize(needed);
  }
  /// Bits of one word that lie in first..last.
  static std::uint64_t mask(std::int64_t word, std::int64_t first, std::int64_t last) {
    std::uint64_t bits = ~std::uint64_t{0};
    if (word == first / kBits) bits &= ~std::uint64_t{0} << (first % kBits);
    if (word == last / kBits) bits &= ~std::uint64_t{0} >> (kBits - 1 - last % kBits);
    return bits;
  }

  std::vector<std::uint64_t> words_;
};

}  // namespace stoker
