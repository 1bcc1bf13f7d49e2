#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tune/curve/stopping.h"
#include "tune/method/halving.h"
#include "tune/method/method.h"
#include "tune/method/space.h"

namespace stoker::tune {

enum class SearchKind : std::uint8_t {
  kAsha,       ///< promotion without waiting
  kHyperband,  ///< brackets of successive halving
  kWhole       ///< each configuration to its end, but for the rules of stopping
};

struct SearchOptions {
  Objective objective{};
  SearchKind kind = SearchKind::kAsha;
  std::vector<Dimension> space{};
  std::int64_t configs = 0;  ///< to be tried; Hyperband knows its own number
  double least_steps = 0;    ///< the first rung; the median rule's warm-up
  double most_steps = 0;     ///< the last rung; 0: a trial's own end
  int eta = 3;
  bool median = true;  ///< of kWhole
  StopRules rules{};   ///< of kWhole
  std::int64_t seed = 0;
  bool all_combinations = false;  ///< the grid in place of draws
  bool sampled = false;           ///< values come from elsewhere: Walk::Next::kSample
};

/// Search over configurations that are drawn, listed, or told by a sampler. With rungs a
/// configuration pauses at each and goes on from its own checkpoints when it is promoted.
class Search final : public Method {
 public:
  explicit Search(SearchOptions options);

  [[nodiscard]] Walk walk(const History& history) const override;
  [[nodiscard]] std::optional<std::string> enough(const History& history, const Request& request,
                                                  const Curve& curve,
                                                  std::size_t count) const override;
  [[nodiscard]] std::optional<double> target(const Request& request) const override;
  /// Configurations that it tries.
  [[nodiscard]] std::int64_t configs() const { return configs_; }
  [[nodiscard]] const std::vector<double>& rungs() const { return rungs_; }

 private:
  [[nodiscard]] std::optional<std::string> past_the_best(const History& history,
                                                         const Request& request, const Curve& curve,
                                                         std::size_t count) const;

  SearchOptions options_;
  std::vector<double> rungs_;  ///< of kWhole one: the end
  std::vector<Bracket> brackets_;
  std::vector<std::vector<std::string>> listed_;
  std::int64_t configs_ = 0;
};

}  // namespace stoker::tune
