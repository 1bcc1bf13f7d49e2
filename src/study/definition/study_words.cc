#include "study/definition/study_words.h"

#include <array>
#include <utility>

namespace stoker::study {
namespace {

template <class T, std::size_t N>
std::string_view name_in(const std::array<std::pair<T, std::string_view>, N>& table, T value) {
  for (const auto& [one, name] : table) {
    if (one == value) return name;
  }
  return "";
}

template <class T, std::size_t N>
std::optional<T> value_in(const std::array<std::pair<T, std::string_view>, N>& table,
                          std::string_view name) {
  for (const auto& [one, known] : table) {
    if (known == name) return one;
  }
  return std::nullopt;
}

constexpr std::array<std::pair<Goal, std::string_view>, 3> kGoals{
    {{Goal::kUnknown, ""}, {Goal::kMost, "max"}, {Goal::kLeast, "min"}}};
constexpr std::array<std::pair<Take, std::string_view>, 6> kTakes{{{Take::kLast, "last"},
                                                                   {Take::kBest, "best"},
                                                                   {Take::kFirst, "first"},
                                                                   {Take::kMean, "mean"},
                                                                   {Take::kLargest, "max"},
                                                                   {Take::kSmallest, "min"}}};
constexpr std::array<std::pair<Order, std::string_view>, 4> kOrders{
    {{Order::kAsWritten, "written"},
     {Order::kRandom, "random"},
     {Order::kCheapest, "cheapest"},
     {Order::kInformative, "informative"}}};

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace

std::string_view name_of(Goal goal) { return name_in(kGoals, goal); }
std::string_view name_of(Take take) { return name_in(kTakes, take); }
std::string_view name_of(Order order) { return name_in(kOrders, order); }
std::optional<Goal> goal_named(std::string_view name) { return value_in(kGoals, name); }
std::optional<Take> take_named(std::string_view name) { return value_in(kTakes, name); }
std::optional<Order> order_named(std::string_view name) { return value_in(kOrders, name); }

Goal usual_goal(std::string_view metric) {
  for (const std::string_view least : {"loss", "error", "perplexity", "latency", "time", "wall",
                                       "seconds", "memory", "bytes", "energy", "cost"}) {
    if (has(metric, least)) return Goal::kLeast;
  }
  for (const std::string_view most : {"acc", "throughput", "per_s", "f1", "bleu", "auc", "score",
                                      "utilization", "precision", "recall", "reward"}) {
    if (has(metric, most)) return Goal::kMost;
  }
  return Goal::kUnknown;
}

}  // namespace stoker::study
