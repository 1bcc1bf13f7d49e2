#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"

namespace stoker {

struct Unpacked {
  std::string content;
  bool cut = false;  ///< gzip that ends early or is damaged: `content` is what came before
};

/// A file that others wrote, unpacked where it begins as gzip does, whatever its name says. Several
/// members in a row are one content. `limit` bounds what it may decompress to.
[[nodiscard]] Result<Unpacked> read_unpacked(const std::filesystem::path& path, Bytes limit);

/// Bytes of a file, unpacked where they begin as gzip does; `where` names them in errors.
[[nodiscard]] Result<Unpacked> unpacked(std::string packed, const std::string& where, Bytes limit);

}  // namespace stoker
