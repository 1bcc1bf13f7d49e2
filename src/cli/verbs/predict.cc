#include <algorithm>
#include <memory>
#include <span>
#include <string_view>

#include "base/setting.h"
#include "base/text.h"
#include "cli/answers/by_layer.h"
#include "cli/answers/compare.h"
#include "cli/answers/scaling.h"
#include "cli/answers/settings_table.h"
#include "cli/answers/two_point.h"
#include "cli/outside/output.h"
#include "cli/outside/scenario_tools.h"
#include "cli/request/global_batch.h"
#include "cli/request/report_context.h"
#include "cli/request/run_options.h"
#include "cli/request/run_request.h"
#include "cli/verbs/verbs.h"
#include "device/host/this_host.h"
#include "device/resolve/resolve.h"
#include "forecast/memory/remedies.h"
#include "forecast/memory/verdicts.h"
#include "report/model/page_report.h"
#include "scenario/resolve/resolve.h"
#include "scenario/sources/model_source.h"

namespace stoker::cli {
namespace {

/// Operators that a page sets before the device's roof.
constexpr std::size_t kOperatorsShown = 150;

struct PredictArguments {
  RunOptions run;
  std::string method, batch, objective;
  TwoPointOptions two_point;
  ScalingOptions scaling;
  bool explain = false, by_layer = false;
};

bool wants_two_points(const PredictArguments& o) { return simplified(o.method) == "twopoint"; }

/// Which precisions a device has units for that need less memory than fp32.
std::vector<Precision> smaller_precisions(const PeakRates& peak) {
  if (peak.bf16_tensor > 0) return {Precision::kAmpBf16, Precision::kBf16};
  if (peak.fp16_tensor > 0) return {Precision::kAmpFp16};
  return {};
}

/// The model in those precisions: captures that are there, and of the user's own model, where
/// fp32 does not fit, a capture that is made for it.
std::vector<LoadedModel::Variant> other_variants(const PredictArguments& o, const Resolved& r,
                                                 const Forecast& f) {
  const std::vector<Precision> wanted = smaller_precisions(r.base.machine.device->peak);
  auto variants = variants_at_hand(o.run.model, wanted, capture_wishes(o.run), scenario_tools());
  const bool full = f.job.precision == Precision::kFp32 || f.job.precision == Precision::kTf32;
  if (f.memory.fits || !full || o.run.model.find(':') == std::string::npos ||
      r.base.machine.device.cpu() != nullptr)
    return variants;
  for (const Precision precision : wanted) {
    const bool there = std::any_of(variants.begin(), variants.end(),
                                   [&](const auto& v) { return v.precision == precision; });
    if (there) continue;
    auto loaded = load_model(o.run.model, {precision}, ModelDevice::kGpu, capture_wishes(o.run),
                             scenario_tools());
    if (loaded) variants.push_back(std::move(loaded->variants.front()));
  }
  return variants;
}

Result<MemoryAdvice> advice_for(const PredictArguments& o, const Resolved& r, const Forecast& f) {
  const Scenario& s = r.base;
  const auto at_hand = other_variants(o, r, f);
  std::vector<OtherPrecision> others;
  for (const auto& variant : at_hand) others.push_back({variant.precision, variant.step.get()});
  auto remedies = TRY(find_remedies(s, f, others, r.knowledge));
  for (Remedy& remedy : remedies.list) remedy.settings = with_flags(remedy.settings);
  if (remedies.together) remedies.together->settings = with_flags(remedies.together->settings);
  MemoryAdvice advice{std::move(remedies), {}};
  if (o.explain) {
    const auto device = TRY(smallest_device(s));
    advice.runs_from = device;
  }
  return advice;
}

/// What one optimizer step takes: "batch 64 x 4 GPUs x 2 accumulated = 512 a step".
std::string step_size(const Resolved& r) {
  const Job& job = r.base.job;
  const bool cpu = r.base.machine.device.cpu() != nullptr;
  std::string words = "batch " + with_commas(job.batch);
  if (r.request.wants_largest_batch()) words += " (largest safe)";
  if (job.gpus == 1 && job.accumulate == 1) return words + (cpu ? "" : " on 1 GPU");
  if (!cpu) words += " x " + std::to_string(job.gpus) + (job.gpus == 1 ? " GPU" : " GPUs");
  if (job.accumulate > 1) words += " x " + with_commas(job.accumulate) + " accumulated";
  return words + " = " + with_commas(job.batch * job.gpus * job.accumulate) + " a step";
}

Result<int> answer(const PredictArguments& o, const Resolved& r) {
  const Scenario& s = r.base;
  Prediction prediction;
  auto f = forecast(s, r.knowledge);
  if (!f) return tl::unexpected(f.error());
  const auto limits = TRY(batch_limits_of(r));
  const std::string shortage =
      f->input.known ? host_shortage(s.machine.host, f->input.loader) : std::string();
  if (!shortage.empty()) {
    f->diagnostics.add("host_too_small", Severity::kWarning, "the host is too small: " + shortage);
  }
  if (limits.value == 0) {
    f->memory.out_of_memory = with_flags(gpu_shortage(s, limits));
    f->memory.failure_words.clear();
  }
  if (o.explain || !o.run.html.empty() || !f->memory.fits) {
    auto advice = TRY(advice_for(o, r, *f));
    prediction.advice = std::move(advice);
  }
  if (wants_two_points(o)) {
    const auto requests = TRY(parse_readings(o.two_point.readings));
    auto two_point = TRY(answer_simulated(requests, s, limits));
    prediction.two_point = std::move(two_point);
  }
  ReportContext context = context_of(r, s.job);
  context.model_line += " | " + step_size(r);
  context.rests_on.insert(context.rests_on.begin(), f->time.basis);
  context.rests_on.push_back("memory: " + f->memory.device_peak.basis);
  const bool good = is_good(f->memory.fits, f->memory.verdict, o.run) && shortage.empty();
  prediction.forecast = std::move(*f);
  prediction.limits = limits;
  if (!o.run.html.empty()) {
    PredictPicture picture;
    auto roofline = TRY(roofline_of(s, prediction.forecast.time, kOperatorsShown));
    picture.roofline = std::move(roofline);
    picture.loader = loader_timeline(loader_of(s), s.sample, host_share(s),
                                     consumer_of(s, prediction.forecast.time));
    TRY(write_page(o.run.html, predict_page(prediction, picture, context)));
  }
  std::string text = o.run.json ? forecast_json(prediction, context, o.explain)
                                : forecast_text(prediction, context);
  if (o.explain && !o.run.json) text += explain_text(prediction, context);
  print(text);
  return good ? 0 : 1;
}

/// Two measured readings and no model: the method alone.
Result<int> answer_without_model(const PredictArguments& o, std::span<const Binding> bindings) {
  const auto requests = TRY(parse_readings(o.two_point.readings));
  if (!requests[0].bytes || !requests[1].bytes)
    return fail(ErrorCode::kUsage, "a reading that is to be simulated needs a MODEL", "--reading");
  TRY(refuse_all_but("predict", bindings, {"gpu", "gpus", "host", "json", "method", "reading"},
                     "is not used where two readings stand for the model; leave it out, or "
                     "give a MODEL"));
  const std::vector<NamedGpu> named = named_gpus(o.run);
  const auto gpus = TRY(gpus_of(o.run, named.front()));
  if (named.size() > 1)
    return fail(ErrorCode::kUsage, "the two-reading method is of one GPU", "--gpu");
  const auto machine = TRY(resolve_machine(named.front().name, o.run.host, this_host()));
  const auto two_point = TRY(answer_measured(requests, machine.device.facts(), gpus));
  const ReportContext context = context_of(facts_of_machine(machine));
  const std::string text =
      o.run.json ? two_point_json(two_point, context) : two_point_text(two_point);
  print(text);
  return two_point.estimate.batch > 0 ? 0 : 1;
}

/// What the other answers of this verb have no use for.
Status check_several(std::span<const Binding> bindings) {
  TRY(refuse_given("predict", bindings, {"explain", "by-layer", "method", "reading"},
                   "is about one GPU; give --gpu a single name"));
  return refuse_given("predict", bindings, {"gpus-per-node", "network", "strong", "step-ms"},
                      "belongs to a table over several numbers of one GPU; give --gpu a single "
                      "name and --gpus 1..64, or leave it out");
}

Status check_scaling(std::span<const Binding> bindings) {
  return refuse_given(
      "predict", bindings,
      {"explain", "by-layer", "method", "reading", "epochs", "price", "html", "global-batch"},
      "is not part of a table over numbers of GPUs; give --gpus one number, or leave it out");
}

Status check_table(const PredictArguments& o, std::span<const Binding> bindings) {
  for (const auto& [several, flag] :
       {std::pair(o.run.gpu.find(',') != std::string::npos, "--gpu"),
        {o.run.gpus.find_first_of(",.") != std::string::npos, "--gpus"}}) {
    if (several)
      return fail(ErrorCode::kUsage,
                  "takes one value beside several of --batch, --seq-len or --precision", flag);
  }
  return refuse_given("predict", bindings,
                      {"explain", "by-layer", "method", "reading", "html", "objective", "strong",
                       "gpus-per-node", "step-ms", "network"},
                      "is not part of a table of settings; give --batch, --seq-len and "
                      "--precision one value each, or leave it out");
}

Status check_by_layer(std::span<const Binding> bindings) {
  return refuse_given("predict", bindings,
                      {"explain", "method", "reading", "epochs", "price", "html"},
                      "is not part of --by-layer; leave one of them out");
}

Result<int> run_predict(const PredictArguments& o, std::span<const Binding> bindings) {
  if (!o.two_point.readings.empty() && !wants_two_points(o))
    return fail(ErrorCode::kUsage, "is of the two-reading method; add --method two-point",
                "--reading");
  if (o.run.model.empty()) {
    if (wants_two_points(o)) return answer_without_model(o, bindings);
    return fail(
        ErrorCode::kUsage,
        "MODEL is missing: stoker predict resnet50 --gpu t4 (`stoker models` lists what ships)");
  }
  if (wants_settings_table(o.run, o.batch)) {
    TRY(check_table(o, bindings));
    return answer_settings_table(o.run, o.batch);
  }
  const auto batch = TRY(parse_batch(o.batch));
  if (o.run.gpu.find(',') != std::string::npos) {
    TRY(check_several(bindings));
    return compare(o.run, batch, o.objective);
  }
  if (!o.objective.empty())
    return fail(ErrorCode::kUsage, "sorts several GPUs; give --gpu a,b, or leave it out",
                "--objective");
  if (wants_scaling(o.run, o.scaling)) {
    TRY(check_scaling(bindings));
    return answer_scaling(o.run, batch, o.scaling);
  }
  const auto network = TRY(network_of_one(o.run, o.scaling));
  RunRequest request = TRY(exact_request(o.run, named_gpus(o.run).front()));
  request.batch = batch;
  const ScenarioTools tools = scenario_tools(o.run.script_run);
  std::string chosen;
  if (o.run.global_batch) chosen = TRY(share_out(*o.run.global_batch, request, tools));
  if (network > 0) request.network_bandwidth = network;
  Resolved resolved = TRY(resolve_exactly(request, tools));
  if (!chosen.empty()) resolved.facts.assumed.insert(resolved.facts.assumed.begin(), chosen);
  if (o.by_layer) {
    TRY(check_by_layer(bindings));
    return answer_by_layer(o.run, resolved);
  }
  return answer(o, resolved);
}

}  // namespace

Command predict_command() {
  auto o = std::make_shared<PredictArguments>();
  Command command{
      "predict",
      "the forecast of exactly these settings: memory, time, input, epoch, cost",
      "Example: stoker predict gpt2 --gpu a100-40gb --batch 16 --seq-len 1024 "
      "--precision amp-bf16 --optimizer adamw\n"
      "Exit code 1: it does not fit the GPU (of several: none), or its loader the host; with\n"
      "--strict also where the memory is RISKY.",
      joined({run_bindings(o->run, &o->batch),
              scaling_bindings(o->scaling),
              {{"global-batch", &o->run.global_batch},
               {"explain", &o->explain},
               {"by-layer", &o->by_layer},
               {"method", &o->method},
               {"reading", &o->two_point.readings},
               {"objective", &o->objective}}}),
      {}};
  command.rest = &o->run.script_arguments;
  command.rest_words = "ARGUMENTS";
  command.run = [o, bindings = command.bindings] { return run_predict(*o, bindings); };
  return command;
}

}  // namespace stoker::cli
