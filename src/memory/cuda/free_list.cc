#include "memory/cuda/free_list.h"

#include <algorithm>

namespace stoker {
namespace {

/// The first entry that is not `below`, of which there are some at the front. Most bins hold a few
/// entries: a scan mispredicts one branch there, a bisection several.
template <class Below>
auto first_not(const std::vector<FreeEntry>& entries, const Below& below) {
  constexpr std::size_t kFew = 16;
  if (entries.size() > kFew) return std::partition_point(entries.begin(), entries.end(), below);
  return std::find_if_not(entries.begin(), entries.end(), below);
}

}  // namespace

void FreeList::insert(const FreeEntry& entry) {
  if (bins_.empty()) bins_.resize(kBins);
  const std::uint32_t bin = bin_of(entry.size);
  auto& entries = bins_[bin];
  occupied_[bin / 64] |= std::uint64_t{1} << (bin % 64);
  entries.insert(first_not(entries, [&](const FreeEntry& e) { return e < entry; }), entry);
}

void FreeList::erase(std::int64_t size, std::int64_t address) {
  const std::uint32_t bin = bin_of(size);
  const auto& entries = bins_[bin];
  const FreeEntry wanted{size, address, 0};
  const auto found = first_not(entries, [&](const FreeEntry& e) { return e < wanted; });
  erase(Cursor{bin, static_cast<std::uint32_t>(found - entries.begin())});
}

void FreeList::erase(Cursor cursor) {
  auto& entries = bins_[cursor.bin];
  entries.erase(entries.begin() + cursor.position);
  if (entries.empty()) occupied_[cursor.bin / 64] &= ~(std::uint64_t{1} << (cursor.bin % 64));
}

FreeList::Cursor FreeList::at_least(std::int64_t size) const {
  const std::uint32_t bin = bin_of(size);
  const bool occupied = ((occupied_[bin / 64] >> (bin % 64)) & 1) != 0;
  if (occupied && bins_[bin].back().size >= size) {
    const auto& entries = bins_[bin];
    const auto found = first_not(entries, [&](const FreeEntry& e) { return e.size < size; });
    return {bin, static_cast<std::uint32_t>(found - entries.begin())};
  }
  return {first_bin_from(bin + 1), 0};
}

FreeList::Cursor FreeList::next(Cursor cursor) const {
  if (cursor.position + 1 < bins_[cursor.bin].size()) return {cursor.bin, cursor.position + 1};
  return {first_bin_from(cursor.bin + 1), 0};
}

FreeList::Cursor FreeList::last() const {
  for (std::uint32_t word = kWords; word-- > 0;) {
    if (occupied_[word] == 0) continue;
    const std::uint32_t bin =
        word * 64 + 63 - static_cast<std::uint32_t>(std::countl_zero(occupied_[word]));
    return {bin, static_cast<std::uint32_t>(bins_[bin].size()) - 1};
  }
  return {};
}

std::uint32_t FreeList::first_bin_from(std::uint32_t bin) const {
  if (bin >= kBins) return kBins;
  std::uint32_t word = bin / 64;
  std::uint64_t bits = occupied_[word] & (~std::uint64_t{0} << (bin % 64));
  while (bits == 0) {
    if (++word == kWords) return kBins;
    bits = occupied_[word];
  }
  return word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
}

}  // namespace stoker
