#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "input/data/picture_fault.h"

namespace stoker {

/// What the header of a PNG file says.
struct PngFacts {
  int width = 0, height = 0;
  bool grey = false, palette = false, alpha = false;
  bool sixteen_bit = false;
  bool interlaced = false;  ///< Adam7
};

/// True when `file` opens with PNG's signature.
[[nodiscard]] bool is_png(std::span<const std::uint8_t> file);

/// Decodes `file` to interleaved 8-bit RGB, as Pillow's `convert("RGB")` does: palettes and grey
/// are expanded, alpha is dropped, of 16 bits the upper eight are kept. `max_pixels` is checked
/// against the header, before anything is decompressed; texts and colour profiles are not
/// decompressed beyond libpng's own limit. `rgb` grows only.
[[nodiscard]] PictureFault decode_png(std::span<const std::uint8_t> file, std::int64_t max_pixels,
                                      PngFacts& facts, std::vector<std::uint8_t>& rgb);

}  // namespace stoker
