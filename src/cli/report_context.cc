#include "cli/report_context.h"

#include <cstdio>
#include <cstdlib>

#include "base/text.h"
#include "cli/data_source.h"
#include "cli/version.h"
#include "device/calibration_data.h"

namespace stoker::cli {
namespace {

/// What of the step differs from the plainest training loop.
std::string training_words(const Job& job) {
  std::string words;
  const auto add = [&](bool given, const char* word) {
    if (given) words += std::string(", ") + word;
  };
  add(job.clip, "clipped");
  add(job.ema, "EMA");
  add(!job.checkpoint.empty(), "checkpointed");
  return words;
}

std::string parallel_words(const Job& job) {
  if (job.gpus < 2) return {};
  switch (job.parallel) {
    case Parallel::kDdp:
      return "DDP, ";
    case Parallel::kDataParallel:
      return "DataParallel, ";
    case Parallel::kFsdpZero2:
      return "FSDP ZeRO-2, ";
    case Parallel::kFsdpZero3:
      return "FSDP ZeRO-3, ";
  }
  return {};
}

/// The terminal's own word for its character set, as C libraries read it.
bool shows_utf8() {
  for (const char* variable : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(variable);
    if (value == nullptr || *value == '\0') continue;
    return simplified(value).find("utf8") != std::string::npos;
  }
  return false;
}

}  // namespace

ReportContext bare_context(const Machine& machine) {
  ReportContext context;
  context.tool_version = kVersion;
  context.host_name = machine.host.name;
  context.host_cores = machine.host.cores;
  if (!machine.gpu.assumption.empty()) context.assumed.push_back(machine.gpu.assumption);
  return context;
}

void fill_context(const RunOptions& o, Resolved& r) {
  ReportContext& c = r.context;
  const Step& step = *r.base.step;
  c.tool_version = kVersion;
  c.unicode = shows_utf8();
  c.model = o.model;
  c.step_hash = step.provenance.event_hash;
  c.sample_word = picture_side(step) > 0           ? "img"
                  : step.sample_what == "video"    ? "clip"
                  : step.sample_what == "sequence" ? "seq"
                                                   : step.sample_what;
  c.host_name = r.base.machine.host.name;
  c.host_cores = r.base.machine.host.cores;
  c.dataset_samples = r.base.dataset_samples;
  c.step = r.base.step;
  const Machine& m = r.base.machine;
  c.cpu = m.gpu.is_cpu();
  if (m.gpu.calibrated) {
    c.rests_on.push_back(std::string("measurements of this ") + (c.cpu ? "CPU" : "GPU") +
                         " (machine file)");
    if (m.gpu.calibration && m.gpu.calibration->disturbed) {
      c.data.add("disturbed_calibration", Severity::kWarning,
                 "others used the machine while it was calibrated: bands are wider; calibrate it "
                 "again when it is idle");
    }
  }
  if (r.probe)
    c.rests_on.push_back("a probe of " + r.probe->dataset.name + " on " +
                         r.probe->provenance.cpu_model);
  if (r.pipeline)
    c.rests_on.push_back("a probe of " + r.pipeline->name + " on " + r.pipeline->cpu_model);
  if (m.gpu.peak.tf32_tensor > 0) {
    c.assumed.push_back("fp32 runs convolutions in TF32 (PyTorch's default)");
  }
  if (!m.gpu.assumption.empty()) c.assumed.push_back(m.gpu.assumption);
  char cores[32];
  std::snprintf(cores, sizeof cores, "%g", m.host.cores);
  c.assumed.push_back("host = " + m.host.name + ", " + cores + " cores" +
                      (m.host.is_this_machine ? " (--host)" : ""));
  if (!m.host.assumption.empty()) c.assumed.push_back(m.host.assumption);
  if (r.probe) {
    c.assumed.push_back("random crop, flip, normalise");
    c.data.merge(r.probe->diagnostics);
    if (const std::string warning = contention_warning(r.probe->contention); !warning.empty()) {
      c.data.add("disturbed_probe", Severity::kWarning, warning);
    }
  }
  if (r.pipeline) {
    c.data.merge(r.pipeline->findings);
    if (const std::string warning = contention_warning(r.pipeline->contention); !warning.empty())
      c.data.add("disturbed_probe", Severity::kWarning, warning);
  }
  if (!c.cpu) {
    for (std::string& words : allocator_words(o.allocator)) c.assumed.push_back(std::move(words));
  }
  if (c.cpu && r.base.sample.known) {
    c.excluded.push_back("what loader workers take of the training's cores");
  }
  if (!r.base.sample.known) c.assumed.push_back("input is fast enough (--data, --sample-cost)");
  if (!r.base.job.validation_batch) c.excluded.push_back("validation pass (--validation)");
  else if (r.base.validation_samples == 0)
    c.excluded.push_back("validation's share of an epoch (--validation-samples)");
  if (!c.cpu && o.job.copy.empty() && !o.no_pin && !r.base.job.prefetching_loader)
    c.assumed.push_back("the next batch is copied beside the step (--copy)");
  if (r.base.price_per_gpu_hour <= 0) c.excluded.push_back("cost (--price)");
}

std::vector<std::string> unusual_settings(const Job& job) {
  std::vector<std::string> words;
  const auto add = [&](bool given, std::string word) {
    if (given) words.push_back(std::move(word));
  };
  const OptimizerSettings& o = job.optimizer;
  const bool trains = o.kind != OptimizerKind::kNone;
  // Tensor by tensor without anybody's asking is a CPU's default.
  const bool usual =
      o.loop == default_loop(o.kind) || (o.loop == OptimizerLoop::kForLoop && !o.loop_asked);
  add(trains && !usual, std::string(name_of(o.loop)) + " optimizer");
  add(trains && o.nesterov, "Nesterov momentum");
  add(job.accumulate > 1, "accumulates " + std::to_string(job.accumulate) + " batches");
  const bool scales = job.precision == Precision::kAmpFp16;  // what people do there
  add(job.grad_scaler && !scales, "gradient scaler");
  add(!job.grad_scaler && scales && trains, "no gradient scaler");
  add(job.clip_checks, "clipping checks its norm");
  std::string modules;
  for (const std::string& name : job.checkpoint) modules += (modules.empty() ? "" : ",") + name;
  add(!modules.empty(), "checkpoints " + modules);
  add(!job.zero_grad_before_forward, "zero_grad() after the step");
  add(job.zero_grad_fills, "zero_grad(set_to_none=False)");
  add(job.channels_last, "channels-last");
  add(job.cudnn == CudnnProfile::kBenchmark, "cudnn.benchmark");
  add(job.cuda_graphs, "CUDA graphs");
  add(job.gpus > 1 && job.nodes > 1, std::to_string(job.nodes) + " nodes");
  add(job.gradient_as_bucket_view, "gradient_as_bucket_view");
  add(job.prefetching_loader, "prefetching loader");
  add(job.last_batch > 0, "last batch of " + std::to_string(job.last_batch));
  if (job.validation_batch) {
    add(true, "validation in batches of " + std::to_string(*job.validation_batch) +
                  (job.validation_no_grad ? "" : " with gradients"));
  }
  return words;
}

std::string model_line(const Resolved& resolved, const Job& job) {
  const Step& step = *resolved.base.step;
  std::string optimizer(name_of(job.optimizer.kind));
  if (job.optimizer.kind == OptimizerKind::kSgd)
    optimizer = job.optimizer.momentum > 0 ? "SGD momentum" : "SGD";
  std::string line = resolved.model.name + " | " + step.mode;
  if (step.mode == "train") line += ", " + optimizer;
  line += training_words(job);
  const std::int64_t side = picture_side(step);
  if (side > 0) line += ", " + std::to_string(side) + " px";
  for (const Dimension& d : step.dimensions) {
    if (d.name == "batch") continue;
    const auto it = job.dimensions.find(d.name);
    line += ", " + d.name + " " +
            std::to_string(it == job.dimensions.end() ? d.default_value : it->second);
  }
  line += " | " + resolved.base.machine.gpu.name + " | ";
  if (resolved.base.machine.gpu.is_cpu())
    line += std::to_string(job.threads) + (job.threads == 1 ? " thread, " : " threads, ");
  return line + parallel_words(job) + "eager, " + std::string(name_of(job.precision));
}

}  // namespace stoker::cli
