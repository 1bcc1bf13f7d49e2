#include "input/data/resample.h"

#include <gtest/gtest.h>

#include <vector>

namespace stoker {
namespace {

using Bytes8 = std::vector<std::uint8_t>;

/// An image that is the same in every language.
Bytes8 picture(int width, int height) {
  Bytes8 pixels;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      pixels.push_back(static_cast<std::uint8_t>((x * 37 + y * 91) % 256));
      pixels.push_back(static_cast<std::uint8_t>((x * x * 13 + y * 29) % 256));
      pixels.push_back(static_cast<std::uint8_t>((255 - x * 17 + y * y * 7) % 256));
    }
  }
  return pixels;
}

Bytes8 resized(int width, int height, CropBox box, int size) {
  const Bytes8 pixels = picture(width, height);
  ResampleBuffers buffers;
  Bytes8 out;
  resample_bilinear({pixels.data(), width, height}, box, size, buffers, out);
  return out;
}

// Image.resize((size, size), Image.BILINEAR) of Pillow 13.0.0 on the same pixels, byte by byte.

TEST(Resample, ShrinksAsPillowDoes) {
  EXPECT_EQ(resized(7, 5, {0, 0, 7, 5}, 2),
            (Bytes8{110, 75, 178, 131, 138, 189, 111, 121, 85, 123, 114, 142}));
}

TEST(Resample, ACropIsCutBeforeItIsScaled) {
  EXPECT_EQ(resized(7, 5, {1, 1, 4, 3}, 3),
            (Bytes8{139, 54, 240, 184, 114, 220, 228, 210, 199, 153, 83,  82, 19, 143,
                    241, 63, 59,  220, 65,  112, 40,  110, 172, 20,  154, 88, 178}));
}

TEST(Resample, EnlargesAsPillowDoes) {
  EXPECT_EQ(resized(3, 3, {0, 0, 3, 3}, 5),
            (Bytes8{0,   0,  255, 15,  5,  248, 37,  13, 238, 59,  36, 228, 74,  52,  221,
                    36,  12, 155, 51,  17, 190, 73,  25, 241, 95,  48, 231, 110, 64,  224,
                    91,  29, 6,   106, 34, 102, 128, 42, 245, 150, 65, 235, 165, 81,  228,
                    146, 46, 19,  161, 51, 53,  183, 59, 104, 113, 82, 186, 66,  98,  241,
                    182, 58, 27,  197, 63, 20,  219, 71, 10,  88,  94, 153, 0,   110, 249}));
}

TEST(Resample, OnePixelFillsAll) {
  const Bytes8 one = resized(1, 1, {0, 0, 1, 1}, 4);
  ASSERT_EQ(one.size(), 48U);
  for (std::size_t i = 0; i < one.size(); i += 3)
    EXPECT_EQ((Bytes8{one[i], one[i + 1], one[i + 2]}), (Bytes8{0, 0, 255}));
}

}  // namespace
}  // namespace stoker
