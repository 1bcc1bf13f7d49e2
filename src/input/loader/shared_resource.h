#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "base/durations.h"

namespace stoker {

/// A time that does not come.
inline constexpr Seconds kNeverEnds(std::numeric_limits<double>::infinity());

/// How Linux limits a control group's CPU time (cpu.max, cpu.cfs_quota_us): `cores` times the
/// period may be used within each period; then all its processes stand still until the next one.
struct CpuQuota {
  double cores = 0;        ///< 0: no limit
  Seconds period = 0.1_s;  ///< the kernel's and the container engines' default
};

/// A resource that divides itself evenly among the jobs on it (egalitarian processor sharing):
/// cores under Linux' fair scheduler, a disk with several readers. A job alone runs at rate 1; n
/// jobs on a capacity of C each run at min(1, C/n), less `slowdown` for each further busy unit
/// (memory bandwidth, hyper-threads), less up to `oversubscription` as n goes from C to 2C (caches
/// that each job finds cold).
///
/// Short jobs of processes that sleep most of the time are served first (kFirst): the fair
/// scheduler owes them time, so that they run at once however many others are busy.
///
/// All jobs of a class have the same rate at any moment, so the amount of work that every one of
/// them has received since time 0 is one number; a job that arrives with work w ends when that
/// number has grown by w.
class SharedResource {
 public:
  enum class Class : std::uint8_t { kEven, kFirst };

  SharedResource(double capacity, double slowdown, double oversubscription = 0, CpuQuota quota = {})
      : capacity_(capacity),
        slowdown_(slowdown),
        oversubscription_(oversubscription),
        quota_(quota),
        left_(quota.cores * quota.period) {}

  /// Puts a job on the resource; times passed to all members never decrease.
  void start(Seconds now, std::uint32_t job, Seconds work, Class served = Class::kEven);
  /// When the next job ends if nothing else arrives; kNeverEnds when idle.
  [[nodiscard]] Seconds next_end(Seconds now) const;
  /// Removes the job that ends at `now`, as next_end() foretold.
  std::uint32_t finish(Seconds now);

  /// Integral over time of the units in use, up to `now`: core-seconds, say.
  Seconds busy(Seconds now);
  [[nodiscard]] std::size_t jobs() const { return even_.jobs.size() + first_.jobs.size(); }

 private:
  using Job = std::pair<Seconds, std::uint32_t>;  // value of `served` at its end
  struct Queue {
    Seconds served;
    std::priority_queue<Job, std::vector<Job>, std::greater<>> jobs;
  };
  struct Rates {
    double even = 0, first = 0, in_use = 0;
  };

  /// Rates of so many jobs of either class.
  [[nodiscard]] Rates rates_at(std::size_t first, std::size_t even) const;
  /// Rates of the jobs that are there. They change where one comes or goes, and are looked up when
  /// time passes: most often one job ends and another begins in the same moment.
  [[nodiscard]] const Rates& rates() const;
  /// Time until the first job ends at these rates, not counting standstills.
  [[nodiscard]] Seconds until_end() const;
  /// How long a period's quota lets the jobs run, if the period is that long.
  [[nodiscard]] Seconds in_a_period() const {
    return quota_.cores * quota_.period / rates().in_use;
  }
  void advance(Seconds now);
  void work(Seconds span);

  double capacity_, slowdown_, oversubscription_;
  CpuQuota quota_;
  Seconds left_;              ///< core-seconds of the quota left in this period
  Seconds period_end_{-1.0};  ///< < 0: no period has begun
  Seconds now_, busy_;
  Queue even_, first_;
  mutable Rates rates_;
  mutable bool changed_ = false;  ///< a job came or went since they were looked up
  /// What rates_at() said, by jobs of either class: the same few numbers come again and again.
  /// Nothing in use: not asked yet.
  mutable std::array<std::vector<Rates>, 16> known_;
};

}  // namespace stoker
