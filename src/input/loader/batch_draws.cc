#include "input/loader/batch_draws.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "base/random.h"

namespace stoker {
namespace {

using Order = std::vector<std::uint32_t>;

void shuffle_order(Order& order, Random& random) {
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
}

/// Sorted by cost as far as `likeness` says, cut into batches, the batches in random order.
Order alike(const std::vector<SampleWork>& samples, double likeness, std::int64_t batch,
            Random& random) {
  const std::size_t n = samples.size();
  const auto cost = [&](std::uint32_t i) { return samples[i].cpu + samples[i].wait; };
  Order by_cost(n);
  std::iota(by_cost.begin(), by_cost.end(), 0U);
  std::sort(by_cost.begin(), by_cost.end(), [&](auto a, auto b) { return cost(a) < cost(b); });
  std::vector<double> key(n);
  for (std::size_t rank = 0; rank < n; ++rank) {
    // Uniform scores of variance 1, so that both parts weigh as the likeness says.
    const double score = std::sqrt(12.0) * (static_cast<double>(rank) / static_cast<double>(n));
    key[by_cost[rank]] =
        std::sqrt(likeness) * score + std::sqrt(1 - likeness) * std::sqrt(12.0) * random.uniform();
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

/// Samples enough for the shape of a distribution and a slow one in a hundred; few enough that a
/// short simulation deals all of them.
constexpr std::size_t kMostSamples = 509;

std::size_t prime_at_most(std::size_t n) {
  for (;; --n) {
    bool prime = true;
    for (std::size_t k = 2; k * k <= n && prime; ++k) prime = n % k != 0;
    if (prime) return n;
  }
}

}  // namespace

std::vector<SampleWork> representative(std::vector<SampleWork> samples) {
  if (samples.size() < 3) return samples;
  std::sort(samples.begin(), samples.end(), [](const SampleWork& a, const SampleWork& b) {
    return a.cpu + a.wait < b.cpu + b.wait;
  });
  const std::size_t count = prime_at_most(std::min(samples.size(), kMostSamples));
  std::vector<SampleWork> out(count);
  // Sample i covers [i, i + 1) * count / samples of the output; it may lie across a border.
  const double width = static_cast<double>(count) / static_cast<double>(samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const double begin = static_cast<double>(i) * width;
    const std::size_t group = std::min(count - 1, static_cast<std::size_t>(begin));
    const double here = std::min(width, static_cast<double>(group + 1) - begin);
    const std::size_t next = std::min(count - 1, group + 1);
    out[group].cpu += here * samples[i].cpu;
    out[group].wait += here * samples[i].wait;
    out[next].cpu += (width - here) * samples[i].cpu;
    out[next].wait += (width - here) * samples[i].wait;
  }
  return out;
}

SampleDeck::SampleDeck(const std::vector<Seconds>& cpu, const std::vector<Seconds>& wait,
                       double likeness, std::int64_t batch, std::uint64_t seed) {
  Random random(seed);
  std::vector<SampleWork> samples(cpu.size());
  for (std::size_t i = 0; i < cpu.size(); ++i)
    samples[i] = {cpu[i], wait.size() == cpu.size() ? wait[i] : 0_s};
  Order order;
  if (likeness > 0 && samples.size() > 1) {
    order = alike(samples, std::min(1.0, likeness), batch, random);
  } else {
    order.resize(samples.size());
    std::iota(order.begin(), order.end(), 0U);
    shuffle_order(order, random);
  }
  before_.reserve(samples.size() + 1);
  SampleWork sum;
  before_.push_back(sum);
  for (const std::uint32_t i : order) {
    sum.cpu += samples[i].cpu;
    sum.wait += samples[i].wait;
    before_.push_back(sum);
  }
}

SampleDeck SampleDeck::in_order(const std::vector<Seconds>& cpu, const std::vector<Seconds>& wait) {
  SampleDeck deck;
  deck.ordered_ = true;
  SampleWork sum;
  deck.before_.push_back(sum);
  for (std::size_t i = 0; i < cpu.size(); ++i) {
    sum.cpu += cpu[i];
    sum.wait += i < wait.size() ? wait[i] : 0_s;
    deck.before_.push_back(sum);
  }
  return deck;
}

SampleDeck SampleDeck::shuffled(std::int64_t keep, std::uint64_t seed) const {
  Random random(seed);
  const auto size = static_cast<std::size_t>(std::max<std::int64_t>(1, keep));
  Order stretches((cards() + size - 1) / size);
  std::iota(stretches.begin(), stretches.end(), 0U);
  shuffle_order(stretches, random);
  SampleDeck out;
  out.before_.reserve(cards() + 1);
  SampleWork sum;
  out.before_.push_back(sum);
  for (const std::uint32_t stretch : stretches) {
    for (std::size_t i = stretch * size; i < std::min(cards(), (stretch + 1) * size); ++i) {
      sum.cpu += before_[i + 1].cpu - before_[i].cpu;
      sum.wait += before_[i + 1].wait - before_[i].wait;
      out.before_.push_back(sum);
    }
  }
  return out;
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
