#pragma once

#include <cstdint>
#include <vector>

#include "base/durations.h"

namespace stoker {

/// What the samples of one batch take together.
struct SampleWork {
  Seconds cpu, wait;
};

/// At most 509 samples, each the mean of neighbours in order of their time alone: the mean stays
/// and nearly all of the spread. Their number is prime, so that batches of a deck that is dealt
/// again and again never fall on the same samples.
[[nodiscard]] std::vector<SampleWork> representative(std::vector<SampleWork> samples);

/// The measured samples as a shuffled deck of cards.
///
/// `likeness` (0 to 1) is how much the samples of a batch resemble each other: above 0 the cards
/// are sorted by a mixture of cost and chance and cut batch by batch, so that about this share of
/// their variance is common to a batch (length bucketing).
class SampleDeck {
 public:
  SampleDeck() = default;
  /// `wait` beside `cpu` element by element; empty: none waits.
  explicit SampleDeck(const std::vector<Seconds>& cpu, const std::vector<Seconds>& wait = {},
                      double likeness = 0, std::int64_t batch = 1, std::uint64_t seed = 1);

  /// The cards as they are, for samples that are asked for in the same order in every epoch.
  [[nodiscard]] static SampleDeck in_order(const std::vector<Seconds>& cpu,
                                           const std::vector<Seconds>& wait);

  /// The deck's cards in another order; stretches of `keep` cards stay together.
  [[nodiscard]] SampleDeck shuffled(std::int64_t keep, std::uint64_t seed) const;

  [[nodiscard]] bool ordered() const { return ordered_; }
  [[nodiscard]] std::size_t cards() const { return before_.empty() ? 0 : before_.size() - 1; }
  /// Sums of the cards before card i; of all at i = cards().
  [[nodiscard]] const SampleWork& before(std::size_t i) const { return before_[i]; }

 private:
  std::vector<SampleWork> before_;
  bool ordered_ = false;
};

/// Deals a deck out to batches, each card once before any comes twice, as an epoch reads its data
/// set. So the sum over an epoch is right whatever the seed, and a rare slow sample comes as often
/// as it was measured.
class Dealer {
 public:
  /// `first` is any number: where in the deck to begin.
  Dealer(const SampleDeck& deck, std::uint64_t first)
      : deck_(&deck), at_(deck.cards() > 0 ? first % deck.cards() : 0) {}
  SampleWork deal(std::int64_t count);

 private:
  const SampleDeck* deck_;
  std::size_t at_;
};

}  // namespace stoker
