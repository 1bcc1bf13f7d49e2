#include "diagnosis/trace/gpu_time.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/text.h"

namespace stoker {
namespace {

/// A kernel on an empty queue begins 3 to 10 us behind its launch (a launch's latency on Kepler to
/// Hopper); what waits longer waits for something.
constexpr std::int64_t kLatencyNs = 20'000;
/// A GPU that stops this soon behind a wait's end is what the host waited for.
constexpr std::int64_t kBehindWaitNs = 5'000;

TimeSpan within(TimeSpan span, TimeSpan window) {
  return {std::max(span.start, window.start), std::min(span.end, window.end)};
}

SpanSet host_spans(const TraceTimeline& timeline, TimeSpan window,
                   std::initializer_list<HostWork> kinds) {
  std::vector<TimeSpan> spans;
  for (const HostSpan& h : timeline.host())
    if (std::ranges::find(kinds, h.work) != kinds.end()) spans.push_back(within(h.time, window));
  return SpanSet(std::move(spans));
}

/// Stretches in which the host waited for the GPU: by a call that says so, or by a copy whose call
/// returned only when the copy was done.
struct Waits {
  std::vector<TimeSpan> pageable, synchronising;
};
Waits waits_of(const TraceTimeline& timeline, const std::vector<GpuSpan>& work) {
  Waits waits;
  const auto add = [](std::vector<TimeSpan>& to, TimeSpan call) {
    to.push_back({call.start, call.end + kBehindWaitNs});
  };
  for (const HostSpan& h : timeline.host())
    if (h.work == HostWork::kSynchronise) add(waits.synchronising, h.time);
  for (const GpuSpan& w : work) {
    const bool in = w.work == GpuWork::kCopyInPageable;
    if (!in && w.work != GpuWork::kCopyOut) continue;
    const HostSpan* call = timeline.launch(w.correlation);
    if (call && call->time.end >= w.time.end)
      add(in ? waits.pageable : waits.synchronising, call->time);
  }
  return waits;
}

/// When each CUDA graph's first kernel began, by its correlation.
std::unordered_map<std::int64_t, std::int64_t> graph_starts(const TraceTimeline& timeline,
                                                            const std::vector<GpuSpan>& work) {
  std::unordered_map<std::int64_t, std::int64_t> starts;
  for (const GpuSpan& w : work) {
    const HostSpan* launch = timeline.launch(w.correlation);
    if (launch && has_part(timeline.name(launch->name), "GraphLaunch"))
      starts.try_emplace(w.correlation, w.time.start);
  }
  return starts;
}

/// The stretches of idle time by whether the host had yet to launch, and what came before.
struct Gaps {
  std::vector<TimeSpan> after_pageable, after_wait, other;  ///< until the next launch's end
  std::vector<TimeSpan> latency, dependency;                ///< behind it
  std::vector<TimeSpan> graph;                              ///< within a CUDA graph, one launch
  std::int64_t without_launch = 0;
};
Gaps gaps_of(const TraceTimeline& timeline, const std::vector<GpuSpan>& work, const SpanSet& idle,
             const Waits& waits) {
  const SpanSet pageable(waits.pageable), waited(waits.synchronising);
  const auto graphs = graph_starts(timeline, work);
  Gaps gaps;
  for (const TimeSpan& gap : idle.spans()) {
    // The work that ends the gap; several may begin at once.
    auto next =
        std::ranges::lower_bound(work, gap.end, {}, [](const GpuSpan& w) { return w.time.start; });
    const HostSpan* launch = nullptr;
    const auto graph = next == work.end() ? graphs.end() : graphs.find(next->correlation);
    if (graph != graphs.end() && next->time.start == gap.end && graph->second < gap.start) {
      gaps.graph.push_back(gap);
      continue;
    }
    const bool ends = next != work.end() && next->time.start == gap.end;
    for (; ends && !launch && next != work.end() && next->time.start == gap.end; ++next)
      launch = timeline.launch(next->correlation);
    if (ends && !launch) ++gaps.without_launch;
    const std::int64_t host_end =
        launch ? std::clamp(launch->time.end, gap.start, gap.end) : gap.end;
    const std::int64_t rest = gap.end - host_end;
    (rest <= kLatencyNs ? gaps.latency : gaps.dependency).push_back({host_end, gap.end});
    auto& part = pageable.holds(gap.start) ? gaps.after_pageable
                 : waited.holds(gap.start) ? gaps.after_wait
                                           : gaps.other;
    part.push_back({gap.start, host_end});
  }
  return gaps;
}

/// How often the host waits, and in which operator: the outermost around the call.
HostWaits count_waits(const TraceTimeline& timeline, TimeSpan window) {
  const auto& host = timeline.host();
  const std::vector<std::int32_t>& outer = timeline.outer();
  HostWaits waits;
  std::map<std::string, std::int64_t> by_operator;
  for (std::size_t i = 0; i < host.size(); ++i) {
    if (host[i].work != HostWork::kSynchronise || host[i].time.start < window.start ||
        host[i].time.end > window.end)
      continue;
    std::string name = timeline.name(host[i].name);
    for (std::int32_t at = outer[i]; at >= 0; at = outer[static_cast<std::size_t>(at)]) {
      const HostSpan& span = host[static_cast<std::size_t>(at)];
      if (span.work == HostWork::kOperator) name = timeline.name(span.name);
    }
    ++waits.count;
    ++by_operator[name];
  }
  for (const auto& [name, count] : by_operator)
    if (count > waits.of_it) waits.operation = name, waits.of_it = count;
  return waits;
}

/// The annotation of the script in which most of `time` lies.
void name_annotation(const TraceTimeline& timeline, const SpanSet& time, GpuTime& t) {
  std::map<std::uint32_t, std::vector<TimeSpan>> by_name;
  for (const HostSpan& h : timeline.host())
    if (h.work == HostWork::kAnnotation) by_name[h.name].push_back(h.time);
  for (auto& [name, spans] : by_name) {
    const std::int64_t part = SpanSet(std::move(spans)).shared(time).length();
    if (part > t.python_in_it) t.python_in = timeline.name(name), t.python_in_it = part;
  }
}

}  // namespace

std::int64_t median_of(std::vector<std::int64_t> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

GpuTime gpu_time(const TraceTimeline& timeline, const std::vector<GpuSpan>& work, TimeSpan window) {
  GpuTime t;
  t.window = window;
  std::vector<TimeSpan> compute, of_optimizer, communication, copies, pageable, copies_in;
  std::vector<std::int64_t> lengths;
  const SpanSet optimizer = host_spans(timeline, window, {HostWork::kOptimizer});
  for (const GpuSpan& w : work) {
    const TimeSpan time = within(w.time, window);
    if (time.end < time.start) continue;
    switch (w.work) {
      case GpuWork::kCompute: {
        compute.push_back(time);
        lengths.push_back(w.time.length());
        const HostSpan* launch = timeline.launch(w.correlation);
        if (launch && optimizer.holds(launch->time.start)) of_optimizer.push_back(time);
        break;
      }
      case GpuWork::kCommunication:
        communication.push_back(time);
        break;
      case GpuWork::kCopyInPageable:
        pageable.push_back(time);
        [[fallthrough]];
      case GpuWork::kCopyIn:
        copies_in.push_back(time);
        [[fallthrough]];
      case GpuWork::kCopyOut:
      case GpuWork::kCopyWithin:
        copies.push_back(time);
        break;
    }
  }
  t.kernels = static_cast<std::int64_t>(lengths.size());
  t.optimizer_kernels = SpanSet(std::move(of_optimizer)).length();
  t.median_kernel = median_of(std::move(lengths));
  t.moments.window = window;
  t.moments.computing = SpanSet(std::move(compute));
  t.moments.communicating = SpanSet(std::move(communication));
  const SpanSet &computes = t.moments.computing, &communicates = t.moments.communicating;
  const SpanSet copying(std::move(copies));
  const SpanSet kernels = computes.joined(communicates);
  t.compute = computes.length();
  t.communication_all = communicates.length();
  t.communication = communicates.without(computes).length();
  t.moments.copying = copying.without(kernels);
  t.copies = t.moments.copying.length();
  t.pageable = SpanSet(std::move(pageable)).without(kernels).length();
  t.copies_in = SpanSet(std::move(copies_in)).without(kernels).length();
  const SpanSet idle = SpanSet({window}).without(kernels.joined(copying));

  const Gaps gaps = gaps_of(timeline, work, idle, waits_of(timeline, work));
  const auto give = [&](IdleCause cause, const SpanSet& when) {
    SpanSet& all = t.moments.idling[static_cast<std::size_t>(cause)];
    all = all.joined(when);
  };
  give(IdleCause::kLatency, SpanSet(gaps.latency));
  give(IdleCause::kDependency, SpanSet(gaps.dependency));
  give(IdleCause::kGraph, SpanSet(gaps.graph));
  t.without_launch = gaps.without_launch;
  SpanSet after_pageable(gaps.after_pageable), after_wait(gaps.after_wait), other(gaps.other);
  const auto take = [&](IdleCause cause, std::initializer_list<HostWork> kinds) {
    const SpanSet during = host_spans(timeline, window, kinds);
    for (SpanSet* part : {&after_pageable, &after_wait, &other}) {
      give(cause, part->shared(during));
      *part = part->without(during);
    }
  };
  take(IdleCause::kLoader, {HostWork::kLoader});
  take(IdleCause::kSaving, {HostWork::kSave});
  take(IdleCause::kCollecting, {HostWork::kCollect});
  take(IdleCause::kAllocation, {HostWork::kAllocate});
  give(IdleCause::kPageableCopy, after_pageable);
  give(IdleCause::kSynchronising, after_wait);
  after_pageable = after_wait = SpanSet();
  take(IdleCause::kOptimizer, {HostWork::kOptimizer});
  take(IdleCause::kLaunching, {HostWork::kOperator, HostWork::kCall, HostWork::kSynchronise});
  give(IdleCause::kPython, other);
  for (std::size_t i = 0; i < kIdleCauses; ++i) t.idle[i] = t.moments.idling[i].length();
  name_annotation(timeline, other, t);
  t.waits = count_waits(timeline, window);
  return t;
}

}  // namespace stoker
