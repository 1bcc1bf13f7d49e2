#pragma once

#include "base/units.h"

namespace stoker {

/// Turns at a worker's interpreter lock that its feeder thread needs to send a batch
/// (multiprocessing/queues.py, Queue._feed: waking, pickling, writing to the pipe).
inline constexpr int kSendTurns = 2;

/// ... and that its resource sharer needs to hand one tensor's file descriptor over
/// (multiprocessing/resource_sharer.py: accept, authentication both ways, the request, the
/// descriptor).
inline constexpr int kHandoverTurns = 8;

/// What a loader sets up until its first batch beside the start of a worker: queues, the threads
/// that send, sockets (measured beyond a bare start: 12 to 17 ms with five data sets; a probe with
/// a real loader measures its own).
inline constexpr Nanos kFirstBatchSetUp{12e6};

/// CPU time of Process.start() with spawn or forkserver in the calling process (measured: 0.3 to
/// 0.6 ms).
inline constexpr Nanos kSpawnCall{0.5e6};
/// From Process.start() until a spawned worker that imports PyTorch takes its first index, where
/// nobody measured it (measured with an empty data set: 1.2 s alone).
inline constexpr Nanos kUnknownSpawn{1.2e9};
/// From Process.start() until a server that has imported PyTorch (forkserver) has forked a worker:
/// an assumption.
inline constexpr Nanos kServedStart{30e6};
/// What a pipe holds (pipe(7)): Process.start() with spawn or forkserver writes the pickled data
/// set into one, and waits for the new process to read what does not fit. Likewise a worker's
/// feeder thread, which writes batches.
inline constexpr Bytes kPipe{65536};
/// A byte of the pickled data set through the pipe to a new worker (measured: 0.8 to 1.2 ns).
inline constexpr double kPipeNs = 1;
/// ... and pickling and unpickling it where nobody measured that: lists of small objects take 10 to
/// 30 ns a byte, arrays 1 to 2.
inline constexpr double kPickledBothNs = 10;
/// Private memory of an interpreter that has imported PyTorch beside what forked workers have
/// (measured, smaps_rollup: 145 MB against 10).
inline constexpr Bytes kInterpreterMemory{135'000'000};

}  // namespace stoker
