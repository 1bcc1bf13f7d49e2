#include "study/executor/slots.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace stoker::study
