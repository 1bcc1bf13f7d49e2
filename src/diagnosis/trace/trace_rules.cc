#include "diagnosis/trace/trace_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/counted.h"
#include "base/percent.h"
#include "base/text.h"
#include "diagnosis/timeline/times.h"

namespace stoker {
namespace {

class Rules : public FindingList {
 public:
  Rules(const TraceTimeline& timeline, TraceDiagnosis& d) : timeline_(timeline), d_(d) {}

  void loader(double lost, const std::string& beside) {
    const std::string evidence = fmt::format(
        "The loop is in its DataLoader's next() {} of the time{}.", percent(d_.loader), beside);
    if (timeline_.loads_in_main_process())
      add("loads_in_main_process", lost, evidence,
          "num_workers above 0: the loop makes its batches itself; `stoker probe` says how many "
          "workers keep up.",
          "num_workers", Confidence::kHigh);
    else
      add("waits_for_data", lost, evidence,
          "more num_workers or cheaper samples: `stoker watch` tells which.", "num_workers",
          Confidence::kHigh);
  }

  void saving(double lost) {
    add("checkpoint_stalls", lost,
        fmt::format("Writing checkpoints takes {} of the time.", percent(lost)),
        "save less often, or in a thread from a copy on the host.", "", Confidence::kHigh);
  }

  void collecting(double lost) {
    add("garbage_collection", lost,
        fmt::format("Python collects garbage {} of the time.", percent(lost)),
        "gc.freeze() before the loop, gc.disable() in it and gc.collect() every some hundred "
        "steps, on all ranks in the same one.",
        "", Confidence::kHigh);
  }

  void finish(const std::string& healthy, std::string state) {
    d_.verdict = std::move(state);
    d_.findings = FindingList::finish(healthy, d_.verdict);
  }

