#pragma once

#include <vector>

namespace stoker {

/// How often a training process reads from pipes and sockets for one batch, which tells how many
/// tensors workers hand to it: each comes with a file descriptor that is asked for by itself.
class ReceiveTrack {
 public:
  /// What passed in one interval: batches asked for, calls of read(2) by the process.
  void add(double batches, double calls);

  /// The median over stretches of a few batches, since files that are imported or written now and
  /// then are read too; 0: too few batches.
  [[nodiscard]] double reads_a_batch() const;

 private:
  double batches_ = 0, calls_ = 0;  ///< of the stretch that is not full yet
  std::vector<double> stretches_;
};

/// Tensors that one batch is made of, from the calls of read(2) that receiving it took; 0: none
/// comes in shared memory of its own.
[[nodiscard]] double tensors_of(double reads_a_batch);

/// Calls of read(2) that a worker makes to be asked for a batch of so many tensors and to hand them
/// over.
[[nodiscard]] double hand_over_reads(double tensors);

}  // namespace stoker
