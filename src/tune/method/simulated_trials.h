#pragma once

#include <functional>
#include <vector>

#include "tune/method/method.h"

namespace stoker::tune {

/// For tests: runs a search on curves that a function makes, one trial after the other, as the
/// tuner would, and counts the steps that were trained.
struct SimulatedTrials {
  /// The whole curve of a request, from step 0 on: what the command would report if nothing ended
  /// it.
  std::function<Outcome(const Request&)> run;
  std::vector<Job> jobs{};
  double steps = 0;

  Walk search(const Method& method, std::size_t width = 1, std::size_t most = 10'000) {
    std::size_t seen = 0;
    for (;;) {
      const std::size_t k = jobs.size();
      seen = std::max(seen, k + 1 > width ? k + 1 - width : 0);
      Walk walk = method.walk({jobs, seen});
      while (walk.next == Walk::Next::kWait && seen < k) walk = method.walk({jobs, ++seen});
      if (walk.next != Walk::Next::kRun || k >= most) return method.walk({jobs, k});
      Outcome outcome = run(walk.request);
      outcome.trial = static_cast<std::int64_t>(k) + 1;
      const auto stop = walk.request.stage == "batch"
                            ? std::nullopt
                            : first_stop(method, {jobs, seen}, walk.request, outcome.curve, 0);
      if (stop) {
        outcome.curve.points.resize(stop->points);
        outcome.end = stop->end;
        outcome.reason = stop->reason;
      }
      double before = 0;
      for (const Job& job : jobs) {
        if (walk.request.config > 0 && job.request.config == walk.request.config && job.outcome)
          before = job.outcome->curve.last_step();
      }
      steps += outcome.curve.last_step() - before;
      jobs.push_back({walk.request, std::move(outcome)});
    }
  }
};

/// Points at `every`, 2 `every`, ... `last` of a function of the step.
[[nodiscard]] inline Curve curve_of(const std::function<double(double)>& score, double every,
                                    double last) {
  Curve curve;
  for (double step = every; step <= last; step += every)
    curve.points.push_back({step, step, score(step)});
  return curve;
}

}  // namespace stoker::tune
