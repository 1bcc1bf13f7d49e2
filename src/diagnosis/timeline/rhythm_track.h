#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

namespace stoker {

/// A pattern that repeats in what a thread does: one training step, as a rule.
struct Rhythm {
  double period = 0, low = 0, high = 0;  ///< seconds, with a band
  double share = 0;                      ///< of the time that was judged, in which it showed
  double judged = 0;                     ///< seconds
};

/// Finds the steps of a loop that tells nobody of them, by the ups and downs of a counter that only
/// grows: the time of its main thread on a core.
///
/// The counter is taken to an even grid, and each window of it is compared with itself some time
/// later (autocorrelation). Three grids, each four times as coarse as the one before, find periods
/// from 4 of the finest grid's steps on (0.1 s where the counter is read 40 times a second) to
/// minutes. What repeats faster cannot be seen and must not show as something slower (aliasing):
/// the finest grid relies on readings at uneven moments, which blur it; the coarser ones ask that
/// their averages keep a good part of the ups and downs, which those of something faster lose.
class RhythmTrack {
 public:
  /// The counter's value at a moment, both in seconds. `usual_gap` is the mean distance of two
  /// readings; much longer ones tell nothing of what happened in between.
  void add(double at, double counter, double usual_gap);

  /// What showed in at least half of the windows, and in those alike; nothing otherwise.
  [[nodiscard]] std::optional<Rhythm> rhythm() const;

 private:
  static constexpr std::size_t kLevels = 3, kFactor = 4;
  struct Window {
    double period = 0, error = 0;  ///< seconds; 0: no rhythm
  };
  struct Level {
    std::vector<double> values;   ///< of the window that is being filled
    std::vector<Window> windows;  ///< a bounded number that stand for all
    double sum = 0;               ///< of values on their way to the next level
    std::size_t summed = 0;
    double spread = 0;  ///< of what the finest grid saw during the present window
    std::size_t spreads = 0;
    bool finer = false;  ///< a finer grid found a rhythm in the present window
  };
  void push(std::size_t level, double value);
  void judge(std::size_t level);
  void restart();

  std::array<Level, kLevels> levels_;
  double grid_ = 0;               ///< seconds between two points of the finest grid
  double at_ = 0, counter_ = 0;   ///< the last reading
  double next_ = 0, before_ = 0;  ///< the next point, and the counter at the one before
  bool any_ = false;
};

}  // namespace stoker
