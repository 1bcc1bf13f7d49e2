#include "study/runner/usage.h"

#include <algorithm>
#include <csignal>
#include <ctime>

#include "base/text.h"
#include "observe/sampler.h"
#include "system/clocks.h"
#include "system/system_files.h"

namespace stoker::study {
namespace {

constexpr double kNano = 1e-9;
constexpr int kWake = SIGURG;  // which nobody is sent otherwise, and programs ignore
constexpr double kRate = 2;    // samples a second
/// Half an hour at the rate; from then on two intervals become one, again and again.
constexpr std::size_t kMostIntervals = 3600;

/// What a counter grew by since it was last seen; one that is new counts from its beginning.
std::int64_t growth(std::map<std::uint32_t, std::int64_t>& seen, std::uint32_t serial,
                    std::int64_t now) {
  std::int64_t& before = seen[serial];
  const std::int64_t grown = std::max<std::int64_t>(now - before, 0);
  before = std::max(before, now);
  return grown;
}

}  // namespace

bool UsageSeries::counts(const GpuSample& gpu) const {
  return gpu.job_processes > 0 || gpus_.contains(gpu.index);
}

void UsageSeries::add(const Sample& sample, double seconds) {
  Interval interval{last_.value_or(seconds), seconds};
  for (const ProcessSample& p : sample.processes) {
    const std::int64_t cpu = growth(cpu_ns_, p.serial, p.leader.cpu_ns + p.others.cpu_ns);
    // The first sample tells what went before it, which lies in no interval.
    if (last_) interval.cpu_s += static_cast<double>(cpu) * kNano;
    reads_ += growth(read_, p.serial, p.read_bytes);
    writes_ += growth(written_, p.serial, p.written_bytes);
    all_reads_ += growth(read_calls_bytes_, p.serial, p.read_chars);
  }
  double busy = 0, watts = 0, limit = 0;
  int gpus = 0, powered = 0;
  for (const GpuSample& gpu : sample.gpus) {
    if (!counts(gpu)) continue;
    if (gpu.busy_percent >= 0) ++gpus, busy += static_cast<double>(gpu.busy_percent) / 100;
    if (gpu.power_mw >= 0) ++powered, watts += static_cast<double>(gpu.power_mw) / 1000;
    if (gpu.power_limit_mw > 0) limit += static_cast<double>(gpu.power_limit_mw) / 1000;
    if (gpu.memory_used < 0 || gpu.memory_total <= 0) continue;
    const auto own = static_cast<double>(
        std::max<std::int64_t>(gpu.memory_used - std::max<std::int64_t>(gpu.foreign_memory, 0), 0));
    const auto total = static_cast<double>(gpu.memory_total);
    gpu_peak_ = std::max(gpu_peak_, own);
    gpu_total_ = std::max(gpu_total_, total);
    gpu_peak_percent_ = std::max(gpu_peak_percent_, 100 * own / total);
  }
  power_limit_ = std::max(power_limit_, limit);
  const double length = interval.to - interval.from;
  interval.has_gpu = gpus > 0;
  interval.has_power = powered > 0;
  if (gpus > 0) interval.gpu_busy_s = busy / gpus * length;
  if (powered > 0) interval.joules = watts * length;
  if (last_ && length > 0) intervals_.push_back(interval);
  last_ = seconds;
  if (intervals_.size() >= kMostIntervals) join_pairs();
}

void UsageSeries::join_pairs() {
  std::size_t kept = 0;
  for (std::size_t i = 0; i + 1 < intervals_.size(); i += 2) {
    Interval joined = intervals_[i];
    const Interval& next = intervals_[i + 1];
    joined.to = next.to;
    joined.cpu_s += next.cpu_s;
    joined.gpu_busy_s += next.gpu_busy_s;
    joined.joules += next.joules;
    joined.has_gpu = joined.has_gpu || next.has_gpu;
    joined.has_power = joined.has_power || next.has_power;
    intervals_[kept++] = joined;
  }
  intervals_.resize(kept);
}

UsageSeries::Sums UsageSeries::sums(double from, double to) const {
  Sums all;
  for (const Interval& one : intervals_) {
    const double length = one.to - one.from;
    const double inside = std::min(one.to, to) - std::max(one.from, from);
    if (inside <= 0 || length <= 0) continue;
    const double share = inside / length;
    all.seconds += inside;
    all.cpu_s += one.cpu_s * share;
    if (one.has_gpu) all.gpu_seconds += inside, all.gpu_busy_s += one.gpu_busy_s * share;
    if (one.has_power) all.power_seconds += inside, all.joules += one.joules * share;
  }
  return all;
}

std::map<std::string, double> UsageSeries::figures(const std::optional<Window>& steady,
                                                   double cores) const {
  std::map<std::string, double> all;
  if (intervals_.empty()) return all;
  const Sums whole = sums(0, 1e300);
  if (whole.gpu_seconds > 0) all["gpu_percent"] = 100 * whole.gpu_busy_s / whole.gpu_seconds;
  if (whole.power_seconds > 0) {
    all["gpu_watts"] = whole.joules / whole.power_seconds;
    all["gpu_energy_j"] = whole.joules;
    if (power_limit_ > 0) all["gpu_power_limit_w"] = power_limit_;
  }
  if (gpu_total_ > 0) {
    all["gpu_peak_bytes"] = gpu_peak_;
    all["gpu_card_bytes"] = gpu_total_;
    all["gpu_memory_percent"] = gpu_peak_percent_;
  }
  all["read_all_bytes"] = static_cast<double>(all_reads_);
  if (reads_ > 0) all["read_bytes"] = static_cast<double>(reads_);
  if (writes_ > 0) all["written_bytes"] = static_cast<double>(writes_);
  if (!steady) return all;
  const Sums part = sums(steady->first, steady->second);
  // A window of less than two samples says nothing.
  if (part.seconds < 1 / kRate) return all;
  all["cpu_cores_steady"] = part.cpu_s / part.seconds;
  if (cores > 0) all["cpu_percent_steady"] = 100 * part.cpu_s / part.seconds / cores;
  if (part.power_seconds > 0) all["gpu_watts_steady"] = part.joules / part.power_seconds;
  if (part.gpu_seconds > 0) all["gpu_percent_steady"] = 100 * part.gpu_busy_s / part.gpu_seconds;
  return all;
}

void UsageWatch::start(std::int64_t process, double started, std::set<std::int64_t> gpus) {
  series_.emplace(std::move(gpus));
  // A signal that does nothing, so that the watch can be woken from its sleep between samples.
  struct sigaction nothing {};
  nothing.sa_handler = [](int) {};
  sigaction(kWake, &nothing, nullptr);
  thread_ = std::thread([this, process, started] {
    SamplerOptions options;
    options.rate = kRate;
    options.started_here = true;
    auto sampler = Sampler::attach({process}, options);
    if (!sampler) return;  // it has ended
    sampler->stop_when([this] { return stop_.load(); });
    while (const auto sample = sampler->next())
      series_->add(*sample, seconds(wall_time()) - started);
  });
}

const UsageSeries* UsageWatch::stop() {
  stop_ = true;
  if (thread_.joinable()) pthread_kill(thread_.native_handle(), kWake);
  if (thread_.joinable()) thread_.join();
  return series_ ? &*series_ : nullptr;
}

std::set<std::int64_t> gpu_numbers(std::string_view visible) {
  std::set<std::int64_t> all;
  for (const std::string& one : split(visible, ',')) {
    const auto number = whole_number(one);
    if (!number || *number < 0) return {};
    all.insert(*number);
  }
  return all;
}

}  // namespace stoker::study
