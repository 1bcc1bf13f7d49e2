#pragma once

#include <array>

#include "plan/knobs.h"

/// Internal to src/plan: how a change is valued.
namespace stoker::knobs {

/// Rates of one process, samples a second over an epoch: as expected, and with samples as costly
/// and as cheap as their band allows.
struct Value {
  double expected = 0, costly = 0, cheap = 0;
  LoaderForecast forecast;  ///< as expected
};

[[nodiscard]] Value value_with(const LoaderCase& loader, const StepOf& step);

/// Fills gain, rate, seconds, money and memory of `knob` from what is before and after.
void weigh(const KnobRequest& request, const Value& before, const Value& after, Knob& knob);

[[nodiscard]] inline Bytes memory_of(const LoaderForecast& f) {
  return f.shared_memory + f.pinned_memory + f.worker_memory;
}

}  // namespace stoker::knobs
