#include "plan/plan.h"

#include <algorithm>
#include <memory>
#include <span>

#include "base/setting.h"
#include "base/text.h"
#include "cli/answers/input_plan.h"
#include "cli/outside/output.h"
#include "cli/outside/scenario_tools.h"
#include "cli/request/report_context.h"
#include "cli/request/run_options.h"
#include "cli/request/run_request.h"
#include "cli/verbs/verbs.h"
#include "device/catalogue/instances.h"
#include "plan/comparison.h"
#include "plan/plan_picture.h"
#include "report/model/page_report.h"
#include "scenario/request/fill_job.h"
#include "scenario/resolve/resolve.h"
#include "system/host_limits.h"

namespace stoker::cli {
namespace {

/// People rent machines of up to four, mostly; said in the "assumed" line.
constexpr const char* kDefaultCounts = "1..4";

struct PlanArguments {
  RunOptions run;
  InputPlanOptions input;
  std::string objective;  ///< "": throughput
  std::optional<std::int64_t> max_global_batch;
  std::optional<double> budget, run_budget;
};

struct Planned {
  Resolved resolved;
  ReportContext context;
  Plan plan;
  PlanPicture picture;  ///< where a page is wanted
};

PlanRequest request_of(const PlanArguments& o, const Resolved& r, const std::vector<int>& counts,
                       Objective objective) {
  PlanRequest request;
  for (const auto& variant : r.model.variants)
    request.choices.push_back({variant.precision, variant.step.get()});
  request.base = r.base;
  request.gpu_counts = counts;
  request.objective = objective;
  request.sample_word = r.facts.sample_word;
  request.limits.max_global_batch = o.max_global_batch.value_or(0);
  request.limits.max_epoch_cost = o.budget.value_or(0);
  request.limits.max_run_cost = o.run_budget.value_or(0);
  request.batch = o.run.batch;
  if (o.run.workers) request.workers = static_cast<int>(*o.run.workers);
  if (o.run.prefetch) request.prefetch = static_cast<int>(*o.run.prefetch);
  if (!o.run.pins() || r.base.machine.device.cpu() != nullptr) request.pin = false;
  request.persistent = o.run.persistent_workers.value_or(true);
  if (r.probe) request.folder = &*r.probe;
  if (r.pipeline) request.pipeline = &*r.pipeline;
  const LoaderAsItIs now = loader_as_it_is(r.pipeline);
  request.loader_now = now.settings;
  request.loader_now.start_method = r.base.loader.start_method;
  request.loader_known = now.known;
  if (r.base.machine.host.is_this_machine) request.limits_here = this_host_limits();
  else request.limits_here.shared_memory = r.base.machine.host.shared_memory;
  request.thesis = wants_thesis(o.input);
  return request;
}

/// As many GPUs as the machine has; a catalogue's name says nothing of how many there are.
std::string default_counts(const Resolved& r) {
  if (r.gpus_of_machine > 1) return "1.." + std::to_string(r.gpus_of_machine);
  return names_an_instance(r.request.machine) ? "1" : kDefaultCounts;
}

/// The numbers of GPUs to consider: as typed, else those of the machine.
Result<std::vector<int>> counts_for(const std::string& typed, const Resolved& r) {
  if (r.base.machine.device.cpu() != nullptr) return std::vector<int>{1};
  auto counts = TRY(parse_counts(typed.empty() ? default_counts(r) : typed));
  if (r.base.job.parallel != Parallel::kDdp) {
    // Nothing is shared on one GPU: the count is left out, and it alone is refused as predict does.
    Scenario most_gpus = r.base;
    most_gpus.job.gpus = counts.back();
    most_gpus.job.precision = r.model.variants.front().precision;
    TRY(check_gpus_of(most_gpus));
    std::erase(counts, 1);
  }
  TRY(check_bucket_view(r.base.job, counts.back()));
  return counts;
}

void add_assumed(const PlanArguments& o, bool any_number, int most_gpus, Resolved& r) {
  std::vector<std::string>& assumed = r.facts.assumed;
  if (any_number && !r.facts.cpu) {
    assumed.push_back("up to " + std::to_string(most_gpus) +
                      (most_gpus == 1 ? " GPU (" : " GPUs (") + mark(Setting::kGpus) + ")");
  }
  constexpr int kGpusInOneComputer = 16;
  if (r.base.job.nodes == 1 && most_gpus > kGpusInOneComputer)
    assumed.push_back("all GPUs in one computer (" + mark(Setting::kNodes) + ")");
  if (!o.max_global_batch) {
    assumed.push_back("the global batch may grow (" + mark(Setting::kMaxGlobalBatch) + ")");
  }
}

Result<Planned> plan_for(const PlanArguments& o, const NamedGpu& gpu,
                         const std::vector<Precision>& precisions, Objective objective) {
  RunRequest asked = TRY(run_request(o.run, gpu));
  asked.precisions = precisions;
  if (gpu.count > 0) TRY(gpus_of(o.run, gpu));
  const std::string typed = gpu.count > 0 ? std::to_string(gpu.count) : o.run.gpus;
  if (!typed.empty()) asked.gpus = TRY(parse_counts(typed)).back();
  Resolved resolved = TRY(resolve(asked, scenario_tools(o.run.script_run)));
  const std::vector<int> counts = TRY(counts_for(typed, resolved));
  if (o.run.batch) TRY(check_last_batch(resolved.base, *o.run.batch));
  add_assumed(o, typed.empty(), counts.back(), resolved);
  TRY(add_link(resolved, counts.back()));
  const PlanRequest request = request_of(o, resolved, counts, objective);
  auto plan = TRY(make_plan(request, resolved.knowledge));
  PlanPicture picture;
  if (!o.run.html.empty()) {
    auto around = TRY(picture_of(request, resolved.knowledge, plan));
    picture = std::move(around);
  }
  ReportContext context = context_of(resolved, plan.best.forecast.job);
  context.rests_on.insert(context.rests_on.begin(), plan.best.forecast.time.basis);
  context.rests_on.push_back("memory: " + plan.best.forecast.memory.device_peak.basis);
  const auto& energy = plan.best.forecast.energy;
  if (energy && energy->epoch_kwh.value > 0)
    context.rests_on.push_back("energy: " + energy->watts.basis);
  return Planned{std::move(resolved), std::move(context), std::move(plan), std::move(picture)};
}

/// What several GPUs' plans rest on and assume, each phrase once; what differs by GPU carries its
/// name.
ReportContext joined_context(const std::vector<Planned>& planned) {
  ReportContext joined = planned.front().context;
  const auto add = [](std::vector<std::string>& list, const std::string& phrase) {
    if (std::find(list.begin(), list.end(), phrase) == list.end()) list.push_back(phrase);
  };
  joined.rests_on.clear();
  for (const Planned& p : planned) {
    const Forecast& f = p.plan.best.forecast;
    add(joined.rests_on, f.gpu_name + ": " + f.time.basis);
    for (const std::string& phrase : p.context.assumed) add(joined.assumed, phrase);
  }
  add(joined.rests_on, "memory: " + planned.front().plan.best.forecast.memory.device_peak.basis);
  for (const Planned& p : planned) {
    const Forecast& f = p.plan.best.forecast;
    if (f.energy) add(joined.rests_on, "energy: " + f.energy->watts.basis);
  }
  return joined;
}

std::string in_one_line(const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& sentence : sentences) text += (text.empty() ? "" : "; ") + sentence;
  return text;
}

bool runs(const Planned& p, const PlanArguments& o) {
  const MemoryForecast& m = p.plan.best.forecast.memory;
  return is_good(m.fits, m.verdict, o.run);
}

Result<int> run_plan(const PlanArguments& o, std::span<const Binding> bindings) {
  if (o.run.model.empty()) return answer_input_plan(o.run, o.input, bindings);
  if (o.run.gpu.empty())
    return fail(ErrorCode::kUsage,
                "--gpu is required: a100-40gb, several as a,b (`stoker gpus` lists all)");
  TRY(refuse_given("plan", bindings, {"step-ms", "blocking", "cores"},
                   "is of a plan of the input alone; leave it out, or leave out the MODEL "
                   "(cores: --host cores=16)"));
  const auto objective = TRY(parse_objective(o.objective.empty() ? "throughput" : o.objective));
  std::vector<Precision> precisions;
  if (!o.run.precision.empty()) {
    for (const std::string& name : split(o.run.precision, ',')) {
      const auto precision = TRY(parse_precision(name));
      precisions.push_back(precision);
    }
  }
  const std::vector<NamedGpu> gpus = named_gpus(o.run);
  TRY(check_different(gpus));
  std::vector<Planned> planned;
  std::vector<std::string> left_out;
  for (const NamedGpu& gpu : gpus) {
    auto one = plan_for(o, gpu, precisions, objective);
    if (one) {
      planned.push_back(std::move(*one));
    } else if (one.error().code == ErrorCode::kAnswerIsNo && gpus.size() > 1) {
      left_out.push_back(gpu.name + ": " +
                         with_flags(one.error().message));  // the others may still serve
    } else {
      return tl::unexpected(one.error());
    }
  }
  if (planned.empty()) return fail(ErrorCode::kAnswerIsNo, in_one_line(left_out));
  if (gpus.size() == 1) {
    const Planned& p = planned.front();
    const std::string text =
        o.run.json ? plan_json(p.plan, p.context) : plan_text(p.plan, p.context);
    if (!o.run.html.empty()) TRY(write_page(o.run.html, plan_page(p.plan, p.picture, p.context)));
    print(text);
    return runs(p, o) ? 0 : 1;
  }
  std::vector<std::pair<std::string, Plan>> plans;
  for (const Planned& p : planned) plans.emplace_back(p.plan.best.forecast.gpu_name, p.plan);
  std::vector<const Forecast*> forecasts;
  for (const auto& [name, plan] : plans) forecasts.push_back(&plan.best.forecast);
  TRY(check_objective(objective, forecasts));
  ReportContext context = joined_context(planned);
  for (const std::string& reason : left_out) {
    context.data.add("gpu_left_out", Severity::kWarning, reason);
  }
  const std::string text = o.run.json ? comparison_json(plans, objective, context)
                                      : comparison_text(plans, objective, context);
  if (!o.run.html.empty()) {
    std::vector<ComparedGpu> compared;
    for (const Planned& p : planned) compared.push_back({&p.plan.best.forecast, &p.picture});
    TRY(write_page(o.run.html, comparison_page(compared, objective, context,
                                               comparison_text(plans, objective, context))));
  }
  print(text);
  const bool any =
      std::any_of(planned.begin(), planned.end(), [&](const Planned& p) { return runs(p, o); });
  return any ? 0 : 1;
}

}  // namespace

Command plan_command() {
  auto o = std::make_shared<PlanArguments>();
  Command command{
      "plan",
      "the best settings for a model, a data set and a machine; what limits them, what comes next",
      "Example: stoker plan resnet50 --gpu v100-16gb --data ./images\n"
      "         stoker plan bert_base --gpu a100-40gb,h100 --gpus 1..8 --objective cost --price "
      "2.5 --samples 100000\n"
      "         stoker plan --step-ms 50 --batch 64 --data ./images   (no model: the input alone)\n"
      "         stoker plan --from run.rec         (as a watched run was, or with a MODEL)\n"
      "Exit code 1: nothing satisfies the limits.",
      joined({run_bindings(o->run, &o->run.batch),
              {{"objective", &o->objective},
               {"max-global-batch", &o->max_global_batch},
               {"budget", &o->budget},
               {"run-budget", &o->run_budget}},
              input_plan_bindings(o->input)}),
      {}};
  command.rest = &o->run.script_arguments;
  command.rest_words = "ARGUMENTS";
  command.run = [o, bindings = command.bindings] { return run_plan(*o, bindings); };
  return command;
}

}  // namespace stoker::cli
