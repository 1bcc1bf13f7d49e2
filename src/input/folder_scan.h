#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
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
  /// Pictures kept (drawn uniformly from all of them) and asked for their size. Below this number
  /// of pictures the total is exact, above it an extrapolation.
  std::size_t sample = 4096;
  std::uint64_t seed = 1;
};

struct PictureFile {
  std::filesystem::path path;
  Bytes size;
};

/// What lies in a folder of pictures. How it is divided into sub-folders (classes) does not matter.
struct FolderListing {
  std::string name;              ///< last component of the path; never the whole path
  std::int64_t jpeg_files = 0;   ///< by extension, zero-byte ones included
  std::int64_t other_files = 0;  ///< neither JPEG nor a picture that we know
  std::int64_t folders = 0;
  /// Pictures that are recognised but not probed, by extension: "png" -> 12.
  std::map<std::string, std::int64_t> other_pictures;
  bool complete = true;  ///< false: the listing was cut off, the counts are lower bounds
  /// A uniform sample of the JPEG files that are not empty, in an order fixed by the seed.
  std::vector<PictureFile> sample;
  bool sizes_exact = true;  ///< every file was asked for its size, not only a sample
  Bytes total_bytes;        ///< of all JPEG files; extrapolated when not `sizes_exact`
  double mean_bytes = 0, sd_bytes = 0, median_bytes = 0, p95_bytes = 0, max_bytes = 0;
  Diagnostics diagnostics;
};

/// Walks `folder` (following symbolic links, each folder once) for JPEG files. Reads no file.
/// Fails when it is missing, not a folder, or holds no JPEG file that can be used; the message says
/// what was found instead.
[[nodiscard]] Result<FolderListing> scan_folder(const std::filesystem::path& folder,
                                                const FolderScanOptions& options = {});

}  // namespace stoker
