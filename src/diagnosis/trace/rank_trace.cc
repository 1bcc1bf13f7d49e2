#include "diagnosis/trace/rank_trace.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/text.h"

namespace stoker {
namespace {

constexpr char kBetween = '\x1f';  // between the parts of a key: no name has it

/// "AllReduce" of "ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)".
std::string kind_of_kernel(std::string_view name) {
  const std::size_t mark = name.find("Kernel_");
  if (mark == std::string_view::npos) return "collective";
  name.remove_prefix(mark + std::string_view("Kernel_").size());
  return lower_case(name.substr(0, name.find_first_of("_( ")));
}

/// Within a call of torch.distributed: what is launched, and in which group.
struct Around {
  const CollectiveFacts* facts = nullptr;
  std::string annotated;  ///< "all_to_all" of "nccl:all_to_all"
};
Around around(const TraceTimeline& timeline, const HostSpan* launch) {
  Around found;
  if (launch == nullptr) return found;
  const auto& host = timeline.host();
  constexpr std::string_view kAnnotation = "nccl:";
  for (std::int32_t at = timeline.outer()[static_cast<std::size_t>(launch - host.data())]; at >= 0;
       at = timeline.outer()[static_cast<std::size_t>(at)]) {
    const HostSpan& span = host[static_cast<std::size_t>(at)];
    if (!found.facts && span.collective >= 0)
      found.facts = &timeline.collectives()[static_cast<std::size_t>(span.collective)];
    const std::string& name = timeline.name(span.name);
    if (found.annotated.empty() && name.starts_with(kAnnotation))
      found.annotated = name.substr(kAnnotation.size());
  }
  return found;
}

/// Sends and receives between two ranks: neither is a collective of a group.
bool is_point_to_point(std::string_view kind) {
  return kind == "send" || kind == "recv" || kind.starts_with("send ") ||
         kind.starts_with("recv ") || kind == "isend" || kind == "irecv";
}

class Builder {
 public:
  Builder(const TraceTimeline& timeline, const DiagnosedTrace& trace, RankTrace& rank)
      : timeline_(timeline), trace_(trace), rank_(rank) {}

  void add(TimeSpan time, const std::string& kind, const CollectiveFacts* facts,
           const std::string& lane, std::int64_t at, const SpanSet& busy) {
    if (is_point_to_point(kind)) return void(++rank_.point_to_point);
    if (time.start < trace_.moments.window.start) return;
    const std::string group = facts ? facts->group : std::string();
    // Where a group is told, it is the same on all ranks whatever stream it uses.
    const std::string key = group + kBetween + kind + kBetween + (group.empty() ? lane : "");
    const auto [known, fresh] =
        keys_.try_emplace(key, static_cast<std::uint32_t>(rank_.keys.size()));
    if (fresh) rank_.keys.push_back(key);
    RankCollective c;
    c.key = known->second;
    c.sequence = facts ? facts->sequence : -1;
    c.elements = facts ? facts->elements : -1;
    c.step = timeline_.step_number(at);
    c.time = time;
    const SpanSet alone = SpanSet({time}).without(busy);
    c.alone.assign(alone.spans().begin(), alone.spans().end());
    rank_.collectives.push_back(std::move(c));
  }

  /// What was done from each collective's end to the next one's beginning.
  void finish() {
    std::ranges::stable_sort(rank_.collectives, {},
                             [](const RankCollective& c) { return c.time.start; });
    const TraceMoments& moments = trace_.moments;
    std::int64_t from = moments.window.start;
    for (RankCollective& c : rank_.collectives) {
      const TimeSpan before{from, c.time.start};
      if (before.length() > 0) {
        c.before[0] = moments.computing.length_within(before);
        c.before[1] = moments.copying.length_within(before);
        for (std::size_t i = 0; i < kIdleCauses; ++i)
          c.before[2 + i] = moments.idling[i].length_within(before);
      }
      from = std::max(from, c.time.end);
    }
  }

 private:
  const TraceTimeline& timeline_;
  const DiagnosedTrace& trace_;
  RankTrace& rank_;
  std::unordered_map<std::string, std::uint32_t> keys_;
};

void add_of_gpu(const TraceTimeline& timeline, const DiagnosedTrace& trace, Builder& builder) {
  // Streams have other numbers on each rank, but are used in the same order.
  std::map<std::uint32_t, std::size_t> order;
  for (const GpuSpan& work : *trace.work) {
    if (work.work != GpuWork::kCommunication) continue;
    const std::size_t lane = order.try_emplace(work.stream, order.size()).first->second;
    const HostSpan* launch = timeline.launch(work.correlation);
    const Around call = around(timeline, launch);
    const CollectiveFacts* facts =
        work.collective >= 0 ? &timeline.collectives()[static_cast<std::size_t>(work.collective)]
                             : call.facts;
    const std::string kind = facts                     ? facts->kind
                             : !call.annotated.empty() ? call.annotated
                                                       : kind_of_kernel(timeline.name(work.name));
    builder.add(work.time, kind, facts, std::to_string(lane),
                launch ? launch->time.start : work.time.start, trace.moments.computing);
  }
}

/// Without a GPU: what Gloo's threads did.
void add_of_host(const TraceTimeline& timeline, const TraceMoments& moments, Builder& builder) {
  constexpr std::string_view kGloo = "gloo:";
  const SpanSet busy =
      moments.computing.joined(moments.idling[static_cast<std::size_t>(IdleCause::kLoader)]);
  for (const HostSpan& span : timeline.host()) {
    const std::string& name = timeline.name(span.name);
    if (span.work != HostWork::kAnnotation || !name.starts_with(kGloo)) continue;
    builder.add(span.time, name.substr(kGloo.size()), nullptr, "host", span.time.start, busy);
  }
}

}  // namespace

std::string_view words_of_rank_work(std::size_t work) {
  if (work == 0) return "computes";
  if (work == 1) return "copies";
  if (work == kRankWork) return "late since before the trace";
  return words_of(static_cast<IdleCause>(work - 2));
}

std::string_view name_of_rank_work(std::size_t work) {
  if (work == 0) return "computes";
  if (work == 1) return "copies";
  if (work == kRankWork) return "before_the_trace";
  return name_of(static_cast<IdleCause>(work - 2));
}

std::string kind_of_key(const std::string& key) { return split(key, kBetween)[1]; }

RankTrace rank_trace(const TraceTimeline& timeline, DiagnosedTrace trace) {
  RankTrace rank;
  rank.window = trace.moments.window;
  Builder builder(timeline, trace, rank);
  if (trace.work) add_of_gpu(timeline, trace, builder);
  else add_of_host(timeline, trace.moments, builder);
  builder.finish();
  rank.diagnosis = std::move(trace.diagnosis);
  return rank;
}

}  // namespace stoker
