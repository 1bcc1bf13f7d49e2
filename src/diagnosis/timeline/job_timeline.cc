#include "diagnosis/timeline/job_timeline.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "diagnosis/timeline/rank_track.h"

namespace stoker {
namespace {

constexpr double kNanosASecond = 1e9;
/// Stretches begin at a second; when there are this many, neighbours are joined.
constexpr std::size_t kMostStretches = 2048;

struct StateName {
  std::string_view name, words;
};
constexpr std::array<StateName, kJobStates> kStateNames{{
    {"computes", "computes"},
    {"waits_for_data", "waits for data"},
    {"starts_workers", "starts workers"},
    {"waits_for_core", "waits for a core"},
    {"throttled", "held by the CPU quota"},
    {"saves", "saves"},
    {"reads", "waits for storage"},
    {"waits_for_device", "waits for the device"},
    {"waits_for_thread", "waits for other threads"},
    {"talks", "waits for other processes"},
    {"sleeps", "sleeps"},
    {"elsewhere", "unknown"},
}};

double at_seconds(std::int64_t ns) { return static_cast<double>(ns) / kNanosASecond; }

void join(Stretch& a, const Stretch& b) {
  const double total = a.seconds + b.seconds;
  const auto mean = [&](double x, double y) {
    if (x < 0 || y < 0) return std::max(x, y);
    return total > 0 ? (x * a.seconds + y * b.seconds) / total : 0.0;
  };
  a.gpu_busy = mean(a.gpu_busy, b.gpu_busy);
  a.ready = mean(a.ready, b.ready);
  a.seconds = total;
  a.job += b.job;
  a.workers += b.workers;
  a.batches += b.batches;
  a.cores_used += b.cores_used;
  a.cores_foreign += b.cores_foreign;
  a.memory = b.memory > 0 ? b.memory : a.memory;
}

std::int64_t cpu_of(const ProcessSample& p) { return p.leader.cpu_ns + p.others.cpu_ns; }

}  // namespace

std::string_view name_of(JobState state) {
  return kStateNames[static_cast<std::size_t>(state)].name;
}
std::string_view words_of(JobState state) {
  return kStateNames[static_cast<std::size_t>(state)].words;
}

double JobSeconds::all() const { return std::accumulate(in.begin(), in.end(), 0.0); }
JobSeconds& JobSeconds::operator+=(const JobSeconds& other) {
  for (std::size_t i = 0; i < kJobStates; ++i) in[i] += other.in[i];
  return *this;
}

WorkerSeconds& WorkerSeconds::operator+=(const WorkerSeconds& o) {
  cpu += o.cpu, helpers_cpu += o.helpers_cpu, queued += o.queued, idle += o.idle;
  storage += o.storage, sleeps += o.sleeps, locked += o.locked, alive += o.alive;
  return *this;
}

class JobTimeline::Parts {
 public:
  WatchFacts facts;
  std::vector<ProcessFacts> processes;
  std::map<std::uint32_t, RankTrack> ranks;
  std::vector<Stretch> stretches;
  HostSample first_host, last_host;
  double host_from = -1, host_to = -1;
  double job_cpu = 0;  ///< core-seconds so far
  double host_cpu_from = 0, host_cpu_to = 0;
  Sample last;
  bool any = false;
  double stretch = 1;  ///< seconds of one
  Surroundings around;

  void add(const Sample& sample);

