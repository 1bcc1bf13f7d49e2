#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"

namespace stoker {

/// The whole file, refused above `limit` (a wrong path to a huge file must not fill memory).
[[nodiscard]] Result<std::string> read_file(const std::filesystem::path& path, Bytes limit);

/// The decompressed content of a gzip file. `limit` bounds what it may decompress to, whatever it
/// claims.
[[nodiscard]] Result<std::string> read_gzip_file(const std::filesystem::path& path, Bytes limit);

/// CRC-32 as zlib has it: tells whether a file is another by now.
[[nodiscard]] std::uint32_t crc32_of(std::string_view text);

/// Writes through a temporary file in the same folder and renames, so that the old file stays whole
/// when the disk fills or the process dies, and nothing else is left behind. A device or a pipe is
/// written to as it is.
[[nodiscard]] Status write_file(const std::filesystem::path& path, std::string_view content);

/// Folder of shipped data (gpus, zoo, coefficients): $STOKER_DATA, or beside the binary
/// (../share/stoker, ../../data ...), or the source tree it was built from.
[[nodiscard]] Result<std::filesystem::path> data_folder();

/// Folder for what can be made again (captured specs): $XDG_CACHE_HOME/stoker, ~/.cache/stoker, or
/// without a home /tmp/cache-UID/stoker.
[[nodiscard]] std::filesystem::path cache_folder();

}  // namespace stoker
