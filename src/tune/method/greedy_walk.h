#pragma once

#include <optional>
#include <string>
#include <vector>

#include "study/definition/values.h"
#include "tune/method/greedy.h"
#include "tune/method/noise.h"

/// Internal to src/tune/method: one pass of the greedy search over a history.
namespace stoker::tune {

/// Stages whose trials train on a share of the data, to be compared and stopped early.
[[nodiscard]] inline bool searches(const std::string& stage) {
  return stage == "rates" || stage == "refine" || stage == "smaller";
}

[[nodiscard]] inline double number_of(const std::string& value) {
  return study::as_number(value).value_or(0);
}

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
  /// Smaller batches at the winner's rate, while they are better; both become the better pair.
  [[nodiscard]] bool shrink(std::string& batch, Rate& winner);
  void choose(const std::string& batch, const Rate& winner);
  [[nodiscard]] SettingScores scores_of(std::string name, const Rate& rate) const;
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
  [[nodiscard]] BatchRule batch_rule() const {
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
