#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tune/method/greedy.h"

/// Internal to src/tune/method: one pass of the greedy search over a history.
namespace stoker::tune {

class GreedyWalk {
 public:
  GreedyWalk(const GreedyOptions& options, const History& history)
      : options_(options), history_(history) {}

  [[nodiscard]] Walk run();

 private:
  /// Outcomes of one learning rate, one a seed.
  struct Rate {
    std::string value;
    double rate = 0;
    std::vector<const Outcome*> outcomes{};
    std::optional<double> score{};  ///< mean of their bests; nothing where one has none
  };

  // Each returns false where the walk ends for now, with `walk_` saying why.
  [[nodiscard]] bool choose_batches();
  [[nodiscard]] bool by_forecast();
  [[nodiscard]] bool by_measuring();
  [[nodiscard]] bool choose_rate(const std::string& batch);
  [[nodiscard]] bool grid(const std::string& batch, std::vector<Rate>& rates);
  [[nodiscard]] bool widen(const std::string& batch, std::vector<Rate>& rates);
  [[nodiscard]] bool refine(const std::string& batch, std::vector<Rate>& rates);
  [[nodiscard]] bool final_run(const std::string& batch, const Rate& winner);
  [[nodiscard]] bool run_rate(const std::string& batch, Rate& rate, const std::string& stage);
  /// All of them asked for before the first is looked at, so that they can run beside each other.
  [[nodiscard]] bool run_rates(const std::string& batch, std::vector<Rate*> rates,
                               const std::string& stage);
  [[nodiscard]] const Outcome* result(const Request& request);
  [[nodiscard]] bool requested(const Request& request);
  [[nodiscard]] bool judge_grid(const std::vector<Rate>& rates);

  [[nodiscard]] Request request(const std::string& batch, const std::string& rate,
                                const std::string& stage, int repetition) const;
  [[nodiscard]] std::optional<std::size_t> best(const std::vector<Rate>& rates) const;
  [[nodiscard]] BatchRule by() const {
    return {options_.by, options_.threshold, options_.objective.energy_weight.value_or(1)};
  }
  void tell(const Rate& rate, const std::string& stage);
  [[nodiscard]] double saved(const Outcome& outcome) const;
  bool stuck(std::string problem);

  const GreedyOptions& options_;
  const History& history_;
  Walk walk_;
  std::vector<std::string>
      batches_;         ///< that may be taken, the chosen one first, then smaller ones
  double longest_ = 0;  ///< steps of the longest trial of learning rates that ran to its end
  bool out_of_memory_ = false;
  bool undecided_ = false;
};

}  // namespace stoker::tune
