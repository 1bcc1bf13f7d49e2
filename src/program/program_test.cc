#include "program/program.h"

#include <gtest/gtest.h>

#include <random>

namespace stoker {
namespace {

/// Launches of an iteration with the part that is repeated written out.
std::vector<std::uint32_t> written_out(const Program& p) {
  std::vector<std::uint32_t> all;
  for (std::size_t i = 0; i < p.iteration.size();) {
    if (i != p.repeated.from || p.repeated.from == p.repeated.to) {
      all.push_back(p.iteration[i++].value);
      continue;
    }
    for (std::int64_t n = 0; n < p.repeated.times; ++n) {
      for (std::size_t j = p.repeated.from; j < p.repeated.to; ++j)
        all.push_back(p.iteration[j].value);
    }
    i = p.repeated.to;
  }
  return all;
}

Program drawn(std::mt19937& chance) {
  Program p;
  const std::size_t size = chance() % 12;
  for (std::size_t i = 0; i < size; ++i)
    p.iteration.push_back(
        {InstructionKind::kLaunch, When::kAlways, static_cast<std::uint32_t>(chance() % 4)});
  p.repeated.from = size == 0 ? 0 : chance() % size;
  p.repeated.to = p.repeated.from + (size == 0 ? 0 : chance() % (size - p.repeated.from + 1));
  p.repeated.times = 1 + static_cast<std::int64_t>(chance() % 4);
  p.kernels.resize(4);
  return p;
}

/// What is left out of two micro-batches is left out of all that they stand for.
TEST(Program, DroppingKeepsWhatIsRepeated) {
  std::mt19937 chance(11);
  for (int round = 0; round < 300; ++round) {
    Program p = drawn(chance);
    std::vector<std::uint32_t> expected = written_out(p);
    std::erase_if(expected, [](std::uint32_t value) { return value % 2 == 1; });
    p.drop([](const Instruction& in) { return in.value % 2 == 1; });
    EXPECT_EQ(written_out(p), expected) << "round " << round;
  }
}

TEST(Program, LaunchesAreCountedAsOftenAsTheyRun) {
  std::mt19937 chance(12);
  for (int round = 0; round < 300; ++round) {
    const Program p = drawn(chance);
    std::map<std::uint32_t, std::int64_t> counted, expected;
    p.for_each_launch(
        [&](const Kernel&, std::uint32_t kernel, std::int64_t times) { counted[kernel] += times; });
    for (const std::uint32_t kernel : written_out(p)) ++expected[kernel];
    EXPECT_EQ(counted, expected) << "round " << round;
  }
}

TEST(Program, OnlyWhatALaterIterationLaunchesCounts) {
  Program p;
  p.kernels.resize(2);
  p.iteration = {{InstructionKind::kLaunch, When::kFirst, 0},
                 {InstructionKind::kLaunch, When::kLater, 1},
                 {InstructionKind::kAllocate, When::kAlways, 0},
                 {InstructionKind::kLaunch, When::kAlways, 7}};  // no such kernel
  std::vector<std::uint32_t> seen;
  p.for_each_launch(
      [&](const Kernel&, std::uint32_t kernel, std::int64_t) { seen.push_back(kernel); });
  EXPECT_EQ(seen, std::vector<std::uint32_t>{1});
}

}  // namespace
}  // namespace stoker
