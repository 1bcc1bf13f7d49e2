#include <cstdio>
#include <memory>

#include "cli/run_options.h"
#include "cli/verbs.h"
#include "forecast/verdicts.h"
#include "plan/search.h"

namespace stoker::cli {
namespace {

struct Options {
  RunOptions run;
  std::string gpus;
  bool explain = false;
};

Result<int> run(const Options& o) {
  std::vector<Precision> precisions{Precision::kFp32};
  if (!o.run.precision.empty()) {
    const auto precision = parse_precision(o.run.precision);
    if (!precision) return tl::unexpected(precision.error());
    precisions = {*precision};
  }
  const auto counts = parse_counts(o.gpus.empty() ? "1" : o.gpus);
  if (!counts) return tl::unexpected(counts.error());
  if (counts->size() != 1)
    return fail(ErrorCode::kUsage, "predict takes one number of GPUs; `stoker plan` compares",
                "--gpus");
  if (o.run.gpu.find(',') != std::string::npos) {
    return fail(ErrorCode::kUsage, "predict takes one GPU; `stoker plan` compares several",
                "--gpu");
  }
  auto resolved = resolve(o.run, o.run.gpu, precisions);
  if (!resolved) return tl::unexpected(resolved.error());
  Scenario& s = resolved->base;
  const auto& variant = resolved->model.variants.front();
  if (!o.run.precision.empty() && variant.precision != precisions.front()) {
    return fail(ErrorCode::kBadInput,
                o.run.model + " was captured in " + variant.step->precision + "; it cannot serve " +
                    o.run.precision,
                "--precision");
  }
  s.job.precision = variant.precision;
  s.job.gpus = counts->front();
  s.machine.gpu_count = std::max(1, s.job.gpus / s.job.nodes);
  s.job.batch = o.run.batch.value_or(s.step->dimensions[0].default_value);
  s.loader.workers = static_cast<int>(o.run.workers.value_or(
      std::max(1, static_cast<int>(s.machine.host.cores) / s.machine.gpu_count)));
  s.loader.prefetch = static_cast<int>(o.run.prefetch.value_or(2));
  s.loader.persistent = true;
  set_pinning(s, !o.run.no_pin);
  ReportContext& context = resolved->context;
  if (!o.run.batch)
    context.assumed.push_back("batch " + std::to_string(s.job.batch) + " (--batch)");
  if (!o.run.workers && s.sample.known)
    context.assumed.push_back(std::to_string(s.loader.workers) + " workers (--workers)");

  auto f = forecast(s, resolved->knowledge);
  if (!f) return tl::unexpected(f.error());
  const auto limits =
      forecast_batch_limits(*s.step, s.job, s.machine, s.allocator, resolved->knowledge);
  if (!limits) return tl::unexpected(limits.error());
  const std::string shortage =
      f->input.known ? host_shortage(s.machine.host, f->input.loader) : std::string();
  if (!shortage.empty()) {
    f->diagnostics.add("host_too_small", Severity::kWarning, "the host is too small: " + shortage);
  }
  if (limits->value == 0) f->memory.out_of_memory = gpu_shortage(s, *limits);
  context.model_line = model_line(*resolved, s.job);
  context.rests_on.insert(context.rests_on.begin(), f->time.basis);
  context.rests_on.push_back("memory: " + f->memory.device_peak.basis);
  std::string text = o.run.json ? forecast_json(*f, *limits, context, o.explain)
                                : forecast_text(*f, *limits, context);
  if (o.explain && !o.run.json) text += explain_text(*f, context);
  std::fputs(text.c_str(), stdout);
  return f->memory.fits && shortage.empty() ? 0 : 1;
}

}  // namespace

Command predict_command() {
  auto o = std::make_shared<Options>();
  Command command{"predict",
                  "the forecast of exactly these settings: memory, time, input, epoch, cost",
                  "Example: stoker predict gpt2 --gpu a100-40gb --batch 16 --seq-len 1024 "
                  "--precision amp-bf16 --optimizer adamw\n"
                  "Exit code 1: it does not fit the GPU, or its loader the host.",
                  run_flags(o->run), [o] { return run(*o); }};
  command.flags.push_back({"--batch", "per GPU; default: the captured one", &o->run.batch});
  command.flags.push_back({"--gpus", "number of GPUs; default 1", &o->gpus});
  command.flags.push_back(
      {"--workers", "DataLoader workers per GPU; default: cores / GPUs", &o->run.workers});
  command.flags.push_back({"--prefetch", "batches ahead per worker; default 2", &o->run.prefetch});
  command.flags.push_back(
      {"--explain", "memory and time by module and operator class", &o->explain});
  return command;
}

}  // namespace stoker::cli
