#include "input/data/resample.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace stoker {
namespace {

/// Fixed-point digits: 8 bits of pixel and 2 of headroom out of 32, as Pillow has it.
constexpr int kPrecision = 22;
constexpr std::int32_t kHalf = 1 << (kPrecision - 1);

std::uint8_t to_pixel(std::int32_t fixed) {
  return static_cast<std::uint8_t>(std::clamp(fixed >> kPrecision, 0, 255));
}

/// Weights of `out` outputs over `in` inputs; returns the weights an output (the last may be zero).
int make_weights(int in, int out, std::vector<std::int32_t>& weights, std::vector<int>& first) {
  const double scale = static_cast<double>(in) / out;
  const double support = std::max(scale, 1.0);
  const int taps = static_cast<int>(std::ceil(support)) * 2 + 1;
  weights.assign(static_cast<std::size_t>(out) * taps, 0);
  first.resize(out);
  std::vector<double> line(taps);
  for (int i = 0; i < out; ++i) {
    const double center = (i + 0.5) * scale;
    const int begin = std::max(0, static_cast<int>(center - support + 0.5));
    const int end = std::min(in, static_cast<int>(center + support + 0.5));
    first[i] = begin;
    double sum = 0;
    for (int k = 0; k < end - begin; ++k) {
      line[k] = std::max(0.0, 1 - std::abs((k + begin - center + 0.5) / support));
      sum += line[k];
    }
    for (int k = 0; k < end - begin; ++k) {
      weights[static_cast<std::size_t>(i) * taps + k] =
          static_cast<std::int32_t>(std::lround(line[k] / sum * (1 << kPrecision)));
    }
  }
  return taps;
}

/// One row of `box`, scaled to `size` pixels.
void scale_row(const std::uint8_t* row, int width, int size, int taps,
               const ResampleBuffers& buffers, std::uint8_t* out) {
  for (int x = 0; x < size; ++x) {
    const std::int32_t* weight = &buffers.weights_x[static_cast<std::size_t>(x) * taps];
    const int count = std::min(taps, width - buffers.first_x[x]);
    const std::uint8_t* pixel = row + static_cast<std::ptrdiff_t>(buffers.first_x[x]) * 3;
    std::int32_t red = kHalf, green = kHalf, blue = kHalf;
    for (int k = 0; k < count; ++k, pixel += 3) {
      red += pixel[0] * weight[k];
      green += pixel[1] * weight[k];
      blue += pixel[2] * weight[k];
    }
    out[x * 3] = to_pixel(red);
    out[x * 3 + 1] = to_pixel(green);
    out[x * 3 + 2] = to_pixel(blue);
  }
}

}  // namespace

void resample_bilinear(RgbView picture, CropBox box, int size, ResampleBuffers& buffers,
                       std::vector<std::uint8_t>& out) {
  const int taps_x = make_weights(box.width, size, buffers.weights_x, buffers.first_x);
  const int taps_y = make_weights(box.height, size, buffers.weights_y, buffers.first_y);
  const std::size_t stride = static_cast<std::size_t>(size) * 3;
  buffers.rows.resize(stride * box.height);
  for (int y = 0; y < box.height; ++y) {
    const std::uint8_t* row =
        picture.pixels + (static_cast<std::size_t>(box.top + y) * picture.width + box.left) * 3;
    scale_row(row, box.width, size, taps_x, buffers, &buffers.rows[stride * y]);
  }
  out.resize(stride * size);
  for (int y = 0; y < size; ++y) {
    const std::int32_t* weight = &buffers.weights_y[static_cast<std::size_t>(y) * taps_y];
    const int count = std::min(taps_y, box.height - buffers.first_y[y]);
    const std::uint8_t* column = &buffers.rows[stride * buffers.first_y[y]];
    for (std::size_t x = 0; x < stride; ++x) {
      std::int32_t sum = kHalf;
      for (int k = 0; k < count; ++k) sum += column[stride * k + x] * weight[k];
      out[stride * y + x] = to_pixel(sum);
    }
  }
}

}  // namespace stoker
