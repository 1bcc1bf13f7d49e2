#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace stoker {

/// A cached block as its free list knows it.
struct FreeEntry {
  std::int64_t size = 0;  ///< bytes, a multiple of 512
  std::int64_t address = 0;
  std::uint32_t block = 0;  ///< slot of the allocator

  [[nodiscard]] bool operator<(const FreeEntry& other) const {
    return size != other.size ? size < other.size : address < other.address;
  }
};

/// The free blocks of one pool and stream, ordered by size, then address: the order in which
/// PyTorch's std::set keeps them, so that the first that is large enough is the best fit at the
/// lowest address.
///
/// Eight bins to each power of two, each a short sorted vector, and a bitmap of the bins that are
/// not empty: insertion, removal and search touch one or two bins and allocate nothing once warm.
class FreeList {
 public:
  /// A place in the order; `bin == kBins` is the end.
  struct Cursor {
    std::uint32_t bin = kBins;
    std::uint32_t position = 0;
    [[nodiscard]] bool at_end() const { return bin == kBins; }
  };

  void insert(const FreeEntry& entry);
  /// Removes the entry of that size and address, which must be there.
  void erase(std::int64_t size, std::int64_t address);

  /// The smallest entry of at least `size` bytes, the lowest address on ties.
  [[nodiscard]] Cursor at_least(std::int64_t size) const;
  [[nodiscard]] Cursor next(Cursor cursor) const;
  [[nodiscard]] Cursor last() const;
  [[nodiscard]] Cursor first() const { return {first_bin_from(0), 0}; }
  [[nodiscard]] const FreeEntry& operator[](Cursor cursor) const {
    return bins_[cursor.bin][cursor.position];
  }
  void erase(Cursor cursor);

 private:
  static constexpr std::int64_t kUnit = 512;
  static constexpr std::uint32_t kSubBinBits = 3;
  static constexpr std::uint32_t kBins = 384;  ///< enough for sizes up to 2^57 bytes
  static constexpr std::uint32_t kWords = kBins / 64;

  [[nodiscard]] static std::uint32_t bin_of(std::int64_t size) {
    const auto units = static_cast<std::uint64_t>(size / kUnit);
    if (units < (1u << kSubBinBits)) return static_cast<std::uint32_t>(units);
    const auto log = static_cast<std::uint32_t>(std::bit_width(units)) - 1;
    const auto sub = static_cast<std::uint32_t>(units >> (log - kSubBinBits)) & 7u;
    return ((log - kSubBinBits + 1) << kSubBinBits) + sub;
  }
  [[nodiscard]] std::uint32_t first_bin_from(std::uint32_t bin) const;

  std::vector<std::vector<FreeEntry>>
      bins_;  ///< none before the first insertion: most lists stay empty
  std::array<std::uint64_t, kWords> occupied_{};
};

}  // namespace stoker
