// Real PyTorch DataLoaders, timed by `stoker loader-runs`, beside forecasts from one calibration of
// each scenario. The same comparison as `stoker validate --input`.

#include <algorithm>
#include <filesystem>
#include <string>

#include "accuracy/common/bench.h"
#include "accuracy/input/measures.h"
#include "base/files.h"
#include "evidence/input/validation.h"

namespace stoker::accuracy {
namespace {

constexpr double kPercent = 100;

/// Pairs of one quantity in milliseconds or bytes, grouped by scenario.
template <class Truth, class Predicted>
std::vector<Pair> pairs_of(const InputValidation& v, bool bands, Truth&& truth,
                           Predicted&& predicted) {
  std::vector<Pair> pairs;
  for (const ComparedPoint& p : v.points) {
    const double measured = truth(p);
    if (!(measured > 0)) continue;
    Pair pair{p.scenario, p.label(), measured, predicted(p), std::nullopt};
    if (bands) pair.band = p.band;
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

Measure measure_of(std::string name, std::string what, std::vector<Pair> pairs,
                   const ErrorSummary& summary) {
  Measure m;
  m.name = std::move(name);
  m.what = std::move(what);
  m.score = score(pairs);
  m.pairs = std::move(pairs);
  m.shares = {{"worst", kPercent * summary.worst}};
  return m;
}

std::vector<Measure> measures_of(const std::string& name, const InputValidation& v,
                                 const LoaderRuns& runs) {
  Measure epoch = measure_of(name + "/epoch",
                             "epoch of real DataLoaders in ms, " + std::to_string(v.points.size()) +
                                 " points of " + std::to_string(v.by_scenario.size()) +
                                 " data sets, " + runs.date + ", " + runs.cpu_model,
                             pairs_of(
                                 v, true, [](const auto& p) { return milliseconds(p.epoch); },
                                 [](const auto& p) { return milliseconds(p.forecast_epoch()); }),
                             v.epoch);
  for (const auto& [scenario, summary] : v.by_scenario) {
    epoch.shares.emplace_back(scenario + ", mean", kPercent * summary.mean);
    epoch.shares.emplace_back(scenario + ", worst", kPercent * summary.worst);
  }
  for (const RecommendationCheck& c : v.recommendations)
    epoch.shares.emplace_back("lost by the recommended workers of " + c.scenario,
                              kPercent * c.loss);
  for (const DroppedPoint& d : v.dropped) epoch.unserved.push_back({d.label, d.why});
  for (const std::string& failure : v.failures) epoch.notes.push_back("missed: " + failure);
  for (const LoaderRuns::Skipped& s : runs.skipped)
    epoch.notes.push_back("skipped " + s.name + ": " + s.why);
  Measure first =
      measure_of(name + "/first-batch", "from iter() to the first batch in ms",
                 pairs_of(
                     v, false, [](const auto& p) { return milliseconds(p.first_batch); },
                     [](const auto& p) { return milliseconds(p.forecast_first_batch()); }),
                 v.first_batch);
  Measure memory = measure_of(
      name + "/shared-memory", "most of /dev/shm in bytes where the window of batches fills",
      pairs_of(
          v, false,
          [](const auto& p) {
            return p.window_fills ? static_cast<double>(p.shared_memory.count()) : 0;
          },
          [](const auto& p) { return static_cast<double>(p.forecast.shared_memory_used.count()); }),
      v.shared_memory);
  return {std::move(epoch), std::move(first), std::move(memory)};
}

Measure without_rows(std::string name, const Error& error) {
  Measure m;
  m.name = std::move(name);
  m.what = "no rows";
  m.notes = {error.text()};
  return m;
}

}  // namespace

std::vector<Measure> run_input_loaders(Bench& bench, const Table& /*table*/) {
  std::vector<Measure> all;
  const auto ships = data_folder();
  if (!ships) return {without_rows("input/loaders", ships.error())};
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(*ships / "measured/input", error)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const auto& path : files) {
    const std::string name = "input/loaders/" + path.stem().string();
    const auto runs = read_loader_runs(path);
    const auto validation = runs ? validate_input(*runs, bench.knowledge.loader)
                                 : Result<InputValidation>(tl::unexpected(runs.error()));
    if (!validation) {
      all.push_back(without_rows(name, validation.error()));
      continue;
    }
    for (Measure& m : measures_of(name, *validation, *runs)) all.push_back(std::move(m));
  }
  return all;
}

}  // namespace stoker::accuracy
