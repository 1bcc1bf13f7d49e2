#pragma once

#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace stoker {

/// A file read from front to back, decompressed on the way when it is gzip.
class UnpackedFile {
 public:
  explicit UnpackedFile(const std::filesystem::path& path);

  [[nodiscard]] bool good() const { return file_ != nullptr; }
  /// It is not gzip: sizes and offsets are those of the file.
  [[nodiscard]] bool plain() const { return plain_; }
  /// Bytes read into the front of `out`; fewer than its size at the end or where it is damaged.
  std::size_t read(std::span<std::uint8_t> out);
  /// The stream is damaged or cut short.
  [[nodiscard]] bool damaged() const;
  /// Goes to `offset` of the unpacked content; a gzip file is decompressed up to there, and cannot
  /// go back.
  bool seek(std::int64_t offset);
  /// Bytes of the file on disk that are behind us, about.
  [[nodiscard]] std::int64_t packed_position() const;

 private:
  struct Closer {
    void operator()(gzFile_s* file) const { gzclose_r(file); }
  };
  std::unique_ptr<gzFile_s, Closer> file_;
  bool plain_ = true;
};

}  // namespace stoker
