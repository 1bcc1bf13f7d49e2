#pragma once

#include <gtest/gtest.h>
#include <turbojpeg.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace stoker {

/// A folder of its own for one test, removed at its end.
class ScratchFolder {
 public:
  ScratchFolder() {
    static std::atomic<int> counter{0};
    path_ = std::filesystem::temp_directory_path() /
            ("stoker-input-" + std::to_string(::getpid()) + "-" + std::to_string(counter++));
    std::filesystem::create_directories(path_);
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  std::filesystem::path write(const std::string& name, std::string_view content) const {
    const std::filesystem::path file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << content;
    return file;
  }

 private:
  std::filesystem::path path_;
};

struct TestPicture {
  int width = 64, height = 48;
  TJPF format = TJPF_RGB;  ///< TJPF_GRAY, TJPF_CMYK
  TJSAMP sampling = TJSAMP_420;
  int flags = 0;  ///< TJFLAG_PROGRESSIVE
};

/// A JPEG file's content: a smooth gradient with some texture.
inline std::string make_jpeg(const TestPicture& wanted = {}) {
  const int channels = tjPixelSize[wanted.format];
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(wanted.width) * wanted.height *
                                   channels);
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    const std::size_t x = i / channels % wanted.width, y = i / channels / wanted.width;
    pixels[i] =
        static_cast<std::uint8_t>((x * 2 + y * 3 + i % channels * 40 + (x * y % 7) * 5) % 256);
  }
  tjhandle encoder = tjInitCompress();
  unsigned char* out = nullptr;
  unsigned long size = 0;
  const TJSAMP sampling = wanted.format == TJPF_GRAY ? TJSAMP_GRAY : wanted.sampling;
  const int failed = tjCompress2(encoder, pixels.data(), wanted.width, 0, wanted.height,
                                 wanted.format, &out, &size, sampling, 85, wanted.flags);
  EXPECT_EQ(failed, 0) << tjGetErrorStr2(encoder);
  std::string jpeg(reinterpret_cast<char*>(out), size);
  tjFree(out);
  tjDestroy(encoder);
  return jpeg;
}

/// A JPEG whose header claims 65,000 x 65,000 pixels: a decompression bomb in a few hundred bytes.
inline std::string make_bomb() {
  std::string jpeg = make_jpeg();
  for (std::size_t i = 0; i + 9 < jpeg.size(); ++i) {
    if (static_cast<unsigned char>(jpeg[i]) == 0xFF &&
        static_cast<unsigned char>(jpeg[i + 1]) == 0xC0) {
      for (const std::size_t at : {i + 5, i + 7}) jpeg[at] = '\xFD', jpeg[at + 1] = '\xE8';
      break;
    }
  }
  return jpeg;
}

}  // namespace stoker