 private:
  const TraceTimeline& timeline_;
  TraceDiagnosis& d_;
};

void host_bound(const GpuTime& t, Rules& rules, const TraceDiagnosis& d) {
  const double optimizer = d.idle_of(IdleCause::kOptimizer);
  const double python = d.idle_of(IdleCause::kPython);
  const double launching = d.idle_of(IdleCause::kLaunching) + d.idle_of(IdleCause::kLatency);
  if (optimizer > launching) {
    rules.add("optimizer_launching", optimizer,
              "The GPU idles while the optimizer launches many small kernels.",
              "fused=True (or foreach=True) for the optimizer.", "fused=True", Confidence::kHigh);
  }
  const double launched = launching + (optimizer > launching ? 0 : optimizer);
  rules.add(
      "host_bound_launching", launched,
      fmt::format("{}, {} in the median: the GPU is done before the next one is launched.",
                  counted(t.kernels, "kernel"), human_time(at_seconds(t.median_kernel) * kSecond)),
      "a larger batch, torch.compile(mode=\"reduce-overhead\") or a CUDA graph.", "compile",
      Confidence::kHigh);
  std::string where;
  if (!t.python_in.empty() &&
      2 * t.python_in_it > t.idle[static_cast<std::size_t>(IdleCause::kPython)])
    where = fmt::format(", most of it within \"{}\"", t.python_in);
  rules.add("python_between_operators", python,
            fmt::format("The GPU idles while the host runs no operator: Python, NumPy, logging or "
                        "files{}.",
                        where),
            "take it out of the loop or do it less often; with_stack=True in the profiler shows "
            "the line.",
            "", Confidence::kMedium);
}

void copies(const GpuTime& t, Rules& rules, const TraceDiagnosis& d) {
  const double pageable =
      share_of_window(t.pageable, t.window) + d.idle_of(IdleCause::kPageableCopy);
  rules.add("pageable_copies", pageable,
            "Copies from pageable memory stop the host, and nothing is computed beside them.",
            "pin_memory=True in the DataLoader and .to(device, non_blocking=True).",
            "pin_memory=True", Confidence::kHigh);
  const double in = share_of_window(t.copies_in - t.pageable, t.window);
  rules.add("copies_to_the_gpu", in,
            "Copies from pinned memory take time in which nothing is computed.",
            "copy the next batch on a stream of its own, as bytes (uint8) where samples are "
            "pictures.",
            "", Confidence::kHigh);
  rules.add("other_copies", d.copies - share_of_window(t.copies_in, t.window),
            "Copies to the host or within the GPU take time in which nothing is computed.",
            "fewer .cpu() and .item(), no .contiguous() in the loop.", "", Confidence::kMedium);
}

void computing(const GpuTime& t, const KernelShares& kernels, Rules& rules) {
  rules.add_cheaper(
      "fp32_kernels", kernels.fp32,
      fmt::format("Matrix products and convolutions in FP32 outside of tensor cores take {} "
                  "of the time.",
                  percent(kernels.fp32)),
      "torch.autocast, or from Ampere on torch.set_float32_matmul_precision(\"high\").",
      "precision=amp", Confidence::kMedium);
  rules.add_cheaper(
      "layout_changes", kernels.layout,
      fmt::format("Kernels that change between channels-first and channels-last take {} of "
                  "the time.",
                  percent(kernels.layout)),
      "memory_format=torch.channels_last for the model and its input.", "channels_last",
      Confidence::kHigh);
  /// Below, what is fused costs less than the rest.
  constexpr double kManyElementwise = 0.3;
  if (kernels.elementwise >= kManyElementwise)
    rules.add_cheaper(
        "unfused_kernels", kernels.elementwise,
        fmt::format("Kernels that go element by element, reduce or normalise take {} of the "
                    "time: they wait for memory.",
                    percent(kernels.elementwise)),
        "torch.compile fuses a part of them.", "compile", Confidence::kMedium);
  /// An optimizer in one pass over its parameters takes less.
  constexpr double kMuchOptimizer = 0.15;
  const double optimizer = share_of_window(t.optimizer_kernels, t.window);
  if (optimizer >= kMuchOptimizer)
    rules.add_cheaper(
        "optimizer_kernels", optimizer,
        fmt::format("The optimizer's kernels take {} of the time.", percent(optimizer)),
        "fused=True, or more micro-batches a step.", "fused=True", Confidence::kMedium);
}

}  // namespace

double share_of_window(std::int64_t ns, TimeSpan window) {
  return window.length() > 0 ? static_cast<double>(ns) / static_cast<double>(window.length()) : 0;
}

void KernelShares::bound(double all) {
  for (double* share : {&fp32, &layout, &elementwise}) *share = std::min(*share, all);
}

void KernelShares::add(std::string_view name, double share) {
  const bool half = has_part(name, "bf16") || has_part(name, "f16") || has_part(name, "half") ||
                    has_part(name, "16816") || has_part(name, "1688");
  const bool tensor_cores =
      has_part(name, "tensorop") || has_part(name, "tf32") || has_part(name, "hmma");
  if (has_part(name, "nchwToNhwc") || has_part(name, "nhwcToNchw")) {
    layout += share;
  } else if (!half && !tensor_cores &&
             (has_part(name, "sgemm") || has_part(name, "scudnn") ||
              has_part(name, "_engine<float"))) {
    fp32 += share;
  } else if (has_part(name, "elementwise") || has_part(name, "reduce_kernel") ||
             has_part(name, "oftmax") || has_part(name, "ayer_norm") || has_part(name, "bn_fw") ||
             has_part(name, "bn_bw") || has_part(name, "batch_norm")) {
    elementwise += share;
  }
}

void add_gpu_findings(const TraceTimeline& timeline, const GpuTime& t, const KernelShares& kernels,
                      TraceDiagnosis& d) {
  Rules rules(timeline, d);
  rules.loader(d.idle_of(IdleCause::kLoader),
               ", the GPU idle in " + percent(d.idle_of(IdleCause::kLoader)));
  rules.saving(d.idle_of(IdleCause::kSaving));
  rules.collecting(d.idle_of(IdleCause::kCollecting));
  rules.add("memory_calls", d.idle_of(IdleCause::kAllocation),
            "The GPU idles while memory is taken from or given back to the driver.",
            "no torch.cuda.empty_cache() in the loop; where sizes vary "
            "PYTORCH_ALLOC_CONF=expandable_segments:True.",
            "expandable_segments", Confidence::kHigh);
  std::string often = counted(t.waits.count, "wait") + " of the host for the GPU";
  if (d.steps > 0)
    often = fmt::format("{:.1f} waits of the host for the GPU a step",
                        static_cast<double>(t.waits.count) / static_cast<double>(d.steps));
  if (t.waits.of_it > 0)
    often += fmt::format(" ({} by {})", with_commas(t.waits.of_it), t.waits.operation);
  rules.add("synchronisations", d.idle_of(IdleCause::kSynchronising),
            often + ": behind each the GPU idles until the host has launched again.",
            "no .item(), .cpu(), print(loss) or torch.cuda.synchronize() in every step; gather "
            "losses on the GPU and read them seldom.",
            "", Confidence::kHigh);
  host_bound(t, rules, d);
  copies(t, rules, d);
  rules.add(
      "communication", d.communication,
      fmt::format("Collectives take {} of the time, {} beside computing; waiting for the "
                  "slowest rank is part of it.",
                  percent(d.communication_all), percent(d.communication_all - d.communication)),
      "more micro-batches under no_sync(), a larger batch, or a faster link; if another "
      "rank's collectives are short, that rank is late.",
      "accumulate", Confidence::kMedium);
  rules.add("dependencies", d.idle_of(IdleCause::kDependency),
            "Work that is launched waits for another stream or another GPU while this one idles.",
            "look for stream.wait_stream(), events and CPU offload in the script.", "",
            Confidence::kLow);
  rules.add(
      "graph_gaps", d.idle_of(IdleCause::kGraph),
      "The GPU idles between the kernels of CUDA graphs, which the host does not launch one "
      "by one.",
      "fewer and larger kernels: torch.compile(mode=\"reduce-overhead\") fuses them, a larger "
      "batch fills them.",
      "compile", Confidence::kMedium);
  computing(t, kernels, rules);
  rules.finish("Nothing keeps it waiting.",
               fmt::format("The GPU computes {} of the time and idles {}.", percent(d.compute),
                           percent(d.idle)));
}

void add_host_findings(const TraceTimeline& timeline, TraceDiagnosis& d) {
  Rules rules(timeline, d);
  rules.loader(d.loader, "");
  rules.saving(d.idle_of(IdleCause::kSaving));
  rules.collecting(d.idle_of(IdleCause::kCollecting));
  rules.add(
      "communication", d.communication,
      fmt::format("Gloo's collectives take {} of the time, {} beside operators; waiting for "
                  "the slowest rank is part of it.",
                  percent(d.communication_all), percent(d.communication_all - d.communication)),
      "explain all ranks' traces together: they tell which rank is late.", "accumulate",
      Confidence::kMedium);
  rules.add("python_between_operators", d.idle_of(IdleCause::kPython),
            "No operator runs: Python, NumPy, logging or files.",
            "take it out of the loop, or give each operator more to do by a larger batch; "
            "with_stack=True in the profiler shows the line.",
            "", Confidence::kMedium);
  rules.finish("Nothing else takes its time.",
               fmt::format("No GPU worked; the loop is within operators {} of the time.",
                           percent(d.compute)));
}

}  // namespace stoker
