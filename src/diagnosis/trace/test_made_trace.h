#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <string>

#include "diagnosis/trace/ranks_diagnosis.h"

/// Traces made of any bytes: whatever the times of events are, there is a diagnosis, with shares
/// that are shares.
namespace stoker::made_trace {

/// Takes bytes one after the other; zeros behind the last.
class Bytes8 {
 public:
  Bytes8(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  std::uint8_t next() { return at_ < size_ ? data_[at_++] : std::uint8_t{0}; }
  [[nodiscard]] bool more() const { return at_ < size_; }

 private:
  const std::uint8_t* data_;
  std::size_t size_, at_ = 0;
};

struct Kind {
  const char *category, *name;
};
inline constexpr std::array<Kind, 20> kKinds{
    {{"kernel", "gemm"},
     {"kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)"},
     {"kernel", "ncclKernel_SendRecv(x)"},
     {"gpu_memcpy", "Memcpy HtoD (Pageable -> Device)"},
     {"gpu_memcpy", "Memcpy DtoH (Device -> Pageable)"},
     {"gpu_memset", "Memset (Device)"},
     {"cuda_runtime", "cudaLaunchKernel"},
     {"cuda_runtime", "cudaMemcpyAsync"},
     {"cuda_runtime", "cudaDeviceSynchronize"},
     {"cuda_runtime", "cudaMalloc"},
     {"cpu_op", "aten::mm"},
     {"cpu_op", "record_param_comms"},
     {"user_annotation", "ProfilerStep#3"},
     {"user_annotation", "ProfilerStep#4"},
     {"user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"},
     {"user_annotation", "Optimizer.step#SGD.step"},
     {"user_annotation", "gloo:all_reduce"},
     {"user_annotation", "nccl:all_reduce"},
     {"python_function", "torch/serialization.py(9): save"},
     {"python_function", "nn.Module: Linear_0"}}};

/// Near to each other as a rule, at the ends of what a number holds now and then.
inline std::int64_t time_of(Bytes8& bytes) {
  const std::uint8_t how = bytes.next();
  const std::int64_t value = bytes.next() * 256 + bytes.next();
  if (how < 250) return value * 100 + how;
  constexpr std::array<std::int64_t, 6> kFar{
      std::int64_t{1} << 61, -(std::int64_t{1} << 61), std::int64_t{1} << 40, -1, 0,
      std::int64_t{1} << 53};
  return kFar[how % kFar.size()];
}

inline RankTrace made_rank(Bytes8& bytes, std::int64_t rank) {
  TraceTimeline timeline;
  for (int events = bytes.next() % 64; events > 0 && bytes.more(); --events) {
    const Kind kind = kKinds[bytes.next() % kKinds.size()];
    ProfilerEvent event;
    event.category = kind.category;
    event.name = kind.name;
    event.phase = "X";
    const std::uint8_t where = bytes.next();
    event.process = std::to_string(where % 2);
    event.thread = std::to_string(where / 2 % 3);
    event.start_ns = time_of(bytes);
    event.duration_ns = time_of(bytes);
    event.args.emplace_back("correlation", bytes.next() % 16);
    if (where > 200) event.args.emplace_back("Seq", where % 4);
    if (where > 180) event.texts.emplace_back("Collective name", "allreduce");
    if (where > 190) event.texts.emplace_back("Process Group Name", "0");
    timeline.take(event);
  }
  timeline.finish();
  auto trace = diagnose_in_full(timeline, {}, "made");
  RankTrace kept;
  if (trace) kept = rank_trace(timeline, std::move(*trace));
  kept.file = std::to_string(rank);
  kept.rank = rank;
  kept.content = static_cast<std::uint64_t>(rank);
  return kept;
}

inline bool is_share(double value) {
  constexpr double kRounding = 1e-6;
  return std::isfinite(value) && value >= -kRounding && value <= 1 + kRounding;
}

/// What is wrong with the diagnosis of these bytes; empty: nothing.
inline std::string fault_of(const std::uint8_t* data, std::size_t size) {
  Bytes8 bytes(data, size);
  std::vector<RankTrace> ranks;
  const int many = 1 + bytes.next() % 4;
  for (int rank = 0; rank < many; ++rank) {
    ranks.push_back(made_rank(bytes, rank));
    const TraceDiagnosis& d = ranks.back().diagnosis;
    double idle = 0;
    for (const double part : d.idle_by) idle += part;
    if (!is_share(d.compute) || !is_share(d.communication) || !is_share(d.copies) ||
        !is_share(d.idle) || !is_share(idle) || !is_share(d.loader))
      return "a share of a trace is none";
    if (d.device && std::abs(d.compute + d.communication + d.copies + d.idle - 1) > 1e-6 &&
        d.seconds > 0)
      return "the shares are not the whole";
    for (const JobFinding& f : d.findings)
      if (!is_share(f.lost) || f.cure.empty()) return "a finding of a trace: " + f.name;
  }
  const RanksDiagnosis d = diagnose_ranks(std::move(ranks));
  for (const RankShares& r : d.ranks) {
    if (!is_share(r.waiting) || !is_share(r.transfer) || !is_share(r.blamed) ||
        !is_share(r.other_communication) || !std::isfinite(r.behind_s) || r.behind_s < 0)
      return "a share of a rank is none";
    if (r.last_at > r.collectives) return "a rank came last more often than at all";
  }
  for (const JobFinding& f : d.findings)
    if (!is_share(f.lost) || f.cure.empty()) return "a finding of ranks: " + f.name;
  return d.verdict.empty() ? "there is no verdict" : "";
}

}  // namespace stoker::made_trace
