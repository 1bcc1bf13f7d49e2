#include "input/loader/batch_draws.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace stoker {
namespace {

TEST(SampleDeck, EachCardOnceARound) {
  const SampleDeck deck({1_s, 2_s, 3_s, 4_s, 5_s}, {0.1_s, 0.2_s, 0.3_s, 0.4_s, 0.5_s});
  Dealer dealer(deck, 3);
  Seconds cpu, wait;
  for (int i = 0; i < 5; ++i) {
    const SampleWork work = dealer.deal(1);
    EXPECT_NEAR(work.wait / work.cpu, 0.1, 1e-12) << "a sample's waiting beside another's CPU";
    cpu += work.cpu;
    wait += work.wait;
  }
  EXPECT_DOUBLE_EQ(cpu.count(), 15);
  EXPECT_DOUBLE_EQ(wait.count(), 1.5);
  const SampleWork many = dealer.deal(12);  // two rounds and two cards
  EXPECT_GE(many.cpu, 30_s + 1_s + 2_s);
  EXPECT_LE(many.cpu, 30_s + 4_s + 5_s);
  EXPECT_EQ(Dealer(SampleDeck(), 7).deal(3).cpu, 0_s);
}

TEST(SampleDeck, ShufflesStretches) {
  std::vector<Seconds> costs;
  for (int i = 0; i < 100; ++i) costs.emplace_back(i);
  const SampleDeck deck(costs, {}, 1, 10);  // batches of ten neighbours
  const SampleDeck again = deck.shuffled(10, 5);
  ASSERT_EQ(again.cards(), 100U);
  EXPECT_NEAR(again.before(100).cpu.count(), 4950, 1e-9);
  Dealer dealer(again, 0);
  for (int i = 0; i < 10; ++i) {
    const double sum = dealer.deal(10).cpu.count();  // 45 + 100 k
    EXPECT_NEAR(std::fmod(sum, 100), 45, 1e-6);
  }
  EXPECT_NE(deck.before(10).cpu, again.before(10).cpu);
}

TEST(SampleDeck, SumsHaveTheRightMoments) {
  std::vector<Seconds> costs;  // mean 2.25, variance 10.9375
  for (int i = 0; i < 8000; ++i) costs.push_back(i % 8 == 0 ? 11_s : 1_s);
  const SampleDeck deck(costs);
  Dealer dealer(deck, 0);
  double sum = 0, squares = 0;
  constexpr int kBatches = 2000;  // a whole round
  for (int i = 0; i < kBatches; ++i) {
    const double x = dealer.deal(4).cpu.count();
    sum += x;
    squares += x * x;
  }
  const double mean = sum / kBatches;
  EXPECT_NEAR(mean, 4 * 2.25, 1e-9);
  EXPECT_NEAR(squares / kBatches - mean * mean, 4 * 10.9375, 0.1 * 4 * 10.9375);
}

TEST(Representative, KeepsMeanAndSpreadInAPrimeNumber) {
  std::vector<SampleWork> samples;  // one in a hundred waits
  for (int i = 0; i < 2000; ++i)
    samples.push_back({1_s + 0.001_s * (i % 100), i % 100 == 7 ? 50_s : 0_s});
  const auto few = representative(samples);
  ASSERT_EQ(few.size(), 509U);
  double cpu = 0, wait = 0, squares = 0;
  for (const SampleWork& s : few) {
    cpu += s.cpu.count() / 509;
    wait += s.wait.count() / 509;
    squares += s.wait.count() * s.wait.count() / 509;
  }
  EXPECT_NEAR(cpu, 1.0495, 1e-9);
  EXPECT_NEAR(wait, 0.5, 1e-9);
  EXPECT_NEAR(squares, 25, 1);
  EXPECT_EQ(representative({{1_s, 0_s}, {2_s, 0_s}}).size(), 2U);
  EXPECT_EQ(representative(std::vector<SampleWork>(240)).size(), 239U);
}

TEST(SampleDeck, LikenessIsTheCommonShareOfTheVariance) {
  std::vector<Seconds> costs;
  for (int i = 0; i < 4000; ++i) costs.emplace_back(i);
  const auto common = [&](double likeness) {
    const SampleDeck deck(costs, {}, likeness, 10);
    Dealer dealer(deck, 0);
    double squares = 0;
    for (int i = 0; i < 400; ++i) {
      const double d = dealer.deal(10).cpu.count() / 10 - 1999.5;
      squares += d * d / 400;
    }
    const double variance = (4000.0 * 4000 - 1) / 12;
    return (squares / variance - 0.1) / 0.9;  // of a mean of ten: (1 + 9 r) / 10
  };
  EXPECT_NEAR(common(0), 0, 0.03);
  EXPECT_NEAR(common(0.5), 0.5, 0.12);
  EXPECT_NEAR(common(1), 1, 0.01);
}

}  // namespace
}  // namespace stoker
