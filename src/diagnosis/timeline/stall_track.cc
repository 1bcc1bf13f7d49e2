#include "diagnosis/timeline/stall_track.h"

#include <algorithm>
#include <cmath>

namespace stoker {
namespace {

/// Seconds of the shortest gap that is told apart, and the factor from one bin to the next.
constexpr double kShortest = 1e-3, kFactor = 1.2;
/// Batches from which a rhythm is known.
constexpr double kEnough = 16;
/// A gap so many times a usual step, and no shorter than that, is none of its ups and downs: looks
/// at the counters are a tenth of a second apart.
constexpr double kManySteps = 6, kLeastStall = 0.5;
/// A stop belongs to the checkpoint in it where writing is this part of it; else to what else it
/// holds, a validation as a rule.
constexpr double kMostlySaving = 0.2;

}  // namespace

double StallTrack::usual() const {
  if (batches_ < kEnough) return 0;
  double below = 0;
  for (std::size_t i = 0; i < kBins; ++i) {
    below += gaps_[i];
    if (below >= batches_ / 2) return kShortest * std::pow(kFactor, static_cast<double>(i) + 0.5);
  }
  return 0;
}

void StallTrack::add(double asked, double window, bool new_workers, const JobSeconds& job) {
  since_ += job.all();
  saved_ += job[JobState::kSaves];
  own_ += job[JobState::kSaves] + job[JobState::kReads] + job[JobState::kComputes] +
          job[JobState::kSleeps] + job[JobState::kWaitsForDevice] + job[JobState::kWaitsForThread] +
          job[JobState::kTalks];
  new_workers_ = new_workers_ || new_workers;
  if (asked <= 0) return;
  const double usual_gap = usual();
  if (usual_gap > 0) judged_ += since_;
  const double covered = new_workers_ ? std::max(asked, window) : asked;
  const double excess = since_ - covered * usual_gap;
  const double stalled = std::min(excess, std::max(0.0, own_ - covered * usual_gap));
  if (usual_gap > 0 && stalled > 0 && saved_ > kMostlySaving * stalled) {
    around_saves_ += std::max(stalled, saved_);
  } else if (usual_gap > 0 && excess > std::max(kLeastStall, kManySteps * usual_gap)) {
    if (stalled > kLeastStall) {
      seconds_ += stalled;
      longest_ = std::max(longest_, stalled);
      ++count_;
    }
  } else if (since_ > 0) {
    const double bin = std::log(std::max(1.0, since_ / asked / kShortest)) / std::log(kFactor);
    gaps_[std::min(kBins - 1, static_cast<std::size_t>(bin))] += asked;
    batches_ += asked;
  }
  since_ = own_ = saved_ = 0;
  new_workers_ = false;
}

}  // namespace stoker
