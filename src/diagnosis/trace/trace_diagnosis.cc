#include "diagnosis/trace/trace_diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/counted.h"
#include "base/percent.h"
#include "base/text.h"
#include "diagnosis/timeline/times.h"
#include "diagnosis/trace/gpu_owners.h"
#include "diagnosis/trace/gpu_time.h"
#include "diagnosis/trace/trace_rules.h"

namespace stoker {
namespace {

/// Steps that the first is left out of: profilers begin within it.
constexpr std::size_t kEnoughSteps = 3;
/// How much longer than the median it takes to be left out.
constexpr double kLongFirst = 1.5;
constexpr std::size_t kMostShares = 8;

/// The steps that count: all, or those behind a first one that took much longer.
std::vector<TimeSpan> counted_steps(const TraceTimeline& timeline, TraceDiagnosis& d) {
  std::vector<TimeSpan> steps = timeline.steps();
  if (steps.size() < kEnoughSteps) return steps;
  std::vector<std::int64_t> lengths;
  for (const TimeSpan& s : steps) lengths.push_back(s.length());
  const std::int64_t median = median_of(lengths);
  if (static_cast<double>(steps.front().length()) <= kLongFirst * static_cast<double>(median))
    return steps;
  d.notes.push_back(fmt::format(
      "the first step, {} beside {} in the median, is left out: the profiler begins within it",
      human_time(at_seconds(steps.front().length()) * kSecond),
      human_time(at_seconds(median) * kSecond)));
  steps.erase(steps.begin());
  return steps;
}

/// From the first of the steps to their end or the GPU's, whichever is later; without steps all
/// that `work` spans.
TimeSpan window_of(const std::vector<TimeSpan>& steps, const std::vector<GpuSpan>& work) {
  TimeSpan all{work.front().time.start, work.front().time.end};
  for (const GpuSpan& w : work) all.end = std::max(all.end, w.time.end);
  if (steps.empty()) return all;
  return {steps.front().start, std::max(all.end, steps.back().end)};
}

/// Time from step to step on the GPU: a host that runs ahead ends its steps long before them.
double gpu_step_seconds(const TraceTimeline& timeline, const std::vector<TimeSpan>& steps,
                        const std::vector<GpuSpan>& work) {
  std::vector<std::int64_t> ends(steps.size(), 0);
  for (const GpuSpan& w : work) {
    const HostSpan* launch = timeline.launch(w.correlation);
    if (!launch) continue;
    const auto next = std::ranges::upper_bound(steps, launch->time.start, {}, &TimeSpan::start);
    if (next == steps.begin() || std::prev(next)->end <= launch->time.start) continue;
    std::int64_t& end = ends[static_cast<std::size_t>(std::prev(next) - steps.begin())];
    end = std::max(end, w.time.end);
  }
  std::vector<std::int64_t> lengths;
  for (std::size_t i = 1; i < ends.size(); ++i)
    if (ends[i - 1] > 0 && ends[i] > ends[i - 1]) lengths.push_back(ends[i] - ends[i - 1]);
  if (lengths.empty())
    for (const TimeSpan& s : steps) lengths.push_back(s.length());
  return at_seconds(median_of(lengths));
}

void keep_largest(
    const TraceTimeline& timeline,
    const std::unordered_map<std::uint32_t, std::pair<std::int64_t, std::int64_t>>& by,
    TimeSpan window, TraceDiagnosis& d) {
  for (const auto& [name, part] : by)
    d.largest.push_back({timeline.name(name), share_of_window(part.first, window), part.second});
  std::ranges::sort(d.largest, [](const TraceShare& a, const TraceShare& b) {
    return a.share != b.share ? a.share > b.share : a.name < b.name;
  });
  if (d.largest.size() > kMostShares) d.largest.resize(kMostShares);
}

std::int64_t loader_time(const TraceTimeline& timeline, TimeSpan window) {
  std::vector<TimeSpan> spans;
  for (const HostSpan& h : timeline.host())
    if (h.work == HostWork::kLoader) spans.push_back(h.time);
  return SpanSet(std::move(spans)).shared(SpanSet({window})).length();
}

void keep_owners(const TraceTimeline& timeline, const std::vector<GpuSpan>& work, TimeSpan window,
                 TraceDiagnosis& d) {
  const GpuOwners owners = gpu_owners(timeline, work, window);
  const auto keep = [&](const std::vector<GpuOwner>& from, std::vector<TraceOwner>& to) {
    for (const GpuOwner& o : from) {
      if (to.size() == kMostShares) break;
      to.push_back({o.name, share_of_window(o.ns, window), share_of_window(o.backward_ns, window),
                    o.count, o.modules});
    }
  };
  keep(owners.operators, d.operators);
  keep(owners.modules, d.modules);
  d.orphan_count = owners.orphans;
  if (owners.all_ns > 0)
    d.orphans = static_cast<double>(owners.orphan_ns) / static_cast<double>(owners.all_ns);
}

TraceMoments diagnose_gpu(const TraceTimeline& timeline, std::int64_t device,
                          const std::vector<GpuSpan>& work, TraceDiagnosis& d) {
  const std::vector<TimeSpan> steps = counted_steps(timeline, d);
  const TimeSpan window = window_of(steps, work);
  GpuTime t = gpu_time(timeline, work, window);
  d.device = device;
  d.seconds = at_seconds(window.length());
  d.steps = static_cast<std::int64_t>(steps.size());
  if (!steps.empty()) d.step_s = gpu_step_seconds(timeline, steps, work);
  const auto share = [&](std::int64_t ns) { return share_of_window(ns, window); };
  d.compute = share(t.compute);
  d.communication = share(t.communication);
  d.communication_all = share(t.communication_all);
  d.copies = share(t.copies);
  for (std::size_t i = 0; i < kIdleCauses; ++i) d.idle_by[i] = share(t.idle[i]);
  d.idle = std::max(0.0, 1 - d.compute - d.communication - d.copies);
  d.loader = share(loader_time(timeline, window));
  std::unordered_map<std::uint32_t, std::pair<std::int64_t, std::int64_t>> by;
  for (const GpuSpan& w : work) {
    const std::int64_t inside =
        std::min(w.time.end, window.end) - std::max(w.time.start, window.start);
    if (inside <= 0) continue;
    by[w.name].first += inside;
    ++by[w.name].second;
  }
  KernelShares kernels;
  for (const auto& [name, part] : by) kernels.add(timeline.name(name), share(part.first));
  kernels.bound(d.compute);
  keep_largest(timeline, by, window, d);
  add_gpu_findings(timeline, t, kernels, d);
  keep_owners(timeline, work, window, d);
  if (d.orphan_count > 0)
    d.notes.push_back(fmt::format(
        "{} of the GPU's time at work ({}) has no launch in the trace: launched before it, or the "
        "profiler lost the call; {} end with such work",
        fine_percent(d.orphans), counted(d.orphan_count, "piece") + " of work",
        counted(t.without_launch, "idle stretch")));
  return std::move(t.moments);
}

/// What the profiler took of the window, where that is worth a word.
void note_overhead(const TraceTimeline& timeline, TimeSpan window, TraceDiagnosis& d) {
  constexpr double kWorthSaying = 0.01;
  d.overhead = share_of_window(SpanSet(timeline.overhead()).length_within(window), window);
  if (d.overhead >= kWorthSaying)
    d.notes.push_back(
        fmt::format("the profiler itself was at work {} of the time: a loop without "
                    "it is faster",
                    fine_percent(d.overhead)));
}

TraceMoments diagnose_host(const TraceTimeline& timeline, TraceDiagnosis& d) {
  const std::vector<TimeSpan> steps = counted_steps(timeline, d);
  TimeSpan window = timeline.host().front().time;
  std::vector<TimeSpan> all_operators, saves, collects, gloo;
  for (const HostSpan& h : timeline.host()) {
    window.end = std::max(window.end, h.time.end);
    if (h.work == HostWork::kSave) saves.push_back(h.time);
    if (h.work == HostWork::kCollect) collects.push_back(h.time);
    // What runs on threads of autograd's keeps the loop waiting for them: it is no Python.
    if (h.work == HostWork::kOperator) all_operators.push_back(h.time);
    if (h.work == HostWork::kAnnotation && timeline.name(h.name).starts_with("gloo:"))
      gloo.push_back(h.time);
  }
  if (!steps.empty()) window = {steps.front().start, steps.back().end};
  d.seconds = at_seconds(window.length());
  d.steps = static_cast<std::int64_t>(steps.size());
  std::vector<std::int64_t> lengths;
  for (const TimeSpan& s : steps) lengths.push_back(s.length());
  d.step_s = at_seconds(median_of(lengths));
  std::vector<TimeSpan> loader;
  for (const HostSpan& h : timeline.host())
    if (h.work == HostWork::kLoader) loader.push_back(h.time);
  const SpanSet whole({window});
  const SpanSet loads = SpanSet(std::move(loader)).shared(whole);
  const SpanSet saving = SpanSet(std::move(saves)).shared(whole).without(loads);
  const SpanSet collecting =
      SpanSet(std::move(collects)).shared(whole).without(loads).without(saving);
  const SpanSet computes = SpanSet(std::move(all_operators))
                               .shared(whole)
                               .without(loads)
                               .without(saving)
                               .without(collecting);
  const auto share = [&](const SpanSet& set) { return share_of_window(set.length(), window); };
  d.loader = share(loads);
  d.compute = share(computes);
  const SpanSet communicates = SpanSet(std::move(gloo)).shared(whole);
  const SpanSet waits = communicates.without(loads).without(saving).without(computes);
  d.communication = share(waits);
  d.communication_all = share(communicates);
  d.idle_by[static_cast<std::size_t>(IdleCause::kLoader)] = d.loader;
  d.idle_by[static_cast<std::size_t>(IdleCause::kSaving)] = share(saving);
  d.idle_by[static_cast<std::size_t>(IdleCause::kPython)] =
      std::max(0.0, 1 - d.loader - d.compute - share(saving) - share(collecting) - d.communication);
  d.idle_by[static_cast<std::size_t>(IdleCause::kCollecting)] = share(collecting);
  // Own time of operators: theirs less that of what they call, beyond the loader.
  const auto& host = timeline.host();
  const std::vector<std::int32_t>& outer = timeline.outer();
  std::vector<std::int64_t> own(host.size());
  for (std::size_t i = 0; i < host.size(); ++i) {
    if (host[i].work != HostWork::kOperator) continue;
    own[i] += host[i].time.length();
    for (std::int32_t at = outer[i]; at >= 0; at = outer[static_cast<std::size_t>(at)]) {
      const auto parent = static_cast<std::size_t>(at);
      if (host[parent].work == HostWork::kLoader) own[i] = 0;
      if (host[parent].work != HostWork::kOperator) continue;
      own[parent] -= host[i].time.length();
      break;
    }
  }
  std::unordered_map<std::uint32_t, std::pair<std::int64_t, std::int64_t>> by;
  for (std::size_t i = 0; i < host.size(); ++i) {
    const TimeSpan& time = host[i].time;
    if (host[i].work != HostWork::kOperator || time.start < window.start || time.end > window.end)
      continue;
    by[host[i].name].first += std::max<std::int64_t>(0, own[i]);
    ++by[host[i].name].second;
  }
  keep_largest(timeline, by, window, d);
  add_host_findings(timeline, d);
  TraceMoments moments;
  moments.window = window;
  moments.idling[static_cast<std::size_t>(IdleCause::kPython)] =
      whole.without(loads).without(saving).without(collecting).without(computes).without(waits);
  moments.idling[static_cast<std::size_t>(IdleCause::kCollecting)] = collecting;
  moments.communicating = communicates;
  moments.idling[static_cast<std::size_t>(IdleCause::kLoader)] = loads;
  moments.idling[static_cast<std::size_t>(IdleCause::kSaving)] = saving;
  moments.computing = computes;
  return moments;
}

}  // namespace

std::string_view name_of(IdleCause cause) {
  constexpr std::array<std::string_view, kIdleCauses> kNames{
      "waits_for_data",    "saving",           "garbage_collection", "allocation",
      "pageable_copies",   "synchronisations", "optimizer",          "launching",
      "between_operators", "launch_latency",   "dependencies",       "within_graph"};
  return kNames[static_cast<std::size_t>(cause)];
}

std::string_view words_of(IdleCause cause) {
  constexpr std::array<std::string_view, kIdleCauses> kWords{"the loop waits for data",
                                                             "the loop saves",
                                                             "Python collects garbage",
                                                             "memory is allocated or freed",
                                                             "behind a copy from pageable memory",
                                                             "behind a synchronisation",
                                                             "the optimizer is launched",
                                                             "operators are launched",
                                                             "Python between operators",
                                                             "launch latency",
                                                             "another stream or GPU",
                                                             "between a CUDA graph's kernels"};
  return kWords[static_cast<std::size_t>(cause)];
}

Result<TraceDiagnosis> diagnose_trace(const TraceTimeline& timeline,
                                      std::optional<std::int64_t> device,
                                      const std::string& where) {
  return std::move(TRY(diagnose_in_full(timeline, device, where)).diagnosis);
}

Result<DiagnosedTrace> diagnose_in_full(const TraceTimeline& timeline,
                                        std::optional<std::int64_t> device,
                                        const std::string& where) {
  DiagnosedTrace full;
  TraceDiagnosis& d = full.diagnosis;
  const std::vector<GpuSpan>* work = nullptr;
  std::int64_t chosen = 0, most = -1;
  for (const auto& [id, spans] : timeline.gpus()) {
    std::int64_t busy = 0;
    for (const GpuSpan& s : spans) busy += s.time.length();
    if (device ? id != *device : busy <= most) continue;
    work = &spans, chosen = id, most = busy;
  }
  if (device && !work)
    return fail(ErrorCode::kBadInput,
                fmt::format("no work of GPU {} is in it; {}", *device,
                            timeline.gpus().empty()
                                ? std::string("it has none of any GPU")
                                : fmt::format("GPU {} has some", timeline.gpus().begin()->first)),
                where);
  if (!work && timeline.host().empty())
    return fail(ErrorCode::kUnsupported, "holds neither operators nor kernels", where);
  full.moments = work ? diagnose_gpu(timeline, chosen, *work, d) : diagnose_host(timeline, d);
  full.work = work;
  note_overhead(timeline, full.moments.window, d);
  if (timeline.gpus().size() > 1)
    d.notes.push_back(
        fmt::format("{} GPUs worked; this is number {}: --device", timeline.gpus().size(), chosen));
  if (timeline.steps().empty())
    d.notes.emplace_back(
        "no ProfilerStep: call prof.step() once a step, so that steps can be told apart");
  if (timeline.untimed() > 0)
    d.notes.push_back(counted(timeline.untimed(), "event") +
                      " without a time that can be, left out");
  return full;
}

}  // namespace stoker
