#include "diagnosis/timeline/receive_track.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace stoker {
namespace {

/// Batches from which a stretch counts: those that lie between two looks are split by chance.
constexpr double kStretch = 8;
/// Stretches that are kept; when there are more, every second one is forgotten.
constexpr std::size_t kMostReceives = 128;
/// multiprocessing.Connection reads a message's length and then the message.
constexpr double kReadsAMessage = 2;
/// For a file descriptor both sides challenge each other: the other's challenge, its welcome and
/// its answer are three messages (multiprocessing.connection.Client, reduction.DupFd).
constexpr double kReadsATensor = 3 * kReadsAMessage;

}  // namespace

void ReceiveTrack::add(double batches, double calls) {
  batches_ += batches;
  calls_ += calls;
  if (batches_ < kStretch) return;
  if (stretches_.size() >= kMostReceives) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < stretches_.size(); i += 2) stretches_[kept++] = stretches_[i];
    stretches_.resize(kept);
  }
  stretches_.push_back(calls_ / batches_);
  batches_ = calls_ = 0;
}

double ReceiveTrack::reads_a_batch() const {
  if (stretches_.empty()) return 0;
  std::vector<double> sorted = stretches_;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::ranges::nth_element(sorted, middle);
  return *middle;
}

double tensors_of(double reads_a_batch) {
  return std::max(0.0, std::round((reads_a_batch - kReadsAMessage) / kReadsATensor));
}

double hand_over_reads(double tensors) {
  // It reads one message more than the loop for each, the request (resource_sharer.py); beside
  // PyTorch 2.13 workers that read no files made 10 calls for one tensor, 18 for two, 492 for 61.
  constexpr double kReadsToHandOver = 4 * kReadsAMessage;
  return kReadsAMessage + kReadsToHandOver * tensors;
}

}  // namespace stoker
