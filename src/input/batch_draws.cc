#include "input/batch_draws.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "input/random.h"

namespace stoker {
namespace {

using Order = std::vector<std::uint32_t>;

void shuffle_order(Order& order, Random& random) {
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
}

/// Sorted by cost as far as `likeness` says, cut into batches, the batches in random order.
Order alike(const std::vector<double>& cost, double likeness, std::int64_t batch, Random& random) {
  const std::size_t n = cost.size();
  Order by_cost(n);
  std::iota(by_cost.begin(), by_cost.end(), 0U);
  std::sort(by_cost.begin(), by_cost.end(), [&](auto a, auto b) { return cost[a] < cost[b]; });
  std::vector<double> key(n);
  for (std::size_t rank = 0; rank < n; ++rank) {
    // Uniform scores of variance 1, so that both parts weigh as the likeness says.
    const double score = std::sqrt(12.0) * (static_cast<double>(rank) / static_cast<double>(n));
    key[by_cost[rank]] = std::sqrt(likeness) * score +
                         std::sqrt(1 - likeness) * std::sqrt(12.0) * random.uniform();
  }
  Order sorted = by_cost;
  std::sort(sorted.begin(), sorted.end(), [&](auto a, auto b) { return key[a] < key[b]; });
  const auto size = static_cast<std::size_t>(std::max<std::int64_t>(1, batch));
  Order batches((n + size - 1) / size);
  std::iota(batches.begin(), batches.end(), 0U);
  shuffle_order(batches, random);
  Order out;
  out.reserve(n);
  for (const std::uint32_t b : batches) {
    for (std::size_t i = b * size; i < std::min(n, (b + 1) * size); ++i) out.push_back(sorted[i]);
  }
  return out;
}

}  // namespace

SampleDeck::SampleDeck(const std::vector<double>& cpu, const std::vector<double>& wait,
                       double likeness, std::int64_t batch, std::uint64_t seed) {
  Random random(seed);
  const bool waits = wait.size() == cpu.size();
  Order order(cpu.size());
  std::iota(order.begin(), order.end(), 0U);
  if (likeness > 0 && cpu.size() > 1) {
    std::vector<double> cost = cpu;
    if (waits) std::transform(cost.begin(), cost.end(), wait.begin(), cost.begin(), std::plus<>());
    order = alike(cost, std::min(1.0, likeness), batch, random);
  } else {
    shuffle_order(order, random);
  }
  before_.reserve(cpu.size() + 1);
  SampleWork sum;
  before_.push_back(sum);
  for (const std::uint32_t i : order) {
    sum.cpu += cpu[i];
    if (waits) sum.wait += wait[i];
    before_.push_back(sum);
  }
}

SampleWork Dealer::deal(std::int64_t count) {
  SampleWork out;
  const std::size_t cards = deck_->cards();
  if (cards == 0 || count <= 0) return out;
  const SampleWork& all = deck_->before(cards);
  const auto asked = static_cast<std::size_t>(count);
  const auto rounds = static_cast<double>(asked / cards);
  out = {rounds * all.cpu, rounds * all.wait};
  const auto take = [&](std::size_t from, std::size_t to) {
    out.cpu += deck_->before(to).cpu - deck_->before(from).cpu;
    out.wait += deck_->before(to).wait - deck_->before(from).wait;
  };
  const std::size_t end = at_ + asked % cards;
  take(at_, std::min(end, cards));
  if (end > cards) take(0, end - cards);
  at_ = end >= cards ? end - cards : end;
  return out;
}

}  // namespace stoker
