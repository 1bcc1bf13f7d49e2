#pragma once

#include <optional>
#include <string>
#include <vector>

#include "study/findings/effects.h"
#include "study/findings/scaling.h"

namespace stoker::study {

/// The best setting by one figure.
struct Best {
  std::string figure;
  bool most = true;
  Setting setting;               ///< its figures are the one
  std::optional<double> next{};  ///< of the runner-up
};

/// A setting that no other beats in all figures at once.
struct ParetoPoint {
  Setting setting;
};

/// What a study says, as far as it has come.
struct Findings {
  std::vector<Best> best;
  std::vector<std::string> pareto_figures;
  std::vector<ParetoPoint> pareto;  ///< by the first figure, best first
  struct OfMetric {
    std::string metric;
    std::vector<AxisEffect> effects;
    std::vector<Interaction> interactions;
    std::optional<Noise> noise;
  };
  std::vector<OfMetric> metrics;
  std::vector<AxisScaling> scalings;   ///< of samples_per_s
  std::vector<std::string> undecided;  ///< metrics of which it is not known whether more is better
};

/// Covers the metrics of the view and the time of a trial; with a price also its cost (needs GPUs).
/// `gpus` is how many GPUs each trial has, by id.
[[nodiscard]] Findings findings(const StudyView& view);

}  // namespace stoker::study
