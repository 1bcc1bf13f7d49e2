#include "cli/compare.h"

#include <algorithm>
#include <cstdio>

#include "base/text.h"
#include "cli/exact_settings.h"
#include "cli/report_context.h"
#include "forecast/memory/verdicts.h"
#include "plan/comparison.h"

namespace stoker::cli {
namespace {

struct Compared {
  Resolved resolved;
  Contender contender;
};

/// Which measured rows the coefficients of a GPU were fitted on.
std::string rows_words(CoefficientLevel level) {
  switch (level) {
    case CoefficientLevel::kCalibrated:
      return "this very GPU";
    case CoefficientLevel::kGpu:
      return "its own";
    case CoefficientLevel::kChip:
      return "of its chip";
    case CoefficientLevel::kArchitecture:
      return "of its kind";
    case CoefficientLevel::kBase:
      return "of other GPUs";
    case CoefficientLevel::kPrior:
      return "none: data sheet";
  }
  return "";
}

Result<Compared> compared(const RunOptions& o, const std::string& gpu, std::size_t position) {
  RunOptions once = o;
  once.reprobe = o.reprobe && position == 0;  // the folder is the same for all
  auto resolved = TRY(resolve_exactly(once, gpu, position));
  Contender c;
  auto f = TRY(forecast(resolved.base, resolved.knowledge));
  const auto limits = TRY(batch_limits_of(resolved));
  const auto coefficients = TRY(resolved.knowledge.timing.for_gpu(resolved.base.machine.gpu));
  c.forecast = std::move(f);
  c.limits = limits;
  c.rows = rows_words(coefficients.level);
  if (limits.value == 0) c.forecast.memory.out_of_memory = gpu_shortage(resolved.base, limits);
  return Compared{std::move(resolved), std::move(c)};
}

void add_once(std::vector<std::string>& list, const std::string& phrase) {
  if (std::find(list.begin(), list.end(), phrase) == list.end()) list.push_back(phrase);
}

/// Each phrase once; what differs by GPU carries its name.
ReportContext joined_context(const RunOptions& o, std::vector<Compared>& all) {
  ReportContext joined = all.front().resolved.context;
  joined.rests_on.clear();
  joined.assumed.clear();
  joined.excluded.clear();
  for (const Compared& c : all) {
    const Forecast& f = c.contender.forecast;
    add_once(joined.rests_on, f.gpu_name + ": " + f.time.basis);
    for (const std::string& phrase : c.resolved.context.assumed) add_once(joined.assumed, phrase);
    for (const std::string& phrase : c.resolved.context.excluded) add_once(joined.excluded, phrase);
  }
  add_once(joined.rests_on, "memory: " + all.front().contender.forecast.memory.device_peak.basis);
  for (const Compared& c : all) {
    if (c.contender.forecast.energy)
      add_once(joined.rests_on, "energy: " + c.contender.forecast.energy->watts.basis);
  }
  if (o.largest_batch) joined.assumed.emplace_back("the largest safe batch of each GPU (--batch)");
  const std::string line = model_line(all.front().resolved, all.front().resolved.base.job);
  const std::string gpu = " | " + all.front().resolved.base.machine.gpu.name;
  joined.model_line = line;
  if (const auto at = line.find(gpu); at != std::string::npos)
    joined.model_line.erase(at, gpu.size());
  joined.settings = unusual_settings(all.front().resolved.base.job);
  return joined;
}

}  // namespace

Result<int> compare(const RunOptions& o, const std::string& objective_name) {
  const auto objective =
      parse_objective(objective_name.empty() ? std::string_view("throughput") : objective_name);
  if (!objective) return tl::unexpected(objective.error());
  std::vector<Compared> all;
  const auto gpus = split(o.gpu, ',');
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    auto one = TRY(compared(o, gpus[i], i));
    all.push_back(std::move(one));
  }
  std::vector<const Forecast*> forecasts;
  for (const Compared& c : all) forecasts.push_back(&c.contender.forecast);
  TRY(check_objective(*objective, forecasts));
  const ReportContext context = joined_context(o, all);
  std::vector<Contender> contenders;
  for (Compared& c : all) contenders.push_back(std::move(c.contender));
  const std::string text = o.json ? contenders_json(contenders, *objective, context)
                                  : contenders_text(contenders, *objective, context);
  std::fputs(text.c_str(), stdout);
  const bool any = std::any_of(contenders.begin(), contenders.end(),
                               [](const Contender& c) { return c.forecast.memory.fits; });
  return any ? 0 : 1;
}

}  // namespace stoker::cli
