#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "input/data/picture_fault.h"

namespace stoker {

/// What an image's file says of it.
struct PictureFacts {
  int width = 0, height = 0;
  bool progressive = false, grey = false, cmyk = false;
  bool png = false, interlaced = false, sixteen_bit = false, alpha = false;
};

/// Decodes JPEG (libjpeg-turbo) and PNG (libpng) to interleaved 8-bit RGB. Which of the two a file
/// is, its content tells, not its name. Not thread-safe; buffers are reused.
class PictureDecoder {
 public:
  /// Images of more than `max_pixels` are refused from their header, undecoded.
  explicit PictureDecoder(std::int64_t max_pixels);
  ~PictureDecoder();
  PictureDecoder(const PictureDecoder&) = delete;
  PictureDecoder& operator=(const PictureDecoder&) = delete;

  /// On kNone, the first width * height * 3 bytes of `rgb` are the image; it grows only.
  PictureFault decode(std::span<const std::uint8_t> file, PictureFacts& facts,
                      std::vector<std::uint8_t>& rgb);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stoker
