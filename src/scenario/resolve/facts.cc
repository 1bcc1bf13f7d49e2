#include "scenario/resolve/facts.h"

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "base/setting.h"
#include "base/text.h"
#include "device/calibration_data.h"
#include "device/catalogue/gpu_catalogue.h"
#include "input/loader/loader_constants.h"
#include "input/loader/loader_simulation.h"
#include "operators/family.h"
#include "scenario/request/allocator.h"
#include "scenario/request/sample_facts.h"
#include "scenario/sources/capture_words.h"
#include "timing/common/data_sheet.h"

namespace stoker {
namespace {

bool has_convolutions(const Step& step) {
  return std::any_of(step.operators.begin(), step.operators.end(), [&](const Operator& op) {
    return step.operator_names[index(op.name)].family().kernel_class == KernelClass::kConvolution;
  });
}

void add_device(const DeviceFacts& device, Facts& facts) {
  if (device.calibrated) {
    facts.rests_on.push_back(std::string("measurements of this ") + (facts.cpu ? "CPU" : "GPU") +
                             " (machine file)");
    if (device.calibration && device.calibration->disturbed) {
      facts.data.add("disturbed_calibration", Severity::kWarning,
                     "others used the machine while it was calibrated: bands are wider; calibrate "
                     "it again when it is idle");
    }
  }
}

void add_excluded(const Scenario& s, Facts& facts) {
  if (facts.cpu && s.sample.known)
    facts.excluded.emplace_back("what loader workers take of the training's cores");
  if (!s.job.validation_batch) {
    facts.excluded.push_back("validation pass (" + mark(Setting::kValidation) + ")");
  } else if (s.validation_samples == 0) {
    facts.excluded.push_back("validation's share of an epoch (" +
                             mark(Setting::kValidationSamples) + ")");
  }
  if (s.price_per_gpu_hour <= 0) facts.excluded.push_back("cost (" + mark(Setting::kPrice) + ")");
}

/// What the model reads on the host and no capture knows, with the words that say otherwise.
void add_reads(const Step& step, std::vector<std::string>& assumed) {
  constexpr std::size_t kMostShown = 6;
  std::size_t shown = 0;
  for (const auto& [place, value] : step.reads) {
    if (shown++ == kMostShown) {
      assumed.push_back(std::to_string(step.reads.size() - kMostShown) +
                        " more reads of what depends on data");
      return;
    }
    const std::string other = value == "true" ? "false" : value == "false" ? "true" : "VALUE";
    assumed.push_back(place + " reads " + value + " (" + mark(Setting::kAssume) + " " + place +
                      "=" + other + ")");
  }
}

void add_assumed(const RunRequest& r, const Scenario& s, const ProbesOfData& probes, Facts& facts) {
  std::vector<std::string>& assumed = facts.assumed;
  const Machine& m = s.machine;
  if (m.device->peak.tf32_tensor > 0 && has_convolutions(*s.step))
    assumed.emplace_back("fp32 runs convolutions in TF32 (PyTorch's default)");
  if (!m.device->assumption.empty()) assumed.push_back(m.device->assumption);
  assumed.push_back(host_words(m.host, mark(Setting::kHost)));
  if (!m.host.assumption.empty()) assumed.push_back(m.host.assumption);
  if (probes.folder != nullptr) assumed.emplace_back("random crop, flip, normalise");
  if (!facts.cpu) {
    for (std::string& words : allocator_words(r.allocator)) assumed.push_back(std::move(words));
  }
  add_reads(*s.step, assumed);
  if (!r.job.drop_output) {
    assumed.push_back("the last output and loss stay in memory during the next forward (" +
                      mark(Setting::kDropOutput) + ")");
  }
  if (!s.sample.known) {
    assumed.push_back("input is fast enough (" + mark(Setting::kData) + ", " +
                      mark(Setting::kSampleCost) + ")");
  }
  if (!facts.cpu && !r.job.copy && r.pin && !s.job.prefetching_loader)
    assumed.push_back("the next batch is copied to the GPU while a step runs (" +
                      mark(Setting::kCopy) + ")");
}

}  // namespace

std::string host_words(const Host& host, const std::string& settings) {
  char cores[32];
  std::snprintf(cores, sizeof cores, "%g", host.cores);
  return "host = " + host.name + ", " + cores + (host.cores == 1 ? " core" : " cores") +
         (host.is_this_machine ? " (" + settings + ")" : "");
}

void add_data_notes(const ProbesOfData& probes, Diagnostics& data) {
  const auto add = [&](const Diagnostics& found, const std::string& warning) {
    data.merge(found);
    if (!warning.empty()) data.add("disturbed_probe", Severity::kWarning, warning);
  };
  if (probes.folder != nullptr)
    add(probes.folder->diagnostics, contention_warning(probes.folder->contention));
  if (probes.pipeline != nullptr)
    add(probes.pipeline->findings, contention_warning(probes.pipeline->contention));
}

/// Workers that are not forked: a new interpreter each, which gets the data set pickled.
void add_start(const RunRequest& r, const Scenario& s, const PipelineProbe* probe, Facts& facts) {
  const SampleCost::Start& start = s.sample.start;
  const std::string method(start_method_name(s.loader.start_method));
  const bool sends = start.pickled.count() > 0;
  facts.assumed.push_back(
      "workers start by " + method + (r.start_method ? "" : ", as the probed loader's") +
      (sends ? "; each is sent " + human_bytes(start.pickled) + " of data set" : ""));
  const Nanos measured =
      s.loader.start_method == StartMethod::kSpawn ? start.spawn : start.forkserver;
  if (measured.count() > 0) return;
  std::string words =
      "how long a worker takes to start by " + method +
      " was not measured as a whole: the first batch's time adds up " +
      (start.interpreter.count() > 0
           ? human_time(start.interpreter) + " for an interpreter with PyTorch"
           : "an interpreter with PyTorch (" + human_time(kUnknownSpawn) + ", an assumption)") +
      (start.server.count() > 0 && s.loader.start_method == StartMethod::kForkserver
           ? ", once for the server that forks"
           : "");
  if (!sends) {
    words += "; what a data set takes to be pickled and sent comes on top, and is not known";
  } else {
    words += " and sending " + human_bytes(start.pickled);
    if (start.pickle.count() > 0)
      words += " (pickling " + human_time(start.pickle) + ", unpickling " +
               human_time(start.unpickle.count() > 0 ? start.unpickle : start.pickle) +
               (probe != nullptr && probe->start.estimated ? ", as parts of it say)" : ")");
    words += ", one worker after the other";
  }
  facts.data.add("worker_start_unmeasured", Severity::kWarning,
                 words + "; a probe with a larger budget measures it");
}

/// Units whose rate no data sheet of the catalogue gives for this chip: a machine file states them.
std::vector<MathUnit> stated_rates(const Gpu& gpu) {
  const auto known = all_gpus();
  if (!known) return {};
  std::vector<MathUnit> stated;
  for (std::size_t i = 0; i < kMathUnits; ++i) {
    const auto unit = static_cast<MathUnit>(i);
    const double rate = nominal_peak(gpu, unit);
    const bool of_data_sheet = std::any_of(known->begin(), known->end(), [&](const Gpu& other) {
      return other.chip == gpu.chip && nominal_peak(other, unit) == rate;
    });
    if (!of_data_sheet) stated.push_back(unit);
  }
  return stated;
}

Facts facts_of_machine(const Machine& machine) {
  Facts facts;
  facts.host_name = machine.host.name;
  facts.host_cores = machine.host.cores;
  if (!machine.device->assumption.empty()) facts.assumed.push_back(machine.device->assumption);
  return facts;
}

Facts facts_of(const RunRequest& r, const Scenario& s, const ProbesOfData& probes) {
  Facts facts;
  facts.model = r.model;
  facts.step = s.step;
  facts.step_hash = s.step->provenance.event_hash;
  facts.sample_word = sample_word(*s.step);
  facts.host_name = s.machine.host.name;
  facts.host_cores = s.machine.host.cores;
  facts.dataset_samples = s.dataset_samples;
  facts.cpu = s.machine.device.cpu() != nullptr;
  if (const Gpu* gpu = s.machine.device.gpu()) facts.stated_rates = stated_rates(*gpu);
  facts.rests_on.push_back(capture_words(s.step->provenance, std::time(nullptr)));
  add_device(s.machine.device.facts(), facts);
  if (probes.folder != nullptr) {
    facts.rests_on.push_back("a probe of " + probes.folder->dataset.name + " on " +
                             probes.folder->provenance.cpu_model);
  }
  if (probes.pipeline != nullptr) {
    facts.rests_on.push_back("a probe of " + probes.pipeline->name + " on " +
                             probes.pipeline->cpu_model);
  }
  const bool stated = r.data.sample_cost.has_value();
  if (probes.well_known || stated) facts.rests_on.push_back(s.sample.basis);
  add_assumed(r, s, probes, facts);
  if (s.loader.start_method != StartMethod::kFork && s.sample.known)
    add_start(r, s, probes.pipeline, facts);
  add_data_notes(probes, facts.data);
  add_excluded(s, facts);
  return facts;
}

}  // namespace stoker
