#include "cli/answers/input_plan.h"

#include <algorithm>

#include "base/setting.h"
#include "base/text.h"
#include "cli/outside/output.h"
#include "cli/outside/scenario_tools.h"
#include "cli/request/report_context.h"
#include "cli/request/run_request.h"
#include "device/host/this_host.h"
#include "device/resolve/resolve.h"
#include "forecast/forecast.h"
#include "input/probe/loader_profile.h"
#include "plan/input_plan.h"
#include "report/model/input_plan_report.h"
#include "scenario/request/request_checks.h"
#include "scenario/resolve/facts.h"
#include "scenario/sources/data_source.h"
#include "system/host_limits.h"

namespace stoker::cli {
namespace {

constexpr const char* kThesis = "thesis";
/// Taken where nobody says; the image size of most image classifiers, the batch of most examples.
constexpr std::int64_t kUsualSide = 224, kUsualBatch = 32;

Status check(const RunOptions& run, const InputPlanOptions& own,
             std::span<const Binding> bindings) {
  if (!own.step_ms && run.from.empty()) {
    const auto& behind = run.script_arguments;
    const auto script = std::find_if(behind.begin(), behind.end(),
                                     [](const std::string& word) { return word.ends_with(".py"); });
    if (script != behind.end())
      return fail(ErrorCode::kUsage,
                  "MODEL is missing: the script stands before --, what it takes "
                  "behind it: stoker plan " +
                      *script + " --gpu GPU -- ARGUMENTS");
    return fail(
        ErrorCode::kUsage,
        "MODEL is missing, or --step-ms with --data, or --from with a recording, for a plan "
        "of the input alone (stoker plan --help)");
  }
  TRY(refuse_all_but(
      "plan", bindings,
      {"step-ms",      "blocking",   "cores",   "method",   "host",        "gpus",
       "price",        "data",       "reprobe", "samples",  "sample-cost", "from",
       "storage",      "image-size", "workers", "prefetch", "pin",         "persistent-workers",
       "start-method", "batch",      "json"},
      "is of a plan with a MODEL; a plan of the input alone takes the step as it was measured "
      "(--step-ms). Leave it out, or give a MODEL"));
  if (run.data.empty() && run.sample_cost.empty() && run.from.empty()) {
    return fail(ErrorCode::kUsage,
                "a plan of the input needs to know the data: a folder, a probe file of `stoker "
                "probe`, or --sample-cost 2.5ms",
                "--data");
  }
  TRY(check_from(run));
  if (own.cores && !run.host.empty())
    return fail(ErrorCode::kUsage, "give either --cores or cores= within --host", "--cores");
  return {};
}

Result<int> processes(const RunOptions& run) {
  if (run.gpus.empty()) return 1;
  const auto counts = TRY(parse_counts(run.gpus));
  if (counts.size() != 1)
    return fail(ErrorCode::kUsage, "give the one number of GPUs that the step was measured with",
                "--gpus");
  return counts.front();
}

Result<Host> host_of(const RunOptions& run, const InputPlanOptions& own) {
  Host host = this_host();
  if (!run.host.empty()) return resolve_host(run.host, host);
  if (own.cores) {
    host.cores = *own.cores;
    host.name = "this machine with other cores";
    host.is_this_machine = false;
  }
  return host;
}

/// What this computer grants; of another host, what is known of it.
HostLimits limits_of(const Host& host, const RunOptions& run, const InputPlanOptions& own) {
  if (run.host.empty() && !own.cores) return this_host_limits();
  HostLimits limits;
  limits.shared_memory = host.shared_memory;
  if (run.host.empty()) limits.open_files = this_host_limits().open_files;
  return limits;
}

/// The name of a file system whose reads leave this machine; "" for others.
std::string over_a_network(const FileSystemFacts& facts) {
  const bool network =
      facts.kind == FileSystemKind::kNetwork || facts.kind == FileSystemKind::kFuse;
  return network ? facts.name : std::string();
}

/// What the figures rest on and assume.
Facts facts_of_input(const RunOptions& run, const InputPlanOptions& own, const LoadedData& data,
                     const Host& host) {
  Machine machine;
  machine.host = host;
  Facts facts = facts_of_machine(machine);
  const bool text = data.probe && data.probe->kind == DataKind::kText;
  facts.sample_word = data.probe && !text ? "img" : "sample";
  facts.dataset_samples = data.samples;
  facts.rests_on = {own.step_ms ? "the step as given" : "the step as it was watched",
                    data.sample.basis};
  if (data.probe) facts.rests_on.push_back(data.probe->provenance.cpu_model);
  if (data.pipeline && !data.pipeline->cpu_model.empty())
    facts.rests_on.push_back(data.pipeline->cpu_model);
  std::vector<std::string>& assumed = facts.assumed;
  assumed.push_back(host_words(host, mark(Setting::kHost) + ", " + mark(Setting::kCores)));
  if (!host.assumption.empty()) assumed.push_back(host.assumption);
  const std::string batch = " (" + mark(Setting::kBatch) + ")";
  if (!run.batch && run.from.empty() && !(data.pipeline && data.pipeline->loader))
    assumed.push_back("the step was measured at batch " + std::to_string(kUsualBatch) + batch);
  if (!run.batch)
    assumed.push_back("the step grows in proportion to the batch, which was searched" + batch);
  if (!run.from.empty()) {
    assumed.emplace_back("the loop does nothing else than its steps while it waits for data");
  } else if (!own.blocking) {
    assumed.push_back("the loop runs a step ahead of the GPU (" + mark(Setting::kBlocking) +
                      ": it waits for each)");
  }
  if (run.pins())
    assumed.emplace_back(
        "no time of the step is the batch's copy: pinned ones run while the GPU computes");
  if (data.probe) {
    if (text) assumed.emplace_back("512 tokens of 64 bits a sample in a batch");
    else if (!run.image_size)
      assumed.push_back("crops of " + std::to_string(kUsualSide) + " px (" +
                        mark(Setting::kImageSize) + ")");
  }
  add_data_notes({data.probe ? &*data.probe : nullptr, data.pipeline ? &*data.pipeline : nullptr},
                 facts.data);
  if (data.sample.read_bytes > 0 && !knows_storage(data.sample, host_share(host, 1)))
    facts.excluded.push_back("reading in the first epoch (" + mark(Setting::kStorage) +
                             ", or disk= in " + mark(Setting::kHost) + ")");
  if (data.samples == 0)
    facts.excluded.push_back("length of an epoch (" + mark(Setting::kSamples) + ")");
  if (run.price.empty()) facts.excluded.push_back("cost (" + mark(Setting::kPrice) + ")");
  return facts;
}

std::string line_of(const RunOptions& run, const InputPlanOptions& own, const LoadedData& data,
                    const InputPlan& plan) {
  const std::string name = data.probe          ? data.probe->dataset.name
                           : data.pipeline     ? data.pipeline->name
                           : data.well_known   ? run.data
                           : !run.from.empty() ? "the run of " + run.from
                                               : "samples of " + run.sample_cost;
  return "input of " + name + " | batch " + std::to_string(plan.best.batch) + ", step " +
         human_time(plan.step) + (own.blocking || !run.from.empty() ? ", waited for" : "") +
         (plan.gpus > 1 ? " | " + std::to_string(plan.gpus) + " processes" : "");
}

}  // namespace

std::vector<Binding> input_plan_bindings(InputPlanOptions& o) {
  return {{"step-ms", &o.step_ms},
          {"blocking", &o.blocking},
          {"cores", &o.cores},
          {"method", &o.method}};
}

bool wants_thesis(const InputPlanOptions& o) { return simplified(o.method) == kThesis; }

LoaderAsItIs loader_as_it_is(const std::optional<PipelineProbe>& pipeline) {
  LoaderAsItIs now;
  now.settings.pin = false;  // of torch.utils.data.DataLoader, as the others of LoaderSettings
  if (!pipeline) return now;
  now.settings.start_method = default_start_method(pipeline->python);
  if (!pipeline->loader) return now;
  return {*pipeline->loader, true};
}

Result<int> answer_input_plan(const RunOptions& run, const InputPlanOptions& own,
                              std::span<const Binding> bindings) {
  TRY(check(run, own, bindings));
  const bool thesis = wants_thesis(own);
  if (thesis && !run.batch) {
    return fail(ErrorCode::kUsage,
                "the thesis's rule needs B_m: give the largest batch that the GPU takes as "
                "--batch, or a MODEL",
                "--method");
  }
  std::optional<ObservedRun> seen;
  if (!run.from.empty()) seen = TRY(observed_in(run));
  const auto gpus = seen && run.gpus.empty() ? seen->processes : TRY(processes(run));
  const RunRequest asked = TRY(run_request(run, {}));
  TRY(check_ranges(asked));
  auto host = TRY(host_of(run, own));
  const auto profile = shipped_loader_profile();
  if (!profile) return tl::unexpected(profile.error());
  const std::int64_t side = run.image_size.value_or(kUsualSide);
  constexpr std::int64_t kChannels = 3, kFloat = 4, kLabel = 8;
  const OutputShape shape{Bytes(kChannels * side * side * kFloat + kLabel), 2};
  auto data = load_data_for(asked.data, {.shape = shape, .side = side, .who = {}}, *profile,
                            scenario_tools());
  if (!data) return tl::unexpected(data.error());
  take_processor(*data, host, data->sample);
  TRY(take_storage(asked.data, host, data->sample));

  InputPlanRequest request;
  const LoaderAsItIs now =
      seen ? LoaderAsItIs{seen->settings, true} : loader_as_it_is(data->pipeline);
  request.now.settings = now.settings;
  if (asked.start_method) request.now.settings.start_method = *asked.start_method;
  request.now_known = now.known;
  const auto probed = seen        ? std::optional(seen->settings.batch)
                      : now.known ? probed_batch(*data->pipeline)
                                  : std::nullopt;
  request.now.settings.batch = run.batch.value_or(probed.value_or(kUsualBatch));
  request.now.settings.dataset_samples = data->samples;
  request.now.sample = data->sample;
  request.now.host = host_share(host, gpus);
  if (seen) request.now.consumer = seen->consumer;
  if (own.step_ms) request.now.consumer.step = *own.step_ms * kMillisecond;
  request.now.consumer.fixed = 0;  // a step grows in proportion to its batch
  if (!seen)
    request.now.consumer.consumption =
        own.blocking ? Consumption::kBlocking : Consumption::kOverlapped;
  request.now.limits = limits_of(host, run, own);
  if (data->probe) request.now.folder = &*data->probe;
  if (data->probe && data->probe->storage && run.storage.empty())
    request.now.network_storage = over_a_network(data->probe->storage->file_system);
  if (data->pipeline) request.now.pipeline = &*data->pipeline;
  if (run.workers) request.freedom.workers = static_cast<int>(*run.workers);
  if (run.prefetch) request.freedom.prefetch = static_cast<int>(*run.prefetch);
  if (!run.batch) request.freedom.batches = batches_around(request.now.settings.batch);
  // A run without a GPU copies nothing, unless it is said otherwise.
  const bool pins = run.pin.value_or(!seen || seen->on_gpu || seen->settings.pin);
  if (!pins) request.pin = false;
  request.gpu = pins;
  request.persistent = run.persistent_workers.value_or(true);
  request.room = host;
  request.profile = &*profile;
  request.price_per_gpu_hour = asked.price_per_gpu_hour.value_or(0);
  request.gpus = gpus;
  if (thesis) {
    request.thesis = ThesisLimits{.dram = host.memory,
                                  .sample = data->sample.output,
                                  .largest_batch = *run.batch,
                                  .gpus = gpus,
                                  .most_workers = std::max(1, static_cast<int>(host.cores))};
  }
  const auto plan = TRY(make_input_plan(request));
  ReportContext context = context_of(facts_of_input(run, own, *data, host));
  context.model_line = line_of(run, own, *data, plan);
  const std::string text =
      run.json ? input_plan_json(plan, context) : input_plan_text(plan, context);
  print(text);
  return 0;
}

}  // namespace stoker::cli
