#pragma once

#include <gtest/gtest.h>
#include <png.h>
#include <zlib.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace stoker {

struct TestPng {
  int width = 40, height = 30;
  int colour = PNG_COLOR_TYPE_RGB;
  int depth = 8;
  bool interlaced = false;
};

/// The byte of channel `c` at a place of every test PNG; the upper byte where there are 16 bits.
inline std::uint8_t png_value(int x, int y, int c) {
  return static_cast<std::uint8_t>((x * 5 + y * 3 + c * 60) % 256);
}

/// A PNG file's content, by libpng's writer. Palettes hold 256 colours, entry i being (i, 255 - i,
/// i / 2), and the pixels' indices are channel 0.
inline std::string make_png(const TestPng& wanted = {}) {
  std::string out;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  if (setjmp(png_jmpbuf(png)) != 0) {
    ADD_FAILURE() << "libpng refused to write";
    png_destroy_write_struct(&png, &info);
    return {};
  }
  png_set_write_fn(
      png, &out,
      [](png_structp p, png_bytep data, png_size_t size) {
        static_cast<std::string*>(png_get_io_ptr(p))->append(reinterpret_cast<char*>(data), size);
      },
      nullptr);
  png_set_IHDR(png, info, static_cast<png_uint_32>(wanted.width),
               static_cast<png_uint_32>(wanted.height), wanted.depth, wanted.colour,
               wanted.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  std::vector<png_color> palette;
  if (wanted.colour == PNG_COLOR_TYPE_PALETTE) {
    for (int i = 0; i < 256; ++i) {
      palette.push_back(
          {static_cast<png_byte>(i), static_cast<png_byte>(255 - i), static_cast<png_byte>(i / 2)});
    }
    png_set_PLTE(png, info, palette.data(), 256);
  }
  png_write_info(png, info);
  const int channels = png_get_channels(png, info);
  const int bytes = wanted.depth == 16 ? 2 : 1;
  std::vector<std::uint8_t> pixels;
  for (int y = 0; y < wanted.height; ++y) {
    for (int x = 0; x < wanted.width; ++x) {
      for (int c = 0; c < channels; ++c) {
        pixels.push_back(png_value(x, y, c));
        if (bytes == 2) pixels.push_back(77);
      }
    }
  }
  std::vector<png_bytep> rows;
  for (int y = 0; y < wanted.height; ++y)
    rows.push_back(&pixels[static_cast<std::size_t>(y) * wanted.width * channels * bytes]);
  png_write_image(png, rows.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return out;
}

/// A PNG whose header claims 60,000 x 60,000 pixels, with a true checksum.
inline std::string make_png_bomb() {
  std::string png = make_png();
  for (const std::size_t at : {16, 20}) {
    png[at] = 0, png[at + 1] = 0, png[at + 2] = '\xEA', png[at + 3] = '\x60';
  }
  const uLong sum = crc32(0, reinterpret_cast<const Bytef*>(png.data()) + 12, 17);
  for (int i = 0; i < 4; ++i) png[29 + i] = static_cast<char>(sum >> (24 - 8 * i));
  return png;
}

/// One member of a tar archive (ustar), its header and its data.
inline std::string tar_member(const std::string& name, std::string_view data) {
  std::string block(512, '\0');
  block.replace(0, name.size(), name);
  const auto field = [&](std::size_t at, std::size_t width, std::uint64_t value) {
    char digits[24];
    std::snprintf(digits, sizeof digits, "%0*llo", static_cast<int>(width - 1),
                  static_cast<unsigned long long>(value));
    block.replace(at, width - 1, digits, width - 1);
  };
  field(100, 8, 0644);
  field(108, 8, 0);
  field(116, 8, 0);
  field(124, 12, data.size());
  field(136, 12, 0);
  block[156] = '0';
  block.replace(257, 8,
                std::string("ustar\0"
                            "00",
                            8));
  block.replace(148, 8, "        ");
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  field(148, 7, sum);
  block[154] = '\0';
  block += data;
  block.resize((block.size() + 511) / 512 * 512, '\0');
  return block;
}
inline std::string tar_end() { return std::string(1024, '\0'); }

inline std::string gzipped(const std::string& content) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, content.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

/// Records as CIFAR-10's binary version has them.
inline std::string cifar10(int records) {
  std::string out;
  for (int r = 0; r < records; ++r) {
    out += static_cast<char>(r % 10);
    for (int i = 0; i < 3072; ++i) out += static_cast<char>((r + i / 1024 * 80) % 256);
  }
  return out;
}

/// An idx file of grey images, as MNIST's.
inline std::string idx_pictures(int records, int rows, int columns) {
  std::string out("\0\0\x08\x03", 4);
  for (const int size : {records, rows, columns}) {
    for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(size >> shift);
  }
  out += std::string(static_cast<std::size_t>(records) * rows * columns, '\x55');
  return out;
}

}  // namespace stoker
