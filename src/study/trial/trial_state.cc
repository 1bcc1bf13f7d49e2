#include "study/trial/trial_state.h"

#include <array>

namespace stoker::study {
namespace {

constexpr std::array<std::string_view, 10> kNames{
    "waiting", "submitted", "running",       "paused",    "done",
    "failed",  "timed_out", "out_of_memory", "cancelled", "not_run"};

}  // namespace

std::string_view name_of(TrialState state) { return kNames.at(static_cast<std::size_t>(state)); }

std::optional<TrialState> state_named(std::string_view name) {
  for (const TrialState state : kAllStates) {
    if (name_of(state) == name) return state;
  }
  return std::nullopt;
}

}  // namespace stoker::study
