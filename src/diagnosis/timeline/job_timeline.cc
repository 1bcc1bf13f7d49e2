#include "diagnosis/timeline/job_timeline.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

#include "diagnosis/timeline/rank_track.h"
#include "diagnosis/timeline/times.h"
#include "system/nvml.h"

namespace stoker {
namespace {

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

/// For whom a process will load that multiprocessing spawned and that has not told its name yet; 0:
/// it is something else.
std::uint32_t owner_to_be(const ProcessFacts& f, const std::vector<ProcessFacts>& all) {
  if (f.role != ProcessRole::kHelper || f.parent == 0 || f.parent > all.size()) return 0;
  const auto is = [](const ProcessFacts& p, std::string_view what) {
    return p.command.find(what) != std::string::npos;
  };
  constexpr std::string_view kSpawn = "multiprocessing.spawn",
                             kServer = "multiprocessing.forkserver";
  const ProcessFacts& parent = all[f.parent - 1];
  if (is(f, kSpawn) && parent.role == ProcessRole::kTraining) return parent.serial;
  return is(f, kServer) && is(parent, kServer) ? parent.parent : 0;
}

/// Adds `value` to a mean that stands for `total` seconds so far.
void add_mean(double& mean, double total, double value, double seconds) {
  if (total + seconds > 0) mean = (mean * total + value * seconds) / (total + seconds);
}

void add_gpu(const GpuSample& s, double seconds, GpuTimeline& g) {
  const auto ratio = [](std::int64_t part, std::int64_t whole) {
    return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
  };
  const double before = g.seconds;
  if (s.busy_percent >= 0) {
    add_mean(g.busy, before, static_cast<double>(s.busy_percent) / 100, seconds);
    const auto held = [&](std::int64_t bits) {
      return s.throttle_reasons > 0 && (s.throttle_reasons & bits) != 0 ? 1.0 : 0.0;
    };
    add_mean(g.capped, before, held(kPowerCap), seconds);
    add_mean(g.hot, before,
             held(kHardwareSlowdown | kSoftwareThermal | kHardwareThermal | kPowerBrake), seconds);
    add_mean(g.shared, before, s.foreign_processes > 0 && s.job_processes > 0 ? 1.0 : 0.0, seconds);
    g.seconds += seconds;
  }
  if (s.power_mw >= 0 && s.power_limit_mw > 0) {
    add_mean(g.power, g.power_seconds, ratio(s.power_mw, s.power_limit_mw), seconds);
    g.power_seconds += seconds;
  }
  if (s.clock_mhz >= 0 && s.clock_most_mhz > 0) {
    add_mean(g.clock, g.clock_seconds, ratio(s.clock_mhz, s.clock_most_mhz), seconds);
    g.clock_seconds += seconds;
  }
  if (s.sm_permille >= 0) {
    constexpr double kPermille = 1000;
    add_mean(g.sm, g.sm_seconds, static_cast<double>(s.sm_permille) / kPermille, seconds);
    add_mean(g.tensor, g.sm_seconds, static_cast<double>(s.tensor_permille) / kPermille, seconds);
    add_mean(g.dram, g.sm_seconds, static_cast<double>(s.dram_permille) / kPermille, seconds);
    g.sm_seconds += seconds;
  }
  g.foreign_memory = std::max(g.foreign_memory, static_cast<double>(s.foreign_memory));
  g.job_memory = static_cast<double>(std::max<std::int64_t>(0, s.memory_used));
  g.job_seen = g.job_seen || s.job_processes > 0;
}

std::int64_t cpu_of(const ProcessSample& p) {
  return saturating_sum(p.leader.cpu_ns, p.others.cpu_ns);
}

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
  std::set<std::uint32_t> launched;  ///< processes that only started others, at some time
  std::vector<Stretch> stretches;
  HostSample first_host, last_host;
  double host_from = -1, host_to = -1;
  double shared_memory_full = 0;
  double job_cpu = 0;  ///< core-seconds so far
  double host_cpu_from = 0, host_cpu_to = 0;
  Sample last;
  bool any = false;
  std::vector<GpuTimeline> gpus;
  double stretch = 1;  ///< seconds of one
  Surroundings around;

  void add(const Sample& sample);

 private:
  void take_host(const Sample& sample);
  void take_gpus(const Sample& sample, Stretch& now);
  std::int64_t gpus_at_ = -1;
  double gpu_busy_ = -1;
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
    step_cpu_ += grown_seconds(base, cpu);
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
    const double busy = grown_seconds(last_host.busy_ns, sample.host.busy_ns);
    stretches.back().cores_foreign += std::max(0.0, busy - (job_cpu - host_cpu_to));
  }
  last_host = sample.host;
  if (last_host.shared_memory_most > 0)
    shared_memory_full =
        std::max(shared_memory_full, static_cast<double>(last_host.shared_memory) /
                                         static_cast<double>(last_host.shared_memory_most));
  constexpr double kThousandths = 1000, kMostCores = 1e6;
  const auto cores = [&](std::int64_t milli) {
    return std::clamp(static_cast<double>(milli) / kThousandths, 0.0, kMostCores);
  };
  if (last_host.cores_milli > 0) {
    facts.cores = cores(last_host.cores_milli);
    facts.quota = cores(last_host.quota_milli);
  }
  host_to = at_seconds(sample.at_ns);
  host_cpu_to = job_cpu;
}

