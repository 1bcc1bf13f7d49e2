#include "evidence/training/training_validation.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <tuple>

#include "base/text.h"
#include "evidence/error_statistics.h"
#include "evidence/training/error_classes.h"

namespace stoker {
namespace {

/// Repetitions of an idle machine differ by this at least, whatever two of them say.
constexpr double kLeastNoiseOfPair = 0.02;

double throughput_of(const MeasuredRun& run, Nanos step) {
  return static_cast<double>(run.batch) / seconds(step);
}

void add_time(const Forecast& f, const TrainingFact& fact, ComparedRun& compared) {
  const auto add = [&](const char* name, const Figure& figure, std::optional<Nanos> measured,
                       bool judged) {
    if (measured && measured->count() > 0 && figure.value > 0)
      compared.figures.push_back({name, "ms", figure, milliseconds(*measured), judged});
  };
  add("step", f.step_ms, fact.step, true);
  add("forward", f.forward_ms, fact.phases.forward, false);
  add("backward", f.backward_ms, fact.phases.backward, false);
  add("optimizer", f.optimizer_ms, fact.phases.optimizer, false);
  const double batch = static_cast<double>(compared.run.batch);
  const auto rate = [&](double ms) { return ms > 0 ? 1e3 * batch / ms : 0; };
  compared.figures.push_back(
      {"throughput",
       "samples/s",
       {rate(f.step_ms.value), rate(f.step_ms.high), rate(f.step_ms.low), f.step_ms.basis},
       throughput_of(compared.run, fact.step),
       false});
}

void add_memory(const Forecast& f, const TrainingFact& fact, ComparedRun& compared) {
  const auto add = [&](const char* name, const Figure& figure, std::optional<Bytes> measured,
                       bool judged) {
    if (measured && measured->count() > 0 && figure.value > 0)
      compared.figures.push_back(
          {name, "bytes", figure, static_cast<double>(measured->count()), judged});
  };
  const bool gpu = fact.peaks.allocated || fact.peaks.device;
  if (!gpu) return add("peak memory", f.memory.device_peak, fact.peaks.resident, true);
  add("peak memory", f.memory.device_peak, fact.peaks.device, true);
  add("reserved", f.memory.reserved_peak, fact.peaks.reserved, false);
  add("allocated", f.memory.allocated_peak, fact.peaks.allocated, !fact.peaks.device);
}

FigureSummary summary_of(const std::string& name, const std::vector<ComparedRun>& runs) {
  ErrorStatistics errors;
  for (const ComparedRun& run : runs) {
    const ComparedFigure* figure = run.counts() ? run.figure(name) : nullptr;
    if (figure != nullptr) errors.add(figure->error(), run.run.label(), figure->within());
  }
  return {.name = name,
          .count = errors.count(),
          .median = errors.median(),
          .worst = errors.worst(),
          .bias = errors.bias(),
          .coverage = errors.coverage(),
          .worst_label = errors.worst_label()};
}

using Setting = std::tuple<std::string, int, std::string, std::string>;

Setting setting_of(const MeasuredRun& run) {
  return {run.name, run.threads, run.precision, run.optimizer};
}

BatchRanking ranking_of(const std::vector<const ComparedRun*>& group) {
  BatchRanking ranking;
  const MeasuredRun& first = group.front()->run;
  ranking.label = first.name;
  if (first.threads > 0)
    ranking.label +=
        ", " + std::to_string(first.threads) + (first.threads == 1 ? " thread" : " threads");
  ranking.label += ", " + first.precision;
  const auto fact = [](const ComparedRun* r) { return r->figure("throughput")->fact; };
  const auto forecast = [](const ComparedRun* r) {
    return r->figure("throughput")->forecast.value;
  };
  for (std::size_t i = 0; i < group.size(); ++i) {
    for (std::size_t j = i + 1; j < group.size(); ++j) {
      const double noise =
          std::max(kLeastNoiseOfPair, group[i]->fact->spread + group[j]->fact->spread);
      const double measured = std::log(fact(group[i]) / fact(group[j]));
      if (std::fabs(measured) <= noise) continue;
      ++ranking.pairs;
      const double predicted = std::log(forecast(group[i]) / forecast(group[j]));
      ranking.right += (predicted > 0) == (measured > 0) ? 1 : 0;
    }
  }
  const auto* best = *std::ranges::max_element(group, {}, fact);
  const auto* chosen = *std::ranges::max_element(group, {}, forecast);
  ranking.measured_best = best->run.batch;
  ranking.forecast_best = chosen->run.batch;
  ranking.lost = 1 - fact(chosen) / fact(best);
  return ranking;
}

std::vector<BatchRanking> rankings_of(const std::vector<ComparedRun>& runs) {
  std::map<Setting, std::vector<const ComparedRun*>> groups;
  for (const ComparedRun& run : runs) {
    if (run.counts() && run.figure("throughput") != nullptr)
      groups[setting_of(run.run)].push_back(&run);
  }
  std::vector<BatchRanking> rankings;
  for (const auto& [setting, group] : groups) {
    if (group.size() > 1) rankings.push_back(ranking_of(group));
  }
  return rankings;
}

std::string in_unit(double value, const std::string& unit) {
  if (unit == "bytes") return human_bytes(Bytes(static_cast<std::int64_t>(value)));
  char text[48];
  std::snprintf(text, sizeof text, "%.4g %s", value, unit.c_str());
  return text;
}

/// "step 547 ms, outside of 555 ms to 670 ms"
std::string outside_words(const ComparedFigure& f) {
  return f.name + " " + in_unit(f.fact, f.unit) + ", outside of " +
         in_unit(f.forecast.low, f.unit) + " to " + in_unit(f.forecast.high, f.unit);
}

/// Whether a run came to the end that was forecast: out of memory or not.
void judge_end(const ComparedRun& run, std::vector<std::string>& failures) {
  if (!run.forecast) return;
  const bool fits = run.forecast->forecast.memory.fits;
  if (run.run.status == RunStatus::kOutOfMemory && fits)
    failures.push_back(run.run.label() + ": ran out of memory, the forecast said that it fits");
  if (run.run.status == RunStatus::kOk && run.fact && !fits)
    failures.push_back(run.run.label() + ": it ran, the forecast said that it does not fit");
}

}  // namespace

const ComparedFigure* ComparedRun::figure(std::string_view name) const {
  const auto found = std::ranges::find(figures, name, &ComparedFigure::name);
  return found == figures.end() ? nullptr : &*found;
}

ClassTimes class_times(const Program& program, const StepTime& time) {
  ClassTimes classes;
  std::array<double, kStepPhases> operators{};
  program.for_each_launch([&](const Kernel& kernel, std::uint32_t k, std::int64_t times) {
    if (k >= time.kernel_times.size()) return;
    const double ms = milliseconds(time.kernel_times[k]) * static_cast<double>(times);
    const auto phase = static_cast<std::size_t>(kernel.phase);
    classes.by_phase[phase][std::min(static_cast<std::size_t>(kernel.kernel_class),
                                     kKernelClasses - 1)] += ms;
    operators[phase] += ms;
  });
  for (std::size_t p = 0; p < kStepPhases; ++p)
    classes.host[p] = std::max(0.0, milliseconds(time.phase_elapsed[p]) - operators[p]);
  return classes;
}

TrainingValidation judge(std::vector<ComparedRun> runs) {
  TrainingValidation validation;
  for (ComparedRun& run : runs) {
    run.figures.clear();
    if (run.forecast && run.fact && run.run.status == RunStatus::kOk) {
      add_time(run.forecast->forecast, *run.fact, run);
      add_memory(run.forecast->forecast, *run.fact, run);
    }
    validation.not_judged += run.fact && !run.fact->settled ? 1 : 0;
    judge_end(run, validation.failures);
    if (!run.counts() || !run.fact->settled) continue;
    for (const ComparedFigure& figure : run.figures) {
      validation.judged += figure.judged ? 1 : 0;
      if (figure.judged && !figure.within())
        validation.failures.push_back(run.run.label() + ": " + outside_words(figure));
    }
  }
  for (const char* name : {"step", "forward", "backward", "optimizer", "throughput", "peak memory",
                           "reserved", "allocated"}) {
    FigureSummary summary = summary_of(name, runs);
    if (summary.count > 0) validation.summaries.push_back(std::move(summary));
  }
  validation.rankings = rankings_of(runs);
  validation.classes = error_classes(runs);
  validation.runs = std::move(runs);
  return validation;
}

Result<TrainingValidation> validate_training(const std::vector<MeasuredRun>& runs,
                                             const Forecaster& forecaster) {
  std::vector<ComparedRun> compared;
  std::optional<Error> first;
  bool any = false;
  for (const MeasuredRun& run : runs) {
    ComparedRun one{.run = run, .fact = fact_of(run)};
    if (run.status != RunStatus::kFailed) {
      auto forecast = forecaster(run);
      if (forecast) {
        one.forecast = std::move(*forecast);
        any = true;
      } else {
        one.not_forecast = forecast.error().text();
        if (!first) first = forecast.error();
      }
    }
    compared.push_back(std::move(one));
  }
  if (!any && first) return tl::unexpected(std::move(*first));
  return judge(std::move(compared));
}

}  // namespace stoker
