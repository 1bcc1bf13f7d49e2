#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "study/definition/study.h"

/// Internal to src/study: how choices are spelled in files, flags and answers.
namespace stoker::study {

[[nodiscard]] std::string_view name_of(Goal goal);
[[nodiscard]] std::string_view name_of(Take take);
[[nodiscard]] std::string_view name_of(Order order);
[[nodiscard]] std::optional<Goal> goal_named(std::string_view name);
[[nodiscard]] std::optional<Take> take_named(std::string_view name);
[[nodiscard]] std::optional<Order> order_named(std::string_view name);

/// "max" for accuracy and throughput, "min" for loss, error and time, by the metric's name; unknown
/// for anything else.
[[nodiscard]] Goal usual_goal(std::string_view metric);

}  // namespace stoker::study
