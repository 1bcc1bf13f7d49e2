#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

namespace stoker {

/// A resource that divides itself evenly among the jobs on it (egalitarian processor sharing):
/// cores under Linux' fair scheduler, a disk with several readers. A job alone runs at rate 1; n
/// jobs on a capacity of C each run at min(1, C/n), less `slowdown` for each further busy unit
/// (memory bandwidth, hyper-threads), less up to `oversubscription` as n goes from C to 2C (caches
/// that each job finds cold). Times are seconds.
///
/// All jobs have the same rate at any moment, so the amount of work that every job has received
/// since time 0 is one number, `served_`; a job that arrives with work w ends when `served_` has
/// grown by w.
class SharedResource {
 public:
  SharedResource(double capacity, double slowdown, double oversubscription = 0)
      : capacity_(capacity), slowdown_(slowdown), oversubscription_(oversubscription) {}

  /// Puts a job on the resource; times passed to all members never decrease.
  void start(double now, std::uint32_t job, double work);
  /// When the next job ends if nothing else arrives; infinity when idle.
  [[nodiscard]] double next_end(double now) const;
  /// Removes the job that ends at `now`, as next_end() foretold.
  std::uint32_t finish(double now);

  /// Integral over time of the units in use, up to `now`.
  [[nodiscard]] double busy(double now) const;
  [[nodiscard]] std::size_t jobs() const { return jobs_.size(); }

 private:
  [[nodiscard]] double rate() const;
  [[nodiscard]] double in_use() const;
  void advance(double now);

  using Job = std::pair<double, std::uint32_t>;  // value of served_ at its end
  double capacity_, slowdown_, oversubscription_;
  double now_ = 0, served_ = 0, busy_ = 0;
  std::priority_queue<Job, std::vector<Job>, std::greater<>> jobs_;
};

}  // namespace stoker
