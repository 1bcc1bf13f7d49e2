#include "cli/answers/compare.h"

#include <algorithm>

#include "base/setting.h"
#include "cli/answers/add_once.h"
#include "cli/outside/output.h"
#include "cli/outside/scenario_tools.h"
#include "cli/request/global_batch.h"
#include "cli/request/report_context.h"
#include "cli/request/run_request.h"
#include "forecast/memory/verdicts.h"
#include "plan/comparison.h"
#include "report/model/page_report.h"
#include "scenario/resolve/resolve.h"

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

Result<Compared> compared(const RunOptions& o, const std::optional<BatchRequest>& batch,
                          const NamedGpu& gpu) {
  RunRequest request = TRY(exact_request(o, gpu));
  request.batch = batch;
  request.data.reprobe = o.reprobe && gpu.position == 0;  // the folder is the same for all
  std::string chosen;
  if (o.global_batch)
    chosen = TRY(share_out(*o.global_batch, request, scenario_tools(o.script_run)));
  auto resolved = TRY(resolve_exactly(request, scenario_tools(o.script_run)));
  if (!chosen.empty()) resolved.facts.assumed.insert(resolved.facts.assumed.begin(), chosen);
  Contender c;
  auto f = TRY(forecast(resolved.base, resolved.knowledge));
  const auto limits = TRY(batch_limits_of(resolved));
  const auto coefficients = TRY(resolved.knowledge.timing.for_device(resolved.base.machine.device));
  c.forecast = std::move(f);
  c.limits = limits;
  c.rows = rows_words(coefficients.level);
  if (limits.value == 0)
    c.forecast.memory.out_of_memory = with_flags(gpu_shortage(resolved.base, limits));
  return Compared{std::move(resolved), std::move(c)};
}

/// Each phrase once; what differs by GPU carries its name.
ReportContext joined_context(bool largest_batch, const std::vector<Compared>& all) {
  const Resolved& first = all.front().resolved;
  Facts joined = first.facts;
  joined.rests_on.clear();
  joined.assumed.clear();
  joined.excluded.clear();
  for (const Compared& c : all) {
    const Forecast& f = c.contender.forecast;
    add_once(joined.rests_on, f.gpu_name + ": " + f.time.basis);
    for (const std::string& phrase : c.resolved.facts.assumed) add_once(joined.assumed, phrase);
    for (const std::string& phrase : c.resolved.facts.excluded) add_once(joined.excluded, phrase);
  }
  add_once(joined.rests_on, "memory: " + all.front().contender.forecast.memory.device_peak.basis);
  for (const Compared& c : all) {
    if (c.contender.forecast.energy)
      add_once(joined.rests_on, "energy: " + c.contender.forecast.energy->watts.basis);
  }
  if (largest_batch) {
    joined.assumed.push_back("the largest safe batch of each GPU (" + mark(Setting::kBatch) + ")");
  }
  ReportContext context = context_of(joined);
  context.model_line = first.line(first.base.job).text_without_gpu();
  context.settings = unusual_settings(first.base.job);
  return context;
}

}  // namespace

Result<int> compare(const RunOptions& o, const std::optional<BatchRequest>& batch,
                    const std::string& objective_name) {
  const auto objective =
      parse_objective(objective_name.empty() ? std::string_view("throughput") : objective_name);
  if (!objective) return tl::unexpected(objective.error());
  const std::vector<NamedGpu> gpus = named_gpus(o);
  TRY(check_different(gpus));
  std::vector<Compared> all;
  for (const NamedGpu& gpu : gpus) all.push_back(TRY(compared(o, batch, gpu)));
  std::vector<const Forecast*> forecasts;
  for (const Compared& c : all) forecasts.push_back(&c.contender.forecast);
  TRY(check_objective(*objective, forecasts));
  const ReportContext context =
      joined_context(batch && std::holds_alternative<LargestSafeBatch>(*batch), all);
  std::vector<Contender> contenders;
  for (Compared& c : all) contenders.push_back(std::move(c.contender));
  const std::string text = o.json ? contenders_json(contenders, *objective, context)
                                  : contenders_text(contenders, *objective, context);
  if (!o.html.empty()) {
    std::vector<ComparedGpu> shown;
    for (const Contender& c : contenders) shown.push_back({&c.forecast, nullptr});
    TRY(write_page(o.html, comparison_page(shown, *objective, context,
                                           contenders_text(contenders, *objective, context))));
  }
  print(text);
  const bool any = std::any_of(contenders.begin(), contenders.end(), [&](const Contender& c) {
    const MemoryForecast& m = c.forecast.memory;
    return is_good(m.fits, m.verdict, o);
  });
  return any ? 0 : 1;
}

}  // namespace stoker::cli
