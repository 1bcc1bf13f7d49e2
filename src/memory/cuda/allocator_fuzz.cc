// Drives the allocator with arbitrary operations under arbitrary settings: no invariant may break,
// and the brute-force reference implementation must choose the same addresses.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "memory/cuda/allocator_invariants.h"
#include "memory/cuda/reference_allocator.h"

namespace {

using namespace stoker;

/// Reads small numbers from the input; zeros when it is used up.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  [[nodiscard]] bool empty() const { return at_ >= size_; }
  std::int64_t byte() { return empty() ? 0 : data_[at_++]; }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
  std::size_t at_ = 0;
};

[[noreturn]] void report(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

AllocatorConfig settings(Input& input) {
  AllocatorConfig config;
  const std::int64_t choice = input.byte();
  if (choice & 1) config.expandable_segments = true;
  if (choice & 2) config.large_segment = (11 + input.byte() % 40) * kMiB;
  if (choice & 4) config.max_split_size = config.large_segment + input.byte() * kMiB;
  if (choice & 8) config.memory_fraction = static_cast<double>(1 + input.byte()) / 256;
  if (choice & 16) config.garbage_collection_threshold = static_cast<double>(input.byte()) / 256;
  if (choice & 32) config.roundup_power2_divisions.fill(1u << (input.byte() % 6));
  config.max_non_split_rounding = config.large_segment;
  return config;
}

std::int64_t request(Input& input) {
  const std::int64_t value = 1 + input.byte() + 256 * input.byte();
  switch (input.byte() % 4) {
    case 0:
      return value;
    case 1:
      return value * 32;
    case 2:
      return value * 512;
    default:
      return value * 2048 + 1;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  const AllocatorConfig config = settings(input);
  const std::int64_t capacity = (8 + 4 * input.byte()) << 20;
  CachingAllocator allocator(config, {Bytes{capacity}, {}});
  while (allocator.add_lane() < Lane{4}) {
  }
  ReferenceAllocator reference(config, capacity);
  struct Live {
    BlockId block;
    std::int64_t address;
  };
  std::vector<Live> live, pending;
  while (!input.empty()) {
    const std::int64_t operation = input.byte();
    if (operation % 64 == 63) {
      allocator.empty_cache();
      reference.release_all();
    } else if (operation % 16 == 14 && !pending.empty()) {
      allocator.finish_free(pending.back().block);
      reference.free(pending.back().address);
      std::erase(reference.pending, pending.back().address);
      pending.pop_back();
    } else if (operation % 2 == 0 || live.empty()) {
      const std::int64_t bytes = request(input);
      const int stream = static_cast<int>(operation / 2 % 5);
      const auto block = allocator.allocate(Bytes{bytes}, Lane{static_cast<std::uint16_t>(stream)});
      const auto expected = reference.allocate(bytes, stream);
      if (block.has_value() != expected.has_value()) report("the reference decided otherwise");
      if (allocator.pending_frees() == 0) pending.clear();
      if (!block) continue;
      if (allocator.address_of(*block).count() != *expected)
        report("the reference chose another block");
      live.push_back({*block, *expected});
    } else {
      const auto victim = static_cast<std::size_t>(operation / 2) % live.size();
      if (operation % 16 == 15) {  // another stream still uses it
        allocator.begin_free(live[victim].block);
        pending.push_back(live[victim]);
        reference.pending.push_back(live[victim].address);
      } else {
        allocator.free(live[victim].block);
        reference.free(live[victim].address);
      }
      live[victim] = live.back();
      live.pop_back();
    }
    if (allocator.pending_frees() != reference.pending.size())
      report("the reference waited otherwise");
    if (reference.pending.empty()) pending.clear();
    if (allocator.stats().reserved.count() != reference.reserved())
      report("the reference reserved another amount");
    if (const std::string broken = broken_invariant(allocator, capacity); !broken.empty())
      report(broken);
  }
  return 0;
}
