#pragma once

#include <string>
#include <vector>

#include "tune/curve/stopping.h"
#include "tune/method/batch_choice.h"
#include "tune/method/method.h"

namespace stoker::tune {

/// What the greedy search goes by. `batches` and `rates` hold values as they stand in the command,
/// from small to large; one of them may be empty: the command fixes it.
struct GreedyOptions {
  Objective objective{};
  std::vector<std::string> batches{}, rates{};
  bool batch_first = true;  ///< the batch is the first of a request's values
  /// What is known of the batches without running them, in their order; empty: they are measured.
  std::vector<BatchFigure> forecast{};
  double threshold = 0.9;
  BatchBy by = BatchBy::kThroughput;
  double share = 1;  ///< of the data, for learning rates
  StopRules rules{};
  int refine = 6;           ///< trials at most around the winner of the grid
  int smaller_batches = 6;  ///< at most, tried at the chosen rate while they are better
  int repeat = 1;           ///< trials of each learning rate, each with a seed of its own
  std::int64_t seed = 0;
  double probe_steps = 200;   ///< of a trial that measures a batch...
  double probe_seconds = 30;  ///< ... or this long, with ten reports at least
  bool final_run = true;
};

/// The batch first: by what the card makes of it. Then the learning rate at this batch on a grid of
/// logarithms, on a share of the data, each stopped as early as its curve allows; then linearly
/// around the winner until better rates lie on neither side; then smaller batches at this rate,
/// while they are better; then the whole run.
class Greedy final : public Method {
 public:
  explicit Greedy(GreedyOptions options) : options_(std::move(options)) {}

  [[nodiscard]] Walk walk(const History& history) const override;
  [[nodiscard]] std::optional<std::string> enough(const History& history, const Request& request,
                                                  const Curve& curve,
                                                  std::size_t count) const override;
  [[nodiscard]] std::optional<double> target(const Request& request) const override;
  /// Whether a trial that measures a batch has run long enough.
  [[nodiscard]] std::optional<std::string> probed(const Curve& curve) const;

  [[nodiscard]] const GreedyOptions& options() const { return options_; }

 private:
  GreedyOptions options_;
};

}  // namespace stoker::tune
