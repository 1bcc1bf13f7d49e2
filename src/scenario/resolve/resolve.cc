#include "scenario/resolve/resolve.h"

#include <cstdio>
#include <utility>

#include "base/files.h"
#include "base/setting.h"
#include "device/catalogue/instances.h"
#include "device/host/this_host.h"
#include "device/resolve/resolve.h"
#include "input/findings/findings.h"
#include "scenario/request/allocator.h"
#include "scenario/request/fill_job.h"
#include "scenario/request/request_checks.h"
#include "scenario/sources/data_source.h"
#include "scenario/sources/script_findings.h"
#include "scenario/sources/script_model.h"

namespace stoker {
namespace {

Result<Knowledge> knowledge_with(const std::string& coefficients) {
  Knowledge knowledge = TRY(load_knowledge());
  if (!coefficients.empty()) TRY(knowledge.timing.lay_over(coefficients));
  return knowledge;
}

constexpr Bytes kLargestPriceFile{4 * 1024 * 1024};

/// The price of one GPU of a rented machine by the user's own file; what it rests on is said with
/// the host.
Status take_price(const RunRequest& r, Machine& machine) {
  if (!names_an_instance(r.machine)) {
    return fail(ErrorCode::kUsage,
                "a price file serves rented machines (" + mark(Setting::kGpu) +
                    " aws:g5.2xlarge); give the price of a GPU and hour as a number",
                mark(Setting::kPrice));
  }
  const Instance instance = TRY(TRY(InstanceTable::load()).find(r.machine));
  const std::string csv = TRY(read_file(r.price_file, kLargestPriceFile));
  const InstancePrice price = TRY(price_of(instance, csv, r.price_file));
  machine.device->price_per_hour = price.per_hour / instance.gpus;
  char text[64];
  std::snprintf(text, sizeof text, "%g an hour", price.per_hour);
  machine.host.assumption += std::string("; it costs ") + text + " (" + r.price_file +
                             (price.as_of.empty() ? ", undated)" : ", as of " + price.as_of + ")");
  return {};
}

Result<Machine> machine_of(const RunRequest& r) {
  Machine machine = TRY(resolve_machine(r.machine, r.host, this_host()));
  TRY(check_device_settings(r, machine.device));
  if (Gpu* gpu = machine.device.gpu(); gpu != nullptr && r.link) TRY(choose_link(*gpu, *r.link));
  if (r.network_bandwidth) machine.network_bandwidth = *r.network_bandwidth;
  if (!r.price_file.empty()) TRY(take_price(r, machine));
  return machine;
}

Status take_data(const RunRequest& r, const ScenarioTools& tools, Resolved& out) {
  Scenario& s = out.base;
  LoadedData data = TRY(load_data(r.data, *s.step, s.job.dimensions, out.knowledge.loader, tools));
  s.sample = std::move(data.sample);
  take_processor(data, s.machine.host, s.sample);
  TRY(take_storage(r.data, s.machine.host, s.sample));
  s.dataset_samples = data.samples;
  out.probe = std::move(data.probe);
  out.pipeline = std::move(data.pipeline);
  // Workers start as the probed loader starts them: pickling a large data set into each of them is
  // no property of a setting that a plan chooses.
  if (r.start_method) {
    s.loader.start_method = *r.start_method;
  } else if (out.pipeline) {
    s.loader.start_method = out.pipeline->loader ? out.pipeline->loader->start_method
                                                 : default_start_method(out.pipeline->python);
  }
  out.well_known_data = data.well_known;
  return {};
}

/// What to consider where no precision was named. Weights in four bits are computed with in half
/// precision, of the two kinds the better one.
std::vector<Precision> precisions_for(const RunRequest& r, const Machine& machine) {
  if (!r.precisions.empty()) return r.precisions;
  const PeakRates& peak = machine.device->peak;
  if (!r.capture.adapters.four_bit) return default_precisions(peak);
  return {peak.bf16_tensor > 0 || peak.fp16_tensor <= 0 ? Precision::kAmpBf16
                                                        : Precision::kAmpFp16};
}

/// The model, and what was found in it where it is a script.
Result<ScriptModel> model_of(const RunRequest& r, const Machine& machine,
                             const ScenarioTools& tools) {
  if (is_script(r.model) && r.capture.adapters.any()) {
    return fail(ErrorCode::kUsage,
                "a training script puts adapters on its model itself; leave the flag out",
                mark(Setting::kLora));
  }
  if (is_script(r.model)) return load_script(r, machine, tools);
  if (!r.script.arguments.empty() || !r.script.batch_argument.empty()) {
    return fail(ErrorCode::kUsage,
                "only a training script (FILE.py) takes arguments of its own; leave out what "
                "follows --, and --batch-arg",
                r.model);
  }
  LoadedModel model = TRY(load_model(
      r.model, precisions_for(r, machine),
      machine.device.cpu() != nullptr ? ModelDevice::kCpu : ModelDevice::kGpu, r.capture, tools));
  return with_its_script(std::move(model), r);
}

}  // namespace

ModelLine Resolved::line(const Job& job) const {
  return model_line(model.name, *base.step, base.machine.device, job);
}

Result<Resolved> resolve(const RunRequest& asked, const ScenarioTools& tools) {
  TRY(check_ranges(asked));
  Knowledge knowledge = TRY(knowledge_with(asked.coefficients));
  Machine machine = TRY(machine_of(asked));
  const bool cpu = machine.device.cpu() != nullptr;
  if (!cpu) static_cast<void>(TRY(allocator_of(asked.allocator)));  // bad words are told at once
  ScriptModel found = TRY(model_of(asked, machine, tools));
  const RunRequest r = with_findings(asked, found.findings, cpu);
  Resolved out{std::move(found.model), {}, {}, {}, std::move(knowledge), {}, r};
  out.gpus_of_machine = machine.gpu_count;
  Scenario& s = out.base;
  s.step = out.model.variants.front().step.get();
  s.price_per_gpu_hour = r.price_per_gpu_hour.value_or(machine.device->price_per_hour);
  s.machine = std::move(machine);
  if (!cpu) s.allocator = TRY(allocator_of(r.allocator));
  TRY(check_capture(*s.step, s.machine.device, r.model));
  TRY(check_image_size(r.data, *s.step));
  s.job.dimensions = r.job.dimensions;
  TRY(take_data(r, tools, out));
  TRY(check_training_settings(r, *s.step));
  TRY(fill_job(r.job, *s.step, s));
  s.job.threads = TRY(threads_of(r.job, s.machine.device));
  if (!r.pin && r.job.copy && *r.job.copy != CopyWay::kBlocking) {
    return fail(ErrorCode::kUsage,
                "copies from pageable memory (" + mark_off(Setting::kPin) +
                    ") hold the host; leave one of the two out",
                mark(Setting::kCopy));
  }
  if (!cpu) TRY(fill_workspaces(r.allocator, s.job));
  out.facts = facts_of(r, s,
                       {out.probe ? &*out.probe : nullptr, out.pipeline ? &*out.pipeline : nullptr,
                        out.well_known_data});
  if (std::string words = findings_words(asked, found.findings); !words.empty())
    out.facts.assumed.push_back(std::move(words));
  note_reads(found.findings, out.facts.data);
  return out;
}

}  // namespace stoker