void JobTimeline::Parts::take_gpus(const Sample& sample, Stretch& now) {
  now.gpu_busy = gpu_busy_;
  if (sample.gpus.empty()) return;
  const double seconds = gpus_at_ < 0 ? 0 : grown_seconds(gpus_at_, sample.at_ns);
  gpus_at_ = sample.at_ns;
  double busy = 0;
  int known = 0;
  for (const GpuSample& gpu : sample.gpus) {
    auto found = std::ranges::find(gpus, gpu.index, &GpuTimeline::index);
    if (found == gpus.end()) {
      gpus.emplace_back().index = gpu.index;
      found = gpus.end() - 1;
      if (gpu.index >= 0 && gpu.index < std::ssize(facts.gpus))
        found->name = facts.gpus[static_cast<std::size_t>(gpu.index)];
    }
    add_gpu(gpu, seconds, *found);
    if (gpu.busy_percent < 0) continue;
    busy += static_cast<double>(gpu.busy_percent) / 100;
    ++known;
  }
  gpu_busy_ = known > 0 ? busy / known : -1;
  now.gpu_busy = gpu_busy_;
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
  std::set<std::uint32_t> starting;
  for (const ProcessSample& p : sample.processes) {
    if (p.serial == 0 || p.serial > processes.size() || !p.alive) continue;
    const ProcessFacts& f = processes[p.serial - 1];
    if (f.role == ProcessRole::kWorker) workers[f.owner].push_back(&p);
    if (const std::uint32_t owner = owner_to_be(f, processes); owner != 0) starting.insert(owner);
    now.memory += static_cast<double>(p.anonymous);
  }
  for (const ProcessSample& p : sample.processes) {
    if (p.serial == 0 || p.serial > processes.size()) continue;
    const ProcessFacts& f = processes[p.serial - 1];
    if (f.role != ProcessRole::kTraining) continue;
    if (!p.alive) {
      // What it told at its end still counts.
      if (const auto known = ranks.find(p.serial); known != ranks.end()) {
        known->second.hear(p.told);
        known->second.end();
      }
      continue;
    }
    const auto found = ranks.try_emplace(p.serial, f).first;
    around.starting = starting.contains(p.serial);
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
  around.sample_s = at_seconds(facts.sample_ns);
  around.gpu = around.gpu || !sample.gpus.empty();
  learn_cpu(sample);
  Stretch step;
  step.from = any ? at_seconds(last.at_ns) : at_seconds(sample.at_ns);
  step.seconds = any ? grown_seconds(last.at_ns, sample.at_ns) : 0;
  step.gpu_busy = step.ready = -1;
  step.cores_used = any ? step_cpu_ : 0;
  pass_ranks(sample, step);
  take_gpus(sample, step);
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
    if (p.role == ProcessRole::kLauncher) parts_->launched.insert(p.serial);
  }
}

void JobTimeline::add(const Sample& sample) { parts_->add(sample); }

const WatchFacts& JobTimeline::facts() const { return parts_->facts; }
const std::vector<ProcessFacts>& JobTimeline::processes() const { return parts_->processes; }
double JobTimeline::seconds() const { return parts_->any ? at_seconds(parts_->last.at_ns) : 0; }
const std::vector<Stretch>& JobTimeline::stretches() const { return parts_->stretches; }
const HostSample& JobTimeline::first_host() const { return parts_->first_host; }
const HostSample& JobTimeline::last_host() const { return parts_->last_host; }
double JobTimeline::shared_memory_full() const { return parts_->shared_memory_full; }
double JobTimeline::host_seconds() const { return parts_->host_to - parts_->host_from; }
double JobTimeline::job_cpu() const { return parts_->host_cpu_to - parts_->host_cpu_from; }
const Sample& JobTimeline::last() const { return parts_->last; }
const std::vector<GpuTimeline>& JobTimeline::gpus() const { return parts_->gpus; }

std::vector<RankTimeline> JobTimeline::ranks() const {
  std::vector<RankTimeline> all, started_others;
  for (const auto& [serial, track] : parts_->ranks) {
    RankTimeline rank = track.result();
    if (rank.job.all() <= 0) continue;
    // Until its ranks are known, and when they have ended, what spawned them looks like one.
    auto& list = parts_->launched.contains(serial) ? started_others : all;
    list.push_back(std::move(rank));
  }
  return all.empty() ? started_others : all;
}

}  // namespace stoker
