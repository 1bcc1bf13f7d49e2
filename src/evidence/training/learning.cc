#include "evidence/training/learning.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "device/figure_kinds.h"
#include "evidence/error_statistics.h"
#include "evidence/training/error_classes.h"
#include "timing/learned/learned_pace.h"

namespace stoker {
namespace {

/// A factor nearer to 1 than this changes no forecast.
constexpr double kNothing = 0.005;
/// The worst held-out error may grow by this without being called worse: the repetitions' noise.
constexpr double kNoise = 0.01;

using Runs = std::vector<const ComparedRun*>;

/// How much longer a run's step becomes with these factors.
double factor_for(const ComparedRun& run, const ClassFactors& factors) {
  const ClassTimes& c = run.forecast->classes;
  double before = 0, after = 0;
  for (std::size_t p = 0; p < kStepPhases; ++p) {
    for (std::size_t k = 0; k < kKernelClasses; ++k) {
      before += c.by_phase[p][k];
      after += factors.mean[k] * c.by_phase[p][k];
    }
    before += c.host[p];
    after += factors.mean[kHostClass] * c.host[p];
  }
  return before > 0 ? after / before : 1;
}

/// One factor for everything: the middle of the runs' logarithms, drawn to 1 by one more run that
/// says so.
ClassFactors one_factor(const Runs& runs) {
  double sum = 0;
  for (const ComparedRun* run : runs)
    sum += std::log(run->figure("step")->fact / run->figure("step")->forecast.value);
  ClassFactors factors;
  factors.mean.fill(std::exp(sum / static_cast<double>(runs.size() + 1)));
  return factors;
}

/// Factors beyond what a figure can be are of a broken measurement.
ClassFactors bounded(ClassFactors factors) {
  for (double& mean : factors.mean) mean = std::clamp(mean, 0.05, 20.0);
  return factors;
}

using Learner = std::function<ClassFactors(const Runs&)>;

double error_with(const ComparedRun& run, double factor) {
  const ComparedFigure& step = *run.figure("step");
  return std::fabs(step.forecast.value * factor / step.fact - 1);
}

HeldOutErrors summary(const std::vector<double>& errors) {
  return {median_of(errors), *std::ranges::max_element(errors)};
}

/// Settled runs with the same threads, each of which the others can teach.
std::map<int, Runs> groups_of(const std::vector<ComparedRun>& runs, bool cpu) {
  std::map<int, Runs> groups;
  for (const ComparedRun& run : runs) {
    if (run.counts() && run.fact->settled && run.figure("step") != nullptr)
      groups[cpu ? run.run.threads : 0].push_back(&run);
  }
  return groups;
}

/// Before and after, over all groups; nothing when no run can be held out.
void hold_out(const std::map<int, Runs>& groups, const Learner& learner, Learning& learning) {
  std::vector<double> before, after;
  for (const auto& [threads, group] : groups) {
    for (const ComparedRun* held : group) {
      Runs others;
      for (const ComparedRun* run : group) {
        if (learning.by_model ? run->run.name != held->run.name : run != held)
          others.push_back(run);
      }
      if (others.empty()) continue;
      before.push_back(error_with(*held, 1));
      after.push_back(error_with(*held, factor_for(*held, learner(others))));
    }
  }
  learning.held_out = before.size();
  if (before.empty()) return;
  learning.before = summary(before);
  learning.after = summary(after);
}

void fold(int threads, const ClassFactors& factors, const Calibration& known, bool cpu,
          const std::set<std::size_t>& seen, std::vector<MeasuredFigure>& figures) {
  const LearnedPace earlier = learned_pace(&known, threads);
  const auto add = [&](const std::string& name, double factor, double deviation, double before) {
    if (figure_kind(name) == nullptr) return;
    if (before == 1 && std::fabs(factor - 1) < kNothing) return;
    const double value = std::clamp(factor * before, 0.05, 20.0);
    figures.push_back({.name = name, .threads = threads, .value = value, .spread = deviation});
  };
  if (!cpu) return add("step_pace", factors.mean[0], 0, earlier.step);
  for (const std::size_t k : seen) {
    const double before = k == kHostClass ? earlier.host : earlier.classes[k];
    add(error_class_name(k) + "_pace", factors.mean[k], factors.deviation[k], before);
  }
}

std::set<std::size_t> classes_of(const Runs& runs) {
  std::set<std::size_t> seen;
  for (const ComparedRun* run : runs) {
    for (std::size_t p = 0; p < kStepPhases; ++p) {
      for (std::size_t k = 0; k < kKernelClasses; ++k) {
        if (run->forecast->classes.by_phase[p][k] > 0) seen.insert(k);
      }
      if (run->forecast->classes.host[p] > 0) seen.insert(kHostClass);
    }
  }
  return seen;
}

}  // namespace

Learning learn_from(const std::vector<ComparedRun>& runs, const Calibration& known, bool cpu) {
  Learning learning;
  const Learner learner = [&](const Runs& taught) {
    return bounded(cpu ? class_factors(taught) : one_factor(taught));
  };
  const auto groups = groups_of(runs, cpu);
  std::set<std::string> models;
  for (const auto& [threads, group] : groups) {
    for (const ComparedRun* run : group) models.insert(run->run.name);
  }
  learning.by_model = models.size() > 1;
  hold_out(groups, learner, learning);
  if (learning.held_out == 0) {
    learning.why_not =
        "one run cannot show whether a correction helps others; measure two batches or more";
    return learning;
  }
  if (!(learning.after.median < learning.before.median)) {
    learning.why_not = "what was left out of the learning would be forecast no better with it";
    return learning;
  }
  if (learning.after.worst > learning.before.worst + kNoise) {
    learning.why_not = "the worst of what was left out of the learning would be forecast worse";
    return learning;
  }
  for (const auto& [threads, group] : groups)
    fold(threads, learner(group), known, cpu, classes_of(group), learning.figures);
  learning.helps = !learning.figures.empty();
  if (!learning.helps) learning.why_not = "the forecasts need no correction";
  return learning;
}

}  // namespace stoker
