#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tune/method/history.h"

/// Reasons why trials cannot decide anything: a sentence each, with what to change.
namespace stoker::tune {

/// What a search can say of the settings that its user would change.
struct Cures {
  std::string tried;          ///< "learning rates"
  std::string smaller_batch;  ///< "give smaller batches, --batch 16,..."
  std::string smaller_rates;  ///< "give smaller ones, --lr 1e-09..1e-05"
};

/// What the first trials show that no other trial will mend: a command that ends well and never
/// tells the metric, three that failed one like the other, a metric that gets worse from first to
/// last in all of four, power that nobody tells. Only what is seen of `history` counts.
[[nodiscard]] std::optional<std::string> early_problem(const History& history,
                                                       const Objective& objective);

/// Why nothing can be chosen of these, one of each setting that was tried; nothing: it can.
[[nodiscard]] std::optional<std::string> no_choice(const std::vector<const Outcome*>& outcomes,
                                                   const Objective& objective, const Cures& cures);

/// Says that no power is known of a trial, in a search that goes by energy.
[[nodiscard]] std::string no_power_of(std::int64_t trial);

/// The metric got worse from first to last in all of them, `fewest` at least, as if the direction
/// were the other one.
[[nodiscard]] std::optional<std::string> wrong_direction(
    const std::vector<const Outcome*>& outcomes, const Objective& objective, std::size_t fewest);

}  // namespace stoker::tune
