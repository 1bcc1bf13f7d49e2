#include "memory/cuda/reference_allocator.h"

#include <gtest/gtest.h>

#include <random>

#include "memory/cuda/allocator_invariants.h"

namespace stoker {
namespace {

struct Scenario {
  const char* name;
  AllocatorConfig config;
  std::int64_t capacity;  ///< MiB
};

void PrintTo(const Scenario& scenario, std::ostream* out) { *out << scenario.name; }

AllocatorConfig settings(const char* text) { return parse_allocator_config(text).value(); }

/// Sizes as models have them: many small ones, exact boundaries, a few repeated large ones.
std::int64_t random_size(std::mt19937_64& random, std::int64_t largest) {
  constexpr std::int64_t kMi = 1 << 20;
  const auto up_to = [&](std::int64_t most) {
    return 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most));
  };
  constexpr std::int64_t kBoundaries[] = {1,
                                          511,
                                          512,
                                          513,
                                          kMi - 1,
                                          kMi,
                                          kMi + 1,
                                          kMi + 512,
                                          9 * kMi,
                                          10 * kMi - 512,
                                          10 * kMi - 1,
                                          10 * kMi,
                                          10 * kMi + 1,
                                          19 * kMi,
                                          20 * kMi,
                                          20 * kMi + 1,
                                          21 * kMi,
                                          40 * kMi};
  switch (random() % 8) {
    case 0:
      return up_to(4096);
    case 1:
      return up_to(kMi);
    case 2:
      return kMi / 8 * up_to(7);
    case 3:
      return kBoundaries[random() % std::size(kBoundaries)];
    case 4:
      return up_to(10 * kMi);
    case 5:
      return kMi * up_to(40);
    case 6:
      return up_to(largest);
    default:
      return 3'211'264 * up_to(8);
  }
}

class WithReference : public testing::TestWithParam<Scenario> {
 protected:
  struct Live {
    BlockId block;
    std::int64_t address, bytes;
  };

  void compare_structure(const CachingAllocator& allocator, const ReferenceAllocator& reference) {
    const auto gaps = reference.gaps();
    std::size_t gap = 0;
    std::int64_t taken = 0;
    for (const auto& segment : allocator.segments()) {
      for (const auto& block : segment.blocks) {
        if (block.allocated) ++taken;
        if (block.allocated || !block.mapped) continue;
        ASSERT_LT(gap, gaps.size());
        ASSERT_EQ(block.address, gaps[gap].address);
        ASSERT_EQ(block.size, gaps[gap].size);
        ++gap;
      }
    }
    ASSERT_EQ(gap, gaps.size());
    std::int64_t reference_taken = 0;
    for (const auto& segment : reference.segments)
      reference_taken += static_cast<std::int64_t>(segment.taken.size());
    ASSERT_EQ(taken, reference_taken);
  }
};

