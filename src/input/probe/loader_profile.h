#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"
#include "input/probe/probe.h"

namespace stoker {

/// Python's cost of a stage from ours: ms = constant + ratio * native + per_megapixel * MP.
struct StageCoefficients {
  double constant_ms = 0;
  double ratio = 1;
  double per_megapixel_ms = 0;
};

/// What moving finished batches costs a DataLoader, on the machine of the profile. CPU times.
struct TransportCoefficients {
  Nanos per_batch_main;   ///< queue, unpickling, bookkeeping in the receiving process or pin thread
  Nanos per_tensor_main;  ///< receiving one tensor's file descriptor and mapping it
  /// unmapping a used batch: its pages are given back in the main process
  double per_byte_main_ns = 0;
  Nanos per_batch_worker;   ///< index, pickling, queue
  Nanos per_tensor_worker;  ///< exporting one tensor
  /// a byte, worker: stack into fresh shared memory, page faults included
  double collate_shared_ns = 0;
  double collate_private_ns = 0;  ///< a byte, in-process (workers = 0)
  /// A byte of a sample: memory that glibc has given back to the system and faults in again for
  /// each sample.
  double sample_fault_ns = 0;
  /// CPU time that a process loses to cold caches with twice as many runnable processes as cores,
  /// as a share.
  double oversubscription = 0;
  Nanos collate_per_sample;   ///< walking the list of samples
  Nanos fork_per_worker;      ///< main, serial, at the start of an epoch without persistent workers
  Nanos worker_startup;       ///< from fork until a worker takes its first index
  Nanos shutdown_per_worker;  ///< joining a worker at the end of an epoch
  Nanos epoch_reset;          ///< restarting persistent workers
  Bytes worker_private;       ///< memory of one worker that it does not share with its parent
  /// A byte that is not in a tensor (numpy, text, lists): pickled by the worker's feeder thread,
  /// written into and read from a pipe of 64 KiB, unpickled by the receiver. Measured as
  /// docs/models/input.md section 2 says.
  double pickle_worker_ns = 0.35, pickle_main_ns = 0.45;
};

/// How the loaders that people run (Pillow + torchvision in a PyTorch DataLoader) relate to what
/// the probe measures in C++. Fitted by scripts/measure-loader, shipped as
/// data/coefficients/input.json.
struct LoaderProfile {
  PerStage<StageCoefficients> stage{};
  TransportCoefficients transport;
  /// Our to_tensor and normalize stages on the profile's machine, CPU ns a pixel of the output:
  /// what a probe of another machine measures for the same work tells how much slower its cores
  /// are.
  double native_ns_per_pixel = 0;
  double held_out_mape = 0;  ///< percent, cost of a sample, images that the fit did not see
  std::string basis;         ///< "Pillow 13.0, torchvision 0.29 on Xeon 2.6 GHz, 2026-11-27"
};

/// CPU time on the probed machine / on the profile's machine; 1 when the two cannot be compared.
[[nodiscard]] double core_slowness(const LoaderProfile& profile, const Probe& probe);

/// Cost of one image in the Python loader of a machine whose cores are `slowness` times slower
/// than the profile's. The native times carry their own machine's speed; the constants are scaled.
[[nodiscard]] Nanos loader_cost(const LoaderProfile& profile, const SampleRecord& record,
                                double slowness);

/// Sets the coefficient that the key of data/coefficients/input.json names (milliseconds,
/// nanoseconds a byte, megabytes); false: no such key.
[[nodiscard]] bool set_transport(TransportCoefficients& transport, std::string_view key,
                                 double value);

/// All CPU times multiplied.
[[nodiscard]] TransportCoefficients scaled(TransportCoefficients transport, double factor);

[[nodiscard]] Result<LoaderProfile> read_loader_profile(const std::filesystem::path& path);
/// data/coefficients/input.json of the installed data folder.
[[nodiscard]] Result<LoaderProfile> shipped_loader_profile();

}  // namespace stoker