 private:
  void take_host(const Sample& sample);
  void learn_cpu(const Sample& sample);
  void pass_ranks(const Sample& sample, Stretch& now);
  Stretch& open_stretch(double at);
  std::map<std::uint32_t, std::int64_t> cpu_before_;
  double step_cpu_ = 0;
};

void JobTimeline::Parts::learn_cpu(const Sample& sample) {
  step_cpu_ = 0;
  std::map<std::uint32_t, std::int64_t> now;
  for (const ProcessSample& p : sample.processes) {
    const std::int64_t cpu = cpu_of(p);
    const auto before = cpu_before_.find(p.serial);
    // A process that is new began within the interval, unless it is the first sample.
    const std::int64_t base = before != cpu_before_.end() ? before->second : (any ? 0 : cpu);
    step_cpu_ += static_cast<double>(std::max<std::int64_t>(0, cpu - base)) / kNanosASecond;
    now[p.serial] = cpu;
  }
  cpu_before_ = std::move(now);
  job_cpu += step_cpu_;
}

void JobTimeline::Parts::take_host(const Sample& sample) {
  if (!sample.has_host) return;
  if (host_from < 0) {
    host_from = at_seconds(sample.at_ns);
    first_host = sample.host;
    host_cpu_from = job_cpu;
  }
  around.throttled = host_to >= 0 && sample.host.throttled_periods > last_host.throttled_periods;
  if (host_to >= 0 && !stretches.empty()) {
    const double busy =
        static_cast<double>(sample.host.busy_ns - last_host.busy_ns) / kNanosASecond;
    stretches.back().cores_foreign += std::max(0.0, busy - (job_cpu - host_cpu_to));
  }
  last_host = sample.host;
  host_to = at_seconds(sample.at_ns);
  host_cpu_to = job_cpu;
}

Stretch& JobTimeline::Parts::open_stretch(double at) {
  if (stretches.empty() || at - stretches.back().from >= stretch) {
    if (stretches.size() >= kMostStretches) {
      std::vector<Stretch> half;
      for (std::size_t i = 0; i + 1 < stretches.size(); i += 2) {
        half.push_back(stretches[i]);
        join(half.back(), stretches[i + 1]);
      }
      stretches = std::move(half);
      stretch *= 2;
    }
    Stretch fresh;
    fresh.from = at;
    fresh.gpu_busy = fresh.ready = -1;
    stretches.push_back(fresh);
  }
  return stretches.back();
}

void JobTimeline::Parts::pass_ranks(const Sample& sample, Stretch& now) {
  std::map<std::uint32_t, std::vector<const ProcessSample*>> workers;
  for (const ProcessSample& p : sample.processes) {
    if (p.serial == 0 || p.serial > processes.size() || !p.alive) continue;
    const ProcessFacts& f = processes[p.serial - 1];
    if (f.role == ProcessRole::kWorker) workers[f.owner].push_back(&p);
    now.memory += static_cast<double>(p.anonymous);
  }
  for (const ProcessSample& p : sample.processes) {
    if (p.serial == 0 || p.serial > processes.size() || !p.alive) continue;
    const ProcessFacts& f = processes[p.serial - 1];
    if (f.role != ProcessRole::kTraining) continue;
    const auto found = ranks.try_emplace(p.serial, f).first;
    const RankTrack::Passed passed =
        found->second.add(sample.at_ns, p, workers[p.serial], processes, around);
    now.job += passed.job;
    now.workers += passed.workers;
    now.batches += passed.batches;
    if (passed.ready >= 0) now.ready = passed.ready;
  }
}

void JobTimeline::Parts::add(const Sample& sample) {
  // A clock that goes back, or a recording that was put together, is no interval.
  if (any && sample.at_ns <= last.at_ns) return;
  around.gpu = around.gpu || !sample.gpus.empty();
  learn_cpu(sample);
  Stretch step;
  step.from = any ? at_seconds(last.at_ns) : at_seconds(sample.at_ns);
  step.seconds = any ? at_seconds(sample.at_ns - last.at_ns) : 0;
  step.gpu_busy = step.ready = -1;
  step.cores_used = any ? step_cpu_ : 0;
  pass_ranks(sample, step);
  double busy = 0;
  int known = 0;
  for (const GpuSample& gpu : sample.gpus) {
    if (gpu.busy_percent < 0) continue;
    busy += static_cast<double>(gpu.busy_percent) / 100;
    ++known;
  }
  if (known > 0) step.gpu_busy = busy / known;
  join(open_stretch(step.from), step);
  take_host(sample);
  any = true;
  last = sample;
}

JobTimeline::JobTimeline() : parts_(std::make_unique<Parts>()) {}
JobTimeline::~JobTimeline() = default;
JobTimeline::JobTimeline(JobTimeline&&) noexcept = default;
JobTimeline& JobTimeline::operator=(JobTimeline&&) noexcept = default;

void JobTimeline::set_facts(const WatchFacts& facts) { parts_->facts = facts; }

void JobTimeline::learn(const std::vector<ProcessFacts>& processes) {
  for (const ProcessFacts& p : processes) {
    if (parts_->processes.size() < p.serial) parts_->processes.resize(p.serial);
    parts_->processes[p.serial - 1] = p;
  }
}

void JobTimeline::add(const Sample& sample) { parts_->add(sample); }

const WatchFacts& JobTimeline::facts() const { return parts_->facts; }
const std::vector<ProcessFacts>& JobTimeline::processes() const { return parts_->processes; }
double JobTimeline::seconds() const { return parts_->any ? at_seconds(parts_->last.at_ns) : 0; }
const std::vector<Stretch>& JobTimeline::stretches() const { return parts_->stretches; }
const HostSample& JobTimeline::first_host() const { return parts_->first_host; }
const HostSample& JobTimeline::last_host() const { return parts_->last_host; }
double JobTimeline::host_seconds() const { return parts_->host_to - parts_->host_from; }
double JobTimeline::job_cpu() const { return parts_->host_cpu_to - parts_->host_cpu_from; }
const Sample& JobTimeline::last() const { return parts_->last; }
const std::vector<GpuSample>& JobTimeline::gpus() const { return parts_->last.gpus; }

std::vector<RankTimeline> JobTimeline::ranks() const {
  std::vector<RankTimeline> all;
  for (const auto& [serial, track] : parts_->ranks) {
    if (track.result().job.all() > 0) all.push_back(track.result());
  }
  return all;
}

}  // namespace stoker
