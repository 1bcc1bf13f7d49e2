#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "base/units.h"
#include "input/data/folder_scan.h"
#include "input/data/image_pipeline.h"

namespace stoker {

/// How the samples of a data set lie in its files.
enum class DataKind : std::uint8_t {
  kPictures,   ///< one JPEG or PNG file a sample
  kTarShards,  ///< tar archives of images, read from front to back (WebDataset)
  kRecords,    ///< binaries of raw pixels, all in memory while training (CIFAR, MNIST)
  kText        ///< one line a sample
};
inline constexpr std::size_t kDataKinds = 4;
[[nodiscard]] std::string_view data_kind_name(DataKind kind);
[[nodiscard]] std::optional<DataKind> data_kind_named(std::string_view name);
/// "picture", "line": for sentences.
[[nodiscard]] std::string_view sample_word(DataKind kind);

/// The data set as a whole.
struct DatasetFacts {
  std::string name;         ///< of the folder, without its path
  std::int64_t files = 0;   ///< of its kind
  bool files_exact = true;  ///< false: the listing was cut off, and this is a lower bound
  /// About how many files there are in all; equals `files` where that is exact.
  std::int64_t files_estimate = 0;
  std::int64_t samples = 0;   ///< images, records, lines
  bool samples_exact = true;  ///< false: extrapolated from those that were seen
  Bytes total_bytes;
  bool bytes_exact = true;  ///< false: extrapolated from a sample
  double mean_bytes = 0;    ///< of a file
  double mean_pixels = 0;   ///< of the measured sample; 0 for text
};

/// One sample, or one block of lines, that is measured.
struct DataSample {
  std::filesystem::path path;               ///< of an image file, read anew each time; else empty
  std::string content;                      ///< an image's file, raw pixels, or lines
  Nanos read;                               ///< CPU time that `content` took to get
  Bytes bytes;                              ///< read from storage for it
  int width = 0, height = 0, channels = 0;  ///< of raw pixels
  std::int64_t lines = 0;                   ///< of a block of text
};

struct DataSet {
  DataKind kind = DataKind::kPictures;
  std::string format;  ///< "JPEG", "CIFAR-10 binary"
  DatasetFacts facts;
  std::vector<DataSample> samples;
  std::vector<DataFile> files;            ///< a sample of the files that hold the data
  double entries_per_s = 0, stat_us = 0;  ///< of the listing
  Diagnostics diagnostics;
};

struct DataSetOptions {
  FolderScanOptions scan;
  std::optional<DataKind> kind =
      {};                     ///< taken whatever else lies there; else what fills most bytes
  std::size_t samples = 256;  ///< to be measured at most
  Bytes max_read = 2 * kGiB;
  /// wall_time() at which looking into shards and texts ends.
  Nanos deadline = 1e18 * kSecond;
  std::uint64_t seed = 1;
};

/// Finds out what lies in a folder or file; reads no more than the first bytes of files whose name
/// says nothing. Fails when nothing can be used; the message says what was found instead and what
/// to do.
[[nodiscard]] Result<DataSet> list_data_set(const std::filesystem::path& path,
                                            const DataSetOptions& options);

/// Takes samples of what was listed: looks into shards, records and texts.
[[nodiscard]] Status load_samples(const std::filesystem::path& path, const DataSetOptions& options,
                                  DataSet& set);

/// The kind alone, from the listing; quick.
[[nodiscard]] Result<DataKind> kind_of_data(const std::filesystem::path& path);

/// Runs one sample through the pipeline. A block of lines gives the cost of all its lines.
[[nodiscard]] PictureFault run_sample(const DataSample& sample, DataKind kind,
                                      ImagePipeline& pipeline, Random& random,
                                      SampleRecord& record);

}  // namespace stoker
