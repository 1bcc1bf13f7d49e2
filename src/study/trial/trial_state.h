#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace stoker::study {

enum class TrialState : std::uint8_t {
  kWaiting,    ///< not handed to an executor yet
  kSubmitted,  ///< handed over; whether it has started is not known
  kRunning,
  kPaused,
  kDone,
  kFailed,
  kTimedOut,
  kOutOfMemory,
  kCancelled,
  kNotRun  ///< left out, for a reason
};

inline constexpr TrialState kAllStates[] = {
    TrialState::kWaiting,   TrialState::kSubmitted, TrialState::kRunning,  TrialState::kPaused,
    TrialState::kDone,      TrialState::kFailed,    TrialState::kTimedOut, TrialState::kOutOfMemory,
    TrialState::kCancelled, TrialState::kNotRun};

/// "out_of_memory"
[[nodiscard]] std::string_view name_of(TrialState state);
[[nodiscard]] std::optional<TrialState> state_named(std::string_view name);

/// Whether a trial of this state never changes again.
[[nodiscard]] constexpr bool is_final(TrialState state) { return state >= TrialState::kDone; }

}  // namespace stoker::study
