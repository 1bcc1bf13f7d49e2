#pragma once

#include <cstdint>
#include <optional>
#include <vector>

/// The rules of successive halving, Hyperband and ASHA (Jamieson and Talwalkar 2016; Li et al.
/// 2018; Li et al. 2020), as functions of scores.
namespace stoker::tune {

/// Steps at which configurations are compared: least, eta times as many, ... up to the first that
/// would be above `most`, which is `most` itself.
[[nodiscard]] std::vector<double> rungs_of(double least, double most, int eta);

/// A Hyperband bracket: `count` configurations begin at rung `first`.
struct Bracket {
  std::size_t first = 0;
  std::int64_t count = 0;

  bool operator==(const Bracket&) const = default;
};
/// From the one that stops most to the one that stops none: with R = eta^s_max least steps in most,
/// bracket s has ceil((s_max + 1) eta^s / (s + 1)) configurations. `rungs` are counted, since
/// logarithms of whole powers are not exact.
[[nodiscard]] std::vector<Bracket> hyperband_brackets(std::size_t rungs, int eta);

struct Ranked {
  std::size_t config = 0;
  double score = 0;
};
/// Best first; of equals the earlier configuration.
void rank(std::vector<Ranked>& scores);

/// How many of `count` go on from a rung.
[[nodiscard]] std::size_t promoted(std::size_t count, int eta);

/// ASHA: the first of the best 1/eta of a rung that `may` go on and has not; nothing: none.
template <class May>
[[nodiscard]] std::optional<std::size_t> promotable(std::vector<Ranked> scores, int eta, May may) {
  rank(scores);
  for (std::size_t i = 0; i < promoted(scores.size(), eta); ++i) {
    if (may(scores[i].config)) return scores[i].config;
  }
  return std::nullopt;
}

}  // namespace stoker::tune
