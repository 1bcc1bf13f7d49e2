#include "input/data/png.h"

#include <gtest/gtest.h>

#include "input/data/picture_decoder.h"
#include "input/data/test_data.h"

namespace stoker {
namespace {

constexpr std::int64_t kLimit = 1'000'000;

std::span<const std::uint8_t> bytes(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

struct Case {
  const char* what;
  TestPng png;
  int channels;  ///< that the file holds: grey ones are repeated, alpha is dropped
};

class PngKinds : public testing::TestWithParam<Case> {};

TEST_P(PngKinds, DecodesToTheValuesWritten) {
  const Case& c = GetParam();
  const std::string file = make_png(c.png);
  PngFacts facts;
  std::vector<std::uint8_t> rgb;
  ASSERT_EQ(decode_png(bytes(file), kLimit, facts, rgb), PictureFault::kNone) << c.what;
  EXPECT_EQ(facts.width, c.png.width);
  EXPECT_EQ(facts.height, c.png.height);
  EXPECT_EQ(facts.grey, c.channels <= 2);
  EXPECT_EQ(facts.alpha, c.channels == 2 || c.channels == 4);
  EXPECT_EQ(facts.interlaced, c.png.interlaced);
  EXPECT_EQ(facts.sixteen_bit, c.png.depth == 16);
  for (int y = 0; y < c.png.height; ++y) {
    for (int x = 0; x < c.png.width; ++x) {
      for (int k = 0; k < 3; ++k) {
        const std::size_t at = (static_cast<std::size_t>(y) * c.png.width + x) * 3 + k;
        ASSERT_EQ(rgb[at], png_value(x, y, facts.grey ? 0 : k)) << c.what << " " << x << "," << y;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Table, PngKinds,
    testing::Values(Case{"RGB", {}, 3}, Case{"RGBA", {.colour = PNG_COLOR_TYPE_RGB_ALPHA}, 4},
                    Case{"grey", {.colour = PNG_COLOR_TYPE_GRAY}, 1},
                    Case{"grey and alpha", {.colour = PNG_COLOR_TYPE_GRAY_ALPHA}, 2},
                    Case{"16 bits", {.depth = 16}, 3},
                    Case{"grey, 16 bits", {.colour = PNG_COLOR_TYPE_GRAY, .depth = 16}, 1},
                    Case{"RGBA, 16 bits", {.colour = PNG_COLOR_TYPE_RGB_ALPHA, .depth = 16}, 4},
                    Case{"interlaced", {.interlaced = true}, 3},
                    Case{"interlaced grey", {.colour = PNG_COLOR_TYPE_GRAY, .interlaced = true}, 1},
                    Case{"one pixel", {.width = 1, .height = 1}, 3}));

TEST(Png, ExpandsPalettes) {
  const std::string file = make_png({.colour = PNG_COLOR_TYPE_PALETTE});
  PngFacts facts;
  std::vector<std::uint8_t> rgb;
  ASSERT_EQ(decode_png(bytes(file), kLimit, facts, rgb), PictureFault::kNone);
  EXPECT_TRUE(facts.palette);
  const int index = png_value(3, 2, 0);
  const std::size_t at = (std::size_t{2} * 40 + 3) * 3;
  EXPECT_EQ(rgb[at], index);
  EXPECT_EQ(rgb[at + 1], 255 - index);
  EXPECT_EQ(rgb[at + 2], index / 2);
}

TEST(Png, NamesEveryFault) {
  const std::string file = make_png();
  PngFacts facts;
  std::vector<std::uint8_t> rgb;
  const auto fault = [&](const std::string& content) {
    return decode_png(bytes(content), kLimit, facts, rgb);
  };
  EXPECT_EQ(fault(make_png_bomb()), PictureFault::kTooManyPixels);
  EXPECT_LT(rgb.size(), 60'000U) << "nothing of the bomb may be decoded";
  EXPECT_EQ(decode_png(bytes(file), 10, facts, rgb), PictureFault::kTooManyPixels);
  for (std::size_t length = 8; length < file.size(); length += 3)
    ASSERT_EQ(fault(file.substr(0, length)), PictureFault::kTruncated) << length;
  std::string damaged = file;
  damaged[60] = static_cast<char>(damaged[60] ^ 0x40);
  EXPECT_EQ(fault(damaged), PictureFault::kCorrupt);
}

TEST(PictureDecoder, GoesByContent) {
  PictureDecoder decoder(kLimit);
  PictureFacts facts;
  std::vector<std::uint8_t> rgb;
  EXPECT_EQ(decoder.decode(bytes(make_png()), facts, rgb), PictureFault::kNone);
  EXPECT_TRUE(facts.png);
  EXPECT_EQ(decoder.decode(bytes("GIF89a........"), facts, rgb), PictureFault::kNotPicture);
  EXPECT_EQ(decoder.decode({}, facts, rgb), PictureFault::kNotPicture);
}

}  // namespace
}  // namespace stoker
