#include "study/executor/slots.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/random.h"

namespace stoker::study {
namespace {

Capacity machine() {
  Capacity c;
  c.cores = {0, 1, 2, 3, 4, 5, 6, 7};
  c.gpus = {"0", "1"};
  c.memory_bytes = 16LL << 30;
  return c;
}

Needs needs(int cores, int gpus = 0, std::int64_t gib = 0) {
  Needs n;
  n.cores = cores;
  n.gpus = gpus;
  n.memory_bytes = gib << 30;
  return n;
}

TEST(Slots, ATrialThatSaysNothingHasTheMachineForItself) {
  Slots slots(machine());
  EXPECT_EQ(slots.take(needs(0))->cores.size(), 8u);
  EXPECT_FALSE(slots.has_room(needs(0)));
}

TEST(Slots, CoresArePartedAmongAsManyAsWereAskedFor) {
  Capacity c = machine();
  c.at_most = 3;
  Slots slots(c);
  EXPECT_EQ(slots.take(needs(0))->cores, (std::vector<int>{0, 1}));
  EXPECT_EQ(slots.take(needs(0))->cores, (std::vector<int>{2, 3}));
  EXPECT_TRUE(slots.take(needs(0)).has_value());
  EXPECT_FALSE(slots.has_room(needs(0)));
  c.at_most = 64;
  Slots many(c);
  for (int i = 0; i < 64; ++i) EXPECT_TRUE(many.take(needs(0))->cores.empty());
  EXPECT_FALSE(many.has_room(needs(0)));
}

TEST(Slots, CoresGoToOneTrialAtATime) {
  Slots slots(machine());
  const Slot first = *slots.take(needs(3));
  const Slot second = *slots.take(needs(5));
  EXPECT_EQ(first.cores, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(second.cores, (std::vector<int>{3, 4, 5, 6, 7}));
  EXPECT_FALSE(slots.has_room(needs(1)));
  slots.give_back(first);
  EXPECT_EQ(slots.take(needs(2))->cores, (std::vector<int>{0, 1}));
}

TEST(Slots, GpusAreSharedOnlyWhenAsked) {
  Slots slots(machine());
  EXPECT_EQ(slots.take(needs(0, 1))->gpus, std::vector<std::string>{"0"});
  const Slot second = *slots.take(needs(0, 1));
  EXPECT_EQ(second.gpus, std::vector<std::string>{"1"});
  EXPECT_EQ(second.cores.size(), 4u);
  EXPECT_FALSE(slots.has_room(needs(0, 1)));
  Capacity c = machine();
  c.share_gpu = 2;
  Slots shared(c);
  std::vector<std::string> got;
  for (int i = 0; i < 4; ++i) got.push_back(shared.take(needs(1, 1))->gpus.at(0));
  EXPECT_EQ(got, (std::vector<std::string>{"0", "1", "0", "1"}));
  EXPECT_FALSE(shared.has_room(needs(1, 1)));
}

TEST(Slots, MemoryIsNotPromisedTwice) {
  Slots slots(machine());
  const Slot first = *slots.take(needs(1, 0, 10));
  EXPECT_FALSE(slots.has_room(needs(1, 0, 7)));
  EXPECT_TRUE(slots.has_room(needs(1, 0, 6)));
  slots.give_back(first);
  EXPECT_TRUE(slots.has_room(needs(1, 0, 7)));
}

TEST(Slots, WhatNeverFitsSaysWhy) {
  const Slots slots(machine());
  EXPECT_EQ(slots.impossible(needs(9)), "needs 9 cores, and this machine has 8");
  EXPECT_EQ(slots.impossible(needs(1, 3)), "needs 3 GPUs, and this machine has 2");
  EXPECT_EQ(slots.impossible(needs(1, 0, 32)), "needs 32.0 GiB, and this machine has 16.0 GiB");
  EXPECT_EQ(slots.impossible(needs(8, 2, 16)), std::nullopt);
}

TEST(Slots, MigInstancesStandForTheirGpu) {
  EXPECT_EQ(gpus_listed("GPU 0: NVIDIA A100 (UUID: GPU-a)\n"
                        "  MIG 3g.20gb Device 0: (UUID: MIG-1)\n"
                        "  MIG 3g.20gb Device 1: (UUID: MIG-2)\n"
                        "GPU 1: NVIDIA A100 (UUID: GPU-b)\n"),
            (std::vector<std::string>{"MIG-1", "MIG-2", "1"}));
  EXPECT_TRUE(gpus_listed("No devices were found\n").empty());
}

/// Trials of random needs come and go.
TEST(Slots, NothingIsHandedOutTwiceAndRoomIsRoom) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    Capacity c = machine();
    c.cores.resize(1 + random.below(8));
    c.gpus = {"0", "1", "2"};
    c.gpus.resize(random.below(4));
    c.share_gpu = static_cast<int>(1 + random.below(3));
    c.at_most = static_cast<int>(random.below(2) * (1 + random.below(6)));
    Slots slots(c);
    std::vector<Slot> held;
    for (int event = 0; event < 200; ++event) {
      if (!held.empty() && random.below(5) < 2) {
        const auto gone = static_cast<std::ptrdiff_t>(random.below(held.size()));
        slots.give_back(held[static_cast<std::size_t>(gone)]);
        held.erase(held.begin() + gone);
      } else {
        const Needs wanted =
            needs(static_cast<int>(random.below(4)), static_cast<int>(random.below(3)),
                  static_cast<std::int64_t>(random.below(9)));
        if (slots.impossible(wanted)) continue;
        const bool room = slots.has_room(wanted);
        const auto slot = slots.take(wanted);
        ASSERT_EQ(slot.has_value(), room) << "seed " << seed;
        if (slot) held.push_back(*slot);
        if (slot && wanted.cores > 0) {
          ASSERT_EQ(slot->cores.size(), static_cast<std::size_t>(wanted.cores));
        }
        if (slot) {
          ASSERT_EQ(slot->gpus.size(), static_cast<std::size_t>(wanted.gpus));
        }
      }
      std::map<int, int> cores;
      std::map<std::string, int> gpus;
      std::int64_t memory = 0;
      for (const Slot& slot : held) {
        for (const int core : slot.cores) ++cores[core];
        for (const std::string& gpu : slot.gpus) ++gpus[gpu];
        memory += slot.memory_bytes;
        ASSERT_EQ(std::set(slot.gpus.begin(), slot.gpus.end()).size(), slot.gpus.size());
      }
      for (const auto& [core, trials] : cores) ASSERT_EQ(trials, 1) << "seed " << seed;
      for (const auto& [gpu, trials] : gpus) ASSERT_LE(trials, c.share_gpu) << "seed " << seed;
      ASSERT_LE(memory, c.memory_bytes);
      ASSERT_EQ(slots.in_use(), static_cast<int>(held.size()));
    }
    for (const Slot& slot : held) slots.give_back(slot);
    for (int cores = 0; cores < 4; ++cores) {
      const Needs wanted = needs(cores, static_cast<int>(random.below(3)));
      if (slots.impossible(wanted)) continue;
      const int most = slots.at_a_time(wanted);
      std::vector<Slot> all;
      while (auto slot = slots.take(wanted)) all.push_back(*slot);
      EXPECT_EQ(static_cast<int>(all.size()), most) << "seed " << seed << ", cores " << cores;
      for (const Slot& slot : all) slots.give_back(slot);
    }
  }
}

}  // namespace
}  // namespace stoker::study
