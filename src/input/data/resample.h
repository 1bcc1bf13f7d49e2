#pragma once

#include <cstdint>
#include <vector>

namespace stoker {

/// Interleaved 8-bit RGB.
struct RgbView {
  const std::uint8_t* pixels = nullptr;
  int width = 0, height = 0;
};

struct CropBox {
  int left = 0, top = 0, width = 0, height = 0;
};

/// Scratch memory that survives from image to image.
struct ResampleBuffers {
  std::vector<std::int32_t> weights_x, weights_y;
  std::vector<int> first_x, first_y;
  std::vector<std::uint8_t> rows;
};

/// Scales `box` of `picture` to size x size into `out` (size * size * 3 bytes): separable triangle
/// filter whose support grows with the reduction, 8-bit intermediate and fixed-point weights. This
/// is the arithmetic of Pillow's Image.resize(BILINEAR), so that its cost grows with crop and
/// output alike.
void resample_bilinear(RgbView picture, CropBox box, int size, ResampleBuffers& buffers,
                       std::vector<std::uint8_t>& out);

}  // namespace stoker
