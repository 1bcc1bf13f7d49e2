#include "input/data/picture_decoder.h"

#include <turbojpeg.h>

#include <algorithm>
#include <string_view>

#include "input/data/png.h"

namespace stoker {
namespace {

/// A progressive image has a start-of-frame marker FFC2 (ITU T.81, table B.1).
bool is_progressive(std::span<const std::uint8_t> file) {
  std::size_t at = 2;
  while (at + 4 <= file.size() && file[at] == 0xFF) {
    const std::uint8_t marker = file[at + 1];
    if (marker == 0xC2) return true;
    if (marker == 0xDA || (marker >= 0xC0 && marker <= 0xC1)) return false;
    at += 2 + (static_cast<std::size_t>(file[at + 2]) << 8 | file[at + 3]);
  }
  return false;
}

bool is_jpeg(std::span<const std::uint8_t> file) {
  return file.size() >= 4 && file[0] == 0xFF && file[1] == 0xD8;
}

}  // namespace

struct PictureDecoder::State {
  explicit State(std::int64_t limit) : max_pixels(limit), jpeg(tjInitDecompress()) {}
  ~State() {
    if (jpeg != nullptr) tjDestroy(jpeg);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  PictureFault decode_jpeg(std::span<const std::uint8_t> file, PictureFacts& facts,
                           std::vector<std::uint8_t>& rgb);
  void from_cmyk(std::size_t pixels, std::vector<std::uint8_t>& rgb) const;

  std::int64_t max_pixels;
  tjhandle jpeg;
  std::vector<std::uint8_t> cmyk;
};

PictureFault PictureDecoder::State::decode_jpeg(std::span<const std::uint8_t> file,
                                                PictureFacts& facts,
                                                std::vector<std::uint8_t>& rgb) {
  int subsampling = 0, colorspace = 0;
  if (tjDecompressHeader3(jpeg, file.data(), file.size(), &facts.width, &facts.height, &subsampling,
                          &colorspace) != 0 ||
      facts.width <= 0 || facts.height <= 0) {
    return PictureFault::kCorrupt;
  }
  const std::int64_t pixels = std::int64_t{facts.width} * facts.height;
  if (pixels > max_pixels) return PictureFault::kTooManyPixels;
  facts.progressive = is_progressive(file);
  facts.grey = colorspace == TJCS_GRAY;
  facts.cmyk = colorspace == TJCS_CMYK || colorspace == TJCS_YCCK;
  const auto count = static_cast<std::size_t>(pixels);
  if (rgb.size() < count * 3) rgb.resize(count * 3);
  if (facts.cmyk && cmyk.size() < count * 4) cmyk.resize(count * 4);
  std::uint8_t* out = facts.cmyk ? cmyk.data() : rgb.data();
  const int failed =
      tjDecompress2(jpeg, file.data(), file.size(), out, facts.width, 0, facts.height,
                    facts.cmyk ? TJPF_CMYK : TJPF_RGB, TJFLAG_ACCURATEDCT);
  if (failed != 0) {
    const std::string_view why = tjGetErrorStr2(jpeg);
    if (why.find("remature end") != std::string_view::npos) return PictureFault::kTruncated;
    // Lesser warnings (stray bytes between segments) stop no loader.
    if (tjGetErrorCode(jpeg) == TJERR_FATAL) return PictureFault::kCorrupt;
  }
  if (facts.cmyk) from_cmyk(count, rgb);
  return PictureFault::kNone;
}

/// Adobe writes CMYK inverted: 255 is no ink.
void PictureDecoder::State::from_cmyk(std::size_t pixels, std::vector<std::uint8_t>& rgb) const {
  for (std::size_t i = 0; i < pixels; ++i) {
    const std::uint8_t* ink = &cmyk[i * 4];
    for (std::size_t c = 0; c < 3; ++c) {
      rgb[i * 3 + c] = static_cast<std::uint8_t>(ink[c] * ink[3] / 255);
    }
  }
}

PictureDecoder::PictureDecoder(std::int64_t max_pixels)
    : state_(std::make_unique<State>(max_pixels)) {}
PictureDecoder::~PictureDecoder() = default;

PictureFault PictureDecoder::decode(std::span<const std::uint8_t> file, PictureFacts& facts,
                                    std::vector<std::uint8_t>& rgb) {
  facts = {};
  if (is_jpeg(file)) return state_->decode_jpeg(file, facts, rgb);
  if (!is_png(file)) return PictureFault::kNotPicture;
  PngFacts png;
  const PictureFault fault = decode_png(file, state_->max_pixels, png, rgb);
  facts = {.width = png.width,
           .height = png.height,
           .grey = png.grey,
           .png = true,
           .interlaced = png.interlaced,
           .sixteen_bit = png.sixteen_bit,
           .alpha = png.alpha};
  return fault;
}

}  // namespace stoker
