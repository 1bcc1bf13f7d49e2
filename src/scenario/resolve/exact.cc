#include <algorithm>

#include "base/setting.h"
#include "forecast/node_share.h"
#include "forecast/settings.h"
#include "scenario/request/fill_job.h"
#include "scenario/resolve/resolve.h"
#include "scenario/sources/script_model.h"
#include "timing/collective/collectives.h"

namespace stoker {
namespace {

/// When not even the smallest batch fits, that one is left: the answer is then a no, and names what
/// is missing.
Status set_largest_batch(Resolved& r) {
  Scenario& s = r.base;
  set_batch(s, std::max<std::int64_t>(1, s.step->dimensions[0].minimum));
  const BatchLimits limits = TRY(batch_limits_of(r));
  const std::int64_t safe = limits.low > 0 ? limits.low : limits.value;
  if (safe > 0) set_batch(s, safe);
  return {};
}

Status choose_precision(const RunRequest& request, Resolved& r) {
  const auto& variant = r.model.variants.front();
  if (!request.precisions.empty() && variant.precision != request.precisions.front()) {
    return fail(ErrorCode::kBadInput,
                request.model + " was captured in " + variant.step->precision +
                    "; it cannot serve " + std::string(name_of(request.precisions.front())),
                mark(Setting::kPrecision));
  }
  set_precision(r.base, *variant.step, variant.precision);
  return {};
}

/// Whether the probed loader's workers end with each epoch; one without workers says nothing of it.
bool ends_with_epochs(const Resolved& r) {
  return r.pipeline && r.pipeline->loader && r.pipeline->loader->workers > 0 &&
         !r.pipeline->loader->persistent;
}

void choose_loader(Resolved& r) {
  const RunRequest& request = r.request;
  Scenario& s = r.base;
  s.loader.workers = static_cast<int>(
      request.workers.value_or(workers_of_cores(s.machine.host.cores, s.machine.gpu_count)));
  if (request.prefetch) s.loader.prefetch = static_cast<int>(*request.prefetch);
  s.loader.persistent = request.persistent_workers.value_or(!ends_with_epochs(r));
  set_pinning(s, request.pin && s.machine.device.cpu() == nullptr);
}

/// What was taken of the workers' lives between epochs, unless it was said.
void add_persistence(const Resolved& r, Facts& facts) {
  if (r.request.persistent_workers || !r.base.sample.known || r.base.loader.workers < 1) return;
  const bool probed = r.pipeline && r.pipeline->loader && r.pipeline->loader->workers > 0;
  const std::string whose = probed ? ", as the probed loader's (" : " (";
  facts.assumed.push_back(r.base.loader.persistent
                              ? "workers live on between epochs" + whose +
                                    mark_off(Setting::kPersistentWorkers) + ")"
                              : "workers are started anew in each epoch" + whose +
                                    mark(Setting::kPersistentWorkers) + ")");
}

void add_facts(Resolved& r) {
  const RunRequest& request = r.request;
  const Scenario& s = r.base;
  Facts& facts = r.facts;
  if (!request.batch) {
    facts.assumed.push_back("batch " + std::to_string(s.job.batch) + " (" + mark(Setting::kBatch) +
                            ")");
  }
  if (!request.workers && s.sample.known) {
    facts.assumed.push_back(std::to_string(s.loader.workers) + " workers (" +
                            mark(Setting::kWorkers) + ")");
  }
  add_persistence(r, facts);
}

}  // namespace

Result<BatchLimits> batch_limits_of(const Resolved& r) {
  const Scenario& s = r.base;
  return forecast_batch_limits(*s.step, s.job, s.machine, s.allocator, r.knowledge, s.last_batch);
}

Status add_link(Resolved& r, int gpus) {
  const Scenario& s = r.base;
  if (gpus < 2) return {};
  const auto coefficients = TRY(r.knowledge.timing.for_device(s.machine.device));
  std::string words =
      link_assumption(s.machine, {gpus_per_node(gpus, s.job.nodes), std::max(1, s.job.nodes)},
                      coefficients.collective);
  if (!words.empty()) r.facts.assumed.push_back(std::move(words));
  return {};
}

Result<Resolved> resolve_exactly(const RunRequest& request, const ScenarioTools& tools) {
  RunRequest exact = request;
  if (exact.precisions.empty() && !is_script(exact.model) && !exact.capture.adapters.four_bit)
    exact.precisions = {Precision::kFp32};
  Resolved resolved = TRY(resolve(exact, tools));
  TRY(choose_precision(request, resolved));
  Scenario& s = resolved.base;
  s.job.gpus = static_cast<int>(request.gpus.value_or(1));
  s.machine.gpu_count = gpus_per_node(s.job.gpus, s.job.nodes);
  TRY(check_gpus_of(s));
  choose_loader(resolved);
  if (request.wants_largest_batch()) TRY(set_largest_batch(resolved));
  else set_batch(s, request.given_batch().value_or(s.step->dimensions[0].default_value));
  TRY(check_last_batch(s, s.job.batch));
  add_facts(resolved);
  TRY(add_link(resolved, s.job.gpus));
  return resolved;
}

}  // namespace stoker
