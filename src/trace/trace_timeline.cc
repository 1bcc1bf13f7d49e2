#include "trace/trace_timeline.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>

#include "base/text.h"

namespace stoker {
namespace {

/// A trace of a day; what claims to take longer overflowed.
constexpr std::int64_t kLongest = 86'400LL * 1'000'000'000;

/// Names of the kernels of collectives: NCCL, and RCCL, which keeps them.
bool is_communication(std::string_view kernel) {
  return kernel.starts_with("nccl") || has_part(kernel, "ncclKernel") ||
         has_part(kernel, "ncclDevKernel") || has_part(kernel, "rccl");
}

/// A function of Python that writes a checkpoint: its file and name, as with_stack=True tells them.
bool is_save(std::string_view name) {
  for (const std::string_view end : {": save_checkpoint", ": _save_checkpoint", ": save_pretrained",
                                     ": save_file", ": async_save"})
    if (name.ends_with(end)) return true;
  return name.ends_with(": save") && (has_part(name, "torch/serialization.py") ||
                                      has_part(name, "torch/distributed/checkpoint"));
}

std::optional<HostWork> python_work(std::string_view name) {
  if (name.starts_with("nn.Module: ")) return HostWork::kModule;
  if (name == "Python GC" || name == "<built-in function collect>" ||
      name == "<built-in method collect of module object>")
    return HostWork::kCollect;
  if (is_save(name)) return HostWork::kSave;
  return std::nullopt;
}

GpuWork copy_work(std::string_view name) {
  if (has_part(name, "HtoD") || has_part(name, "HostToDevice"))
    return has_part(name, "Pageable") ? GpuWork::kCopyInPageable : GpuWork::kCopyIn;
  if (has_part(name, "DtoH") || has_part(name, "DeviceToHost")) return GpuWork::kCopyOut;
  return GpuWork::kCopyWithin;
}

HostWork call_work(std::string_view name) {
  if (name.ends_with("Synchronize") || name == "cudaMemcpy" || name == "hipMemcpy" ||
      name == "hipMemcpyWithStream")
    return HostWork::kSynchronise;
  for (const std::string_view vendor : {"cuda", "hip", "cu"}) {
    if (!name.starts_with(vendor)) continue;
    const std::string_view call = name.substr(vendor.size());
    if (call.starts_with("Malloc") || call.starts_with("Free") || call.starts_with("HostAlloc") ||
        call.starts_with("HostRegister") || call.starts_with("MemAlloc") ||
        call.starts_with("MemCreate") || call.starts_with("MemMap") ||
        call.starts_with("MemUnmap") || call.starts_with("HostMalloc"))
      return HostWork::kAllocate;
  }
  return HostWork::kCall;
}

}  // namespace

void TraceTimeline::restart() { *this = TraceTimeline(); }

std::uint32_t TraceTimeline::name_id(const std::string& name) {
  const auto [at, fresh] = name_ids_.try_emplace(name, static_cast<std::uint32_t>(names_.size()));
  if (fresh) names_.push_back(name);
  return at->second;
}

std::uint32_t TraceTimeline::thread_id(const ProfilerEvent& event) {
  return thread_ids_
      .try_emplace(event.process + '/' + event.thread,
                   static_cast<std::uint32_t>(thread_ids_.size()))
      .first->second;
}

void TraceTimeline::take_gpu(const ProfilerEvent& event, GpuWork work, TimeSpan time) {
  std::int64_t device = event.arg("device").value_or(0);
  if (!event.arg("device")) {
    const std::string& process = event.process;
    if (!process.empty() && process.size() < 4 &&
        std::ranges::all_of(process, [](char c) { return c >= '0' && c <= '9'; }))
      device = std::stoll(process);
  }
  const bool collective = work == GpuWork::kCommunication;
  gpus_[device].push_back({time, name_id(event.name), thread_id(event), work,
                           collective ? collective_of(event) : -1,
                           event.arg("correlation").value_or(0)});
}

std::int32_t TraceTimeline::collective_of(const ProfilerEvent& event) {
  const std::string_view kind = event.text("Collective name");
  if (kind.empty()) return -1;
  const std::string_view group = event.text("Process Group Name");
  collectives_.push_back(
      {lower_case(kind),
       group.empty() ? std::string()
                     : std::string(group) + ' ' + std::string(event.text("Process Group Ranks")),
       event.arg("Seq").value_or(-1), event.arg("In msg nelems").value_or(-1)});
  return static_cast<std::int32_t>(collectives_.size()) - 1;
}

void TraceTimeline::take_host(const ProfilerEvent& event, HostWork work, TimeSpan time) {
  const bool collective = work == HostWork::kOperator && event.name == "record_param_comms";
  host_.push_back(
      {time, name_id(event.name), thread_id(event), work, collective ? collective_of(event) : -1});
  if (work == HostWork::kOperator) {
    const std::int64_t sequence = event.arg("Sequence number").value_or(-1);
    if (sequence >= 0 && sequence <= std::numeric_limits<std::int32_t>::max())
      host_.back().sequence = static_cast<std::int32_t>(sequence);
  }
  const bool call = has_part(event.category, "untime") || has_part(event.category, "driver");
  correlations_.push_back(call ? event.arg("correlation").value_or(0) : 0);
}

void TraceTimeline::take_annotation(const ProfilerEvent& event, TimeSpan time, HostWork otherwise) {
  const std::string& name = event.name;
  constexpr std::string_view kStep = "ProfilerStep#";
  if (name.starts_with(kStep)) {
    std::int64_t number = static_cast<std::int64_t>(steps_.size());
    (void)std::from_chars(name.data() + kStep.size(), name.data() + name.size(), number);
    steps_.push_back(time);
    step_numbers_.push_back(number);
  } else if (name.starts_with("enumerate(DataLoader)#")) {
    own_loading_ = own_loading_ || has_part(name, "_SingleProcess");
    take_host(event, HostWork::kLoader, time);
  } else if (name.starts_with("Optimizer.step#") || name.starts_with("Optimizer.zero_grad#")) {
    take_host(event, HostWork::kOptimizer, time);
  } else {
    take_host(event, otherwise, time);
  }
}

void TraceTimeline::take(const ProfilerEvent& event) {
  if (event.phase != "X") return;
  // Capital letters are those of PyTorch before 1.12.
  const std::string kind = lower_case(event.category);
  enum class Where : std::uint8_t { kGpu, kHost, kAnnotation, kOverhead } where = Where::kGpu;
  GpuWork gpu = GpuWork::kCompute;
  HostWork host = HostWork::kOperator;
  if (kind == "kernel") {
    gpu = is_communication(event.name) ? GpuWork::kCommunication : GpuWork::kCompute;
  } else if (kind == "gpu_memcpy" || kind == "memcpy") {
    gpu = copy_work(event.name);
  } else if (kind == "gpu_memset" || kind == "memset") {
    gpu = GpuWork::kCompute;
  } else if (kind.ends_with("_runtime") || kind.ends_with("_driver") || kind == "runtime") {
    where = Where::kHost;
    host = call_work(event.name);
  } else if (kind == "cpu_op" || kind == "operator") {
    where = Where::kAnnotation;
  } else if (kind == "user_annotation") {
    where = Where::kAnnotation;
    host = HostWork::kAnnotation;
  } else if (kind == "python_function" || kind == "python_gc") {
    const std::optional<HostWork> work = python_work(event.name);
    if (!work) return;
    where = Where::kHost;
    host = *work;
  } else if (kind == "overhead") {
    where = Where::kOverhead;
  } else {
    return;
  }
  if (!event.start_ns || !event.duration_ns || *event.duration_ns < 0) return void(++untimed_);
  const TimeSpan time{*event.start_ns, *event.start_ns + std::min(*event.duration_ns, kLongest)};
  if (where == Where::kOverhead) overhead_.push_back(time);
  else if (where == Where::kGpu) take_gpu(event, gpu, time);
  else if (where == Where::kAnnotation) take_annotation(event, time, host);
  else take_host(event, host, time);
}

void TraceTimeline::finish() {
  std::vector<std::uint32_t> order(host_.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) {
    const TimeSpan &x = host_[a].time, &y = host_[b].time;
    return x.start != y.start ? x.start < y.start : x.end > y.end;
  });
  std::vector<HostSpan> sorted;
  sorted.reserve(host_.size());
  for (const std::uint32_t i : order) {
    if (correlations_[i] != 0)
      launches_.try_emplace(correlations_[i], static_cast<std::uint32_t>(sorted.size()));
    sorted.push_back(host_[i]);
  }
  host_ = std::move(sorted);
  correlations_.clear();
  outer_ = enclosing(host_);
  std::vector<std::pair<std::int64_t, std::size_t>> by_start;
  for (std::size_t i = 0; i < steps_.size(); ++i) by_start.emplace_back(steps_[i].start, i);
  std::ranges::sort(by_start);
  std::vector<TimeSpan> steps;
  std::vector<std::int64_t> numbers;
  for (const auto& [start, i] : by_start) {
    steps.push_back(steps_[i]);
    numbers.push_back(step_numbers_[i]);
  }
  steps_ = std::move(steps);
  step_numbers_ = std::move(numbers);
  for (auto& [device, spans] : gpus_)
    std::ranges::stable_sort(spans, {}, [](const GpuSpan& s) { return s.time.start; });
}

const HostSpan* TraceTimeline::launch(std::int64_t correlation) const {
  const auto at = correlation == 0 ? launches_.end() : launches_.find(correlation);
  return at == launches_.end() ? nullptr : &host_[at->second];
}

std::int64_t TraceTimeline::step_number(std::int64_t moment) const {
  const auto next = std::ranges::upper_bound(steps_, moment, {}, &TimeSpan::start);
  return next == steps_.begin()
             ? -1
             : step_numbers_[static_cast<std::size_t>(next - steps_.begin()) - 1];
}

std::vector<std::int32_t> enclosing(const std::vector<HostSpan>& spans) {
  std::vector<std::int32_t> outer(spans.size(), -1);
  std::unordered_map<std::uint32_t, std::vector<std::int32_t>> open;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    auto& stack = open[spans[i].thread];
    while (!stack.empty() &&
           spans[static_cast<std::size_t>(stack.back())].time.end < spans[i].time.end)
      stack.pop_back();
    if (!stack.empty()) outer[i] = stack.back();
    stack.push_back(static_cast<std::int32_t>(i));
  }
  return outer;
}

}  // namespace stoker
