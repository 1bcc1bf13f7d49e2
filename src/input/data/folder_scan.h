#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "base/units.h"

namespace stoker {

struct FolderScanOptions {
  /// Folder entries looked at before the listing stops and says that its counts are lower bounds.
  std::int64_t max_entries = 20'000'000;
  /// Wall time of the listing before it stops likewise.
  Nanos max_time = 20.0 * kSecond;
  /// Files of a kind kept (drawn uniformly from all of them) and asked for their size. Below this
  /// number of files the total is exact, above it an extrapolation.
  std::size_t sample = 4096;
  std::uint64_t seed = 1;
};

struct DataFile {
  std::filesystem::path path;
  Bytes size;
};

/// What a file seems to hold, by its name alone.
enum class FileKind : std::uint8_t { kPicture, kTar, kRecords, kText, kOther };
inline constexpr std::size_t kFileKinds = 5;
/// `name` without folders: "n01440764_tench.JPEG", "data_batch_1.bin",
/// "train-images-idx3-ubyte.gz".
[[nodiscard]] FileKind file_kind(std::string_view name);
/// Lower-case ending without its dot; empty when there is none.
[[nodiscard]] std::string file_ending(std::string_view name);

/// The files of one kind.
struct FilesOfKind {
  std::int64_t count = 0;  ///< zero-byte ones included
  /// A uniform sample of those that are not empty, in an order fixed by the seed.
  std::vector<DataFile> sample;
  bool sizes_exact = true;  ///< every file was asked for its size, not only a sample
  Bytes total_bytes;        ///< of all files; extrapolated when not `sizes_exact`
  double mean_bytes = 0;    ///< of the sample
};

/// What lies in a folder. How it is divided into sub-folders (classes) does not matter.
struct FolderListing {
  std::string name;  ///< last component of the path; never the whole path
  std::array<FilesOfKind, kFileKinds> kinds;
  std::int64_t folders = 0;
  /// Files of kOther by ending ("parquet" -> 12; "" for none), the first few dozen endings.
  std::map<std::string, std::int64_t> endings;
  bool complete = true;  ///< false: the listing was cut off, the counts are lower bounds
  /// Estimate of all files / files listed; above 1 only where the listing was cut off and other
  /// folders, or the size of the folder that was cut, tell how much was left.
  double beyond_listing = 1;
  double entries_per_s = 0;  ///< that readdir gave; 0: a single file
  double stat_us = 0;        ///< asking one file for its size
  Diagnostics diagnostics;

  [[nodiscard]] const FilesOfKind& of(FileKind kind) const {
    return kinds[static_cast<std::size_t>(kind)];
  }
  [[nodiscard]] FilesOfKind& of(FileKind kind) { return kinds[static_cast<std::size_t>(kind)]; }
};

/// Walks `folder` (following symbolic links, each folder once), or takes the single file that the
/// path names. Reads no file. Fails when it is missing or cannot be listed.
[[nodiscard]] Result<FolderListing> scan_folder(const std::filesystem::path& folder,
                                                const FolderScanOptions& options = {});

/// "12 .png files, 3 other files": for messages.
[[nodiscard]] std::string what_was_found(const FolderListing& listing);

}  // namespace stoker
