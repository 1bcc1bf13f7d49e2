#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "base/units.h"
#include "input/data/data_set.h"
#include "input/data/image_pipeline.h"
#include "input/probe/storage.h"
#include "system/contention.h"

namespace stoker {

struct ProbeOptions {
  Nanos budget = 10.0 * kSecond;  ///< wall time of the whole probe, about
  Bytes max_read = 2 * kGiB;      ///< bytes read from storage at most
  std::size_t sample = 256;       ///< images, records or blocks of lines measured at most
  int image_size = 224;
  int threads = 0;  ///< of the parallel run; 0: the cores this process may use
  std::uint64_t seed = 1;
  std::int64_t max_entries = 20'000'000;  ///< of the folder listing
  /// Whether storage is measured, in an eighth of the budget.
  bool storage = true;
  std::optional<DataKind> kind = {};  ///< what to take where several kinds lie; else the most
};

/// Where a running probe is: a phase ("listing", "cold read", "one core", "all cores") and its
/// share done.
using ProbeProgress = std::function<void(std::string_view phase, double share)>;

/// Mean and spread of a measured quantity.
struct Spread {
  double mean = 0, median = 0, sd = 0, p95 = 0;
};
[[nodiscard]] Spread spread_of(std::vector<double> values);

/// decode_ms = per_megapixel * MP + per_megabyte * MB (MB = 1e6 bytes of file), least squares over
/// the baseline images (over all when there are none).
struct DecodeFit {
  double per_megapixel = 0;  ///< ms
  double per_megabyte = 0;   ///< ms
  double r2 = 0;
  double progressive_share = 0;  ///< of the images
  /// decode time of progressive images / what the fit says of them
  double progressive_ratio = 1;
};

struct ReadFacts {
  /// the page cache could be emptied of the files (checked by mincore)
  bool cold_measured = false;
  double cold_ms = 0;         ///< wall, mean a file, one at a time
  double cold_seek_ms = 0;    ///< of cold_ms = seek + bytes / bandwidth
  double cold_bandwidth = 0;  ///< bytes/s; 0: not separable
  /// Rate of eight readers at once / rate of one: how much the storage gains from a queue. 0: not
  /// measured.
  double cold_speedup = 0;
  double warm_ms = 0;         ///< CPU, mean a file
  double resident_share = 0;  ///< of the sampled bytes, found in the page cache before the probe
};

/// How well several threads share the machine.
struct ParallelFacts {
  int threads = 1;
  double samples_per_s_one = 0;  ///< by the CPU clock of one thread alone
  double samples_per_s_all = 0;  ///< all threads, corrected for the CPU time that others took
  /// Mean CPU time a sample alone / with all threads running; below 1 where memory bandwidth, cache
  /// or hyper-threads are shared.
  double efficiency = 1;
};

struct ProbeProvenance {
  std::string stoker_version, date, cpu_model;
  double cores = 0;
  std::string
      folder_hash;  ///< FNV-1a of the absolute path: tells folders apart without naming them
  std::string decoder = "libjpeg-turbo, libpng";
};

/// The measured cost of a data set in files. Native stage costs: `LoaderProfile` turns them into
/// the costs of a Python loader.
struct Probe {
  DataKind kind = DataKind::kPictures;
  std::string format = "pictures";  ///< of the files: "tar of pictures", "CIFAR-10 binary"
  DatasetFacts dataset;
  int image_size = 224;
  PerStage<Spread> stage_ms{};
  Spread sample_ms;      ///< sum over stages
  DecodeFit decode;      ///< of JPEG files; of lines: splitting, by bytes alone
  DecodeFit decode_png;  ///< of PNG files
  double png_share = 0;  ///< of the images
  ReadFacts read;
  std::optional<StorageFacts> storage;
  ParallelFacts parallel;
  Contention contention;              ///< while one core measured
  std::vector<SampleRecord> samples;  ///< medians over repetitions
  ProbeProvenance provenance;
  Diagnostics diagnostics;
};

/// Measures the data under `folder`, or in the file of that name: at most `budget` of wall time,
/// nothing written. Fails when the folder cannot be scanned or none of its samples can be used.
[[nodiscard]] Result<Probe> probe_folder(const std::filesystem::path& folder,
                                         const ProbeOptions& options = {},
                                         const ProbeProgress& progress = {});

/// Over the samples given, all JPEG or all PNG.
[[nodiscard]] DecodeFit fit_decode(const std::vector<SampleRecord>& samples);

/// One sentence for people when the measuring was disturbed, else empty.
[[nodiscard]] std::string contention_warning(const Contention& contention);

}  // namespace stoker