TEST_P(WithReference, AgreeAddressByAddress) {
  const Scenario& scenario = GetParam();
  const std::int64_t capacity = scenario.capacity << 20;
  std::int64_t failures = 0, retries = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    std::mt19937_64 random(seed);
    CachingAllocator allocator(scenario.config, {Bytes{capacity}, {}});
    ReferenceAllocator reference(scenario.config, capacity);
    std::vector<Live> live, pending;
    std::size_t most = 20;  // how full: changes now and then, so that caches fill and empty
    for (int step = 0; step < 4000; ++step) {
      if (step % 200 == 0) most = 1 + random() % 120;
      if (random() % 997 == 0) {
        allocator.empty_cache();
        reference.release_all();
        pending.clear();
      }
      if (!pending.empty() && random() % 4 == 0) {
        allocator.finish_free(pending.back().block);
        reference.free(pending.back().address);
        std::erase(reference.pending, pending.back().address);
        pending.pop_back();
      }
      if (live.size() > most || (!live.empty() && random() % 5 < 2)) {
        const std::size_t victim = random() % 3 == 0 ? random() % live.size() : live.size() - 1;
        if (random() % 8 == 0) {  // another stream still uses it
          allocator.begin_free(live[victim].block);
          reference.pending.push_back(live[victim].address);
          pending.push_back(live[victim]);
        } else {
          allocator.free(live[victim].block);
          reference.free(live[victim].address);
        }
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(victim));
      } else {
        const std::int64_t bytes = random_size(random, capacity / 6);
        const int stream = random() % 6 == 0 ? 1 : 0;
        const auto block = allocator.allocate(Bytes{bytes}, static_cast<Stream>(stream));
        const auto expected = reference.allocate(bytes, stream);
        ASSERT_EQ(block.has_value(), expected.has_value()) << "seed " << seed << " step " << step;
        if (block) {
          ASSERT_EQ(allocator.address_of(*block).count(), *expected)
              << "seed " << seed << " step " << step;
          live.push_back({*block, *expected, bytes});
        } else {
          ++failures;
          ASSERT_EQ(block.error().tried.count(), reference.tried);
          ASSERT_EQ(block.error().free.count(), capacity - reference.reserved());
          ASSERT_EQ(block.error().reserved_unallocated.count(),
                    reference.reserved() - reference.allocated());
        }
      }
      if (allocator.pending_frees() == 0) pending.clear();  // it has waited for all streams
      ASSERT_EQ(allocator.pending_frees(), reference.pending.size());
      ASSERT_EQ(allocator.stats().allocated.count(), reference.allocated());
      ASSERT_EQ(allocator.stats().reserved.count(), reference.reserved());
      ASSERT_EQ(allocator.stats().retries, reference.retries);
      if (step % 50 == 0) {
        ASSERT_EQ(broken_invariant(allocator, capacity), "") << "seed " << seed << " step " << step;
        compare_structure(allocator, reference);
        if (HasFatalFailure()) return;
      }
    }
    retries += reference.retries;
    for (const Live& one : pending) {
      allocator.finish_free(one.block);
      reference.free(one.address);
    }
    for (const Live& one : live) {
      allocator.free(one.block);
      reference.free(one.address);
    }
    compare_structure(allocator, reference);
    allocator.empty_cache();
    ASSERT_EQ(allocator.stats().allocated.count(), 0);
    ASSERT_EQ(allocator.stats().requested.count(), 0);
    ASSERT_EQ(allocator.stats().reserved.count(), 0);
  }
  // A capacity that never binds would leave the retry untested.
  if (scenario.capacity < 10'000) {
    EXPECT_GT(retries, 0);
    EXPECT_GT(failures, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Allocator, WithReference,
    testing::Values(
        Scenario{"unconstrained", {}, 100'000}, Scenario{"tight", {}, 300},
        Scenario{"roomy", {}, 1500}, Scenario{"max_split", settings("max_split_size_mb:24"), 400},
        Scenario{"max_split_rounding",
                 settings("max_split_size_mb:40,max_non_split_rounding_mb:64"), 900},
        Scenario{"roundup", settings("roundup_power2_divisions:[1:4,8:2,16:8,>:1]"), 500},
        Scenario{"roundup_all", settings("roundup_power2_divisions:16"), 500},
        Scenario{"segments", settings("large_segment_size_mb:11"), 400},
        Scenario{"garbage",
                 settings("garbage_collection_threshold:0.5,per_process_memory_fraction:0.8"), 900},
        Scenario{"fraction", settings("per_process_memory_fraction:0.5"), 900},
        Scenario{"expandable", settings("expandable_segments:True"), 400},
        Scenario{"expandable_roomy", settings("expandable_segments:True"), 1500},
        Scenario{"expandable_fraction",
                 settings("expandable_segments:True,per_process_memory_fraction:0.7"), 700},
        Scenario{"everything",
                 settings("max_split_size_mb:32,garbage_collection_threshold:0.6,"
                          "per_process_memory_fraction:0.9,roundup_power2_divisions:4"),
                 700}),
    [](const auto& scenario) { return std::string(scenario.param.name); });

}  // namespace
}  // namespace stoker
