#include "tune/method/halving.h"

#include <algorithm>

namespace stoker::tune {

std::vector<double> rungs_of(double least, double most, int eta) {
  std::vector<double> rungs;
  for (double steps = least; steps < most; steps *= eta) rungs.push_back(steps);
  rungs.push_back(most);
  return rungs;
}

std::vector<Bracket> hyperband_brackets(std::size_t rungs, int eta) {
  std::vector<Bracket> brackets;
  if (rungs == 0) return brackets;
  const auto s_max = static_cast<std::int64_t>(rungs) - 1;
  for (std::int64_t s = s_max; s >= 0; --s) {
    std::int64_t power = 1;
    for (std::int64_t i = 0; i < s; ++i) power *= eta;
    const std::int64_t above = (s_max + 1) * power;
    brackets.push_back({static_cast<std::size_t>(s_max - s), (above + s) / (s + 1)});
  }
  return brackets;
}

void rank(std::vector<Ranked>& scores) {
  std::ranges::stable_sort(scores, [](const Ranked& a, const Ranked& b) {
    return a.score != b.score ? a.score > b.score : a.config < b.config;
  });
}

std::size_t promoted(std::size_t count, int eta) { return count / static_cast<std::size_t>(eta); }

}  // namespace stoker::tune
