#include "input/data/png.h"

#include <png.h>

#include <algorithm>
#include <cstring>

namespace stoker {
namespace {

constexpr std::size_t kSignature = 8;

/// Where libpng reads from.
struct Source {
  std::span<const std::uint8_t> file;
  std::size_t at = 0;
  bool ran_dry = false;
};

void read_source(png_structp png, png_bytep out, png_size_t wanted) {
  auto* source = static_cast<Source*>(png_get_io_ptr(png));
  if (source->file.size() - source->at < wanted) {
    source->ran_dry = true;
    png_error(png, "the file ends early");
  }
  std::memcpy(out, source->file.data() + source->at, wanted);
  source->at += wanted;
}

void on_error(png_structp png, png_const_charp) { png_longjmp(png, 1); }
void on_warning(png_structp, png_const_charp) {}

/// libpng's two structs, freed in any case.
class Decoder {
 public:
  Decoder() : png_(png_create_read_struct(PNG_LIBPNG_VER_STRING, nullptr, on_error, on_warning)) {
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
  }
  ~Decoder() { png_destroy_read_struct(&png_, &info_, nullptr); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  [[nodiscard]] bool good() const { return png_ != nullptr && info_ != nullptr; }
  [[nodiscard]] png_structp png() const { return png_; }
  [[nodiscard]] png_infop info() const { return info_; }

 private:
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

// libpng reports errors by longjmp. The functions below that set the jump's target keep nothing
// that would have to be destroyed, and are separate so that no local of theirs changes after
// setjmp and is read later.

PictureFault read_header(png_structp png, png_infop info, Source* source, PngFacts* facts) {
  if (setjmp(png_jmpbuf(png)) != 0) {
    return source->ran_dry ? PictureFault::kTruncated : PictureFault::kCorrupt;
  }
  png_set_read_fn(png, source, read_source);
  png_read_info(png, info);
  const int colour = png_get_color_type(png, info);
  facts->width = static_cast<int>(png_get_image_width(png, info));
  facts->height = static_cast<int>(png_get_image_height(png, info));
  facts->grey = (colour & PNG_COLOR_MASK_COLOR) == 0;
  facts->palette = (colour & PNG_COLOR_MASK_PALETTE) != 0;
  facts->alpha =
      (colour & PNG_COLOR_MASK_ALPHA) != 0 || png_get_valid(png, info, PNG_INFO_tRNS) != 0;
  facts->sixteen_bit = png_get_bit_depth(png, info) == 16;
  facts->interlaced = png_get_interlace_type(png, info) == PNG_INTERLACE_ADAM7;
  return PictureFault::kNone;
}

PictureFault read_rows(png_structp png, png_infop info, const Source* source, std::uint8_t* rgb,
                       std::size_t row_bytes, int height) {
  if (setjmp(png_jmpbuf(png)) != 0) {
    return source->ran_dry ? PictureFault::kTruncated : PictureFault::kCorrupt;
  }
  png_set_expand(png);  // palette, fewer than 8 bits and tRNS to full samples
  png_set_strip_16(png);
  png_set_gray_to_rgb(png);
  png_set_strip_alpha(png);
  const int passes = png_set_interlace_handling(png);
  png_read_update_info(png, info);
  if (png_get_rowbytes(png, info) != row_bytes) return PictureFault::kCorrupt;
  for (int pass = 0; pass < passes; ++pass) {
    for (int y = 0; y < height; ++y) {
      png_read_row(png, rgb + static_cast<std::size_t>(y) * row_bytes, nullptr);
    }
  }
  png_read_end(png, nullptr);
  return PictureFault::kNone;
}

}  // namespace

bool is_png(std::span<const std::uint8_t> file) {
  return file.size() >= kSignature && png_sig_cmp(file.data(), 0, kSignature) == 0;
}

PictureFault decode_png(std::span<const std::uint8_t> file, std::int64_t max_pixels,
                        PngFacts& facts, std::vector<std::uint8_t>& rgb) {
  const Decoder decoder;
  if (!decoder.good()) return PictureFault::kCorrupt;
  Source source{file};
  if (const PictureFault fault = read_header(decoder.png(), decoder.info(), &source, &facts);
      fault != PictureFault::kNone) {
    return fault;
  }
  if (std::int64_t{facts.width} * facts.height > max_pixels ||
      std::max(facts.width, facts.height) > kMaxPictureSide) {
    return PictureFault::kTooManyPixels;
  }
  const std::size_t row_bytes = static_cast<std::size_t>(facts.width) * 3;
  const std::size_t bytes = row_bytes * static_cast<std::size_t>(facts.height);
  if (rgb.size() < bytes) rgb.resize(bytes);
  return read_rows(decoder.png(), decoder.info(), &source, rgb.data(), row_bytes, facts.height);
}

}  // namespace stoker
