#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "observe/sample/sample.h"

namespace stoker::study {

/// From when to when a trial ran steadily, in seconds since it started.
using Window = std::pair<double, double>;

/// What samples of a running trial add up to. Memory is bounded: of long trials neighbouring
/// intervals are joined.
class UsageSeries {
 public:
  /// `gpus`: indices of those that the trial was given; empty: those on which it runs something.
  explicit UsageSeries(std::set<std::int64_t> gpus = {}) : gpus_(std::move(gpus)) {}

  /// A sample `seconds` after the trial started.
  void add(const Sample& sample, double seconds);

  /// Names as docs/reference/study-store.md has them; those with _steady are of the window alone.
  /// `cores`: how many the trial may use; 0: not known.
  [[nodiscard]] std::map<std::string, double> figures(const std::optional<Window>& steady,
                                                      double cores) const;

 private:
  /// What happened between two samples.
  struct Interval {
    double from = 0, to = 0;
    double cpu_s = 0, gpu_busy_s = 0, joules = 0;  ///< busy: of the mean GPU
    bool has_gpu = false, has_power = false;
  };
  struct Sums {
    double seconds = 0, cpu_s = 0, gpu_seconds = 0, gpu_busy_s = 0, power_seconds = 0, joules = 0;
  };
  [[nodiscard]] Sums sums(double from, double to) const;
  [[nodiscard]] bool counts(const GpuSample& gpu) const;
  void join_pairs();

  std::set<std::int64_t> gpus_;
  std::vector<Interval> intervals_;
  std::map<std::uint32_t, std::int64_t> cpu_ns_, read_, written_, read_calls_bytes_;
  std::optional<double> last_;
  double gpu_peak_ = 0, gpu_total_ = 0, gpu_peak_percent_ = 0;
  double power_limit_ = 0;  ///< of all GPUs that count together, in watts
  std::int64_t reads_ = 0, writes_ = 0, all_reads_ = 0;
};

/// Watches a process and all below it from a thread of its own, twice a second.
class UsageWatch {
 public:
  UsageWatch() = default;
  UsageWatch(const UsageWatch&) = delete;
  UsageWatch& operator=(const UsageWatch&) = delete;
  UsageWatch(UsageWatch&&) = delete;
  UsageWatch& operator=(UsageWatch&&) = delete;
  ~UsageWatch() { stop(); }

  /// `started`: when the trial did, on CLOCK_MONOTONIC.
  void start(std::int64_t process, double started, std::set<std::int64_t> gpus);
  [[nodiscard]] bool runs() const { return thread_.joinable(); }
  /// Ends the watch; what it saw. nullptr: it never began.
  const UsageSeries* stop();

 private:
  std::thread thread_;
  std::atomic<bool> stop_{false};
  std::optional<UsageSeries> series_;
};

/// The GPUs that CUDA_VISIBLE_DEVICES names by number; empty: none, or by other names.
[[nodiscard]] std::set<std::int64_t> gpu_numbers(std::string_view visible);

}  // namespace stoker::study
