#include "base/files.h"

#include <unistd.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <system_error>
#include <vector>

namespace stoker {
namespace fs = std::filesystem;

namespace {

std::string system_reason() { return std::strerror(errno); }

struct FileCloser {
  void operator()(std::FILE* f) const { std::fclose(f); }
};
using File = std::unique_ptr<std::FILE, FileCloser>;

std::string too_large(Bytes limit) {
  return "is larger than " + std::to_string(limit.count() / kMiB.count()) +
         " MiB; this cannot be the file that is meant";
}

}  // namespace

Result<std::string> read_file(const fs::path& path, Bytes limit) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    return fail(ErrorCode::kBadInput, "is a folder, a file is needed", path.string());
  }
  const File file(std::fopen(path.c_str(), "rb"));
  if (!file) return fail(ErrorCode::kIo, "cannot be read: " + system_reason(), path.string());
  std::string content;
  std::array<char, 1 << 16> block{};
  while (const std::size_t n = std::fread(block.data(), 1, block.size(), file.get())) {
    content.append(block.data(), n);
    if (static_cast<std::int64_t>(content.size()) > limit.count()) {
      return fail(ErrorCode::kBadInput, too_large(limit), path.string());
    }
  }
  if (std::ferror(file.get())) {
    return fail(ErrorCode::kIo, "cannot be read to its end: " + system_reason(), path.string());
  }
  return content;
}

Result<std::string> read_gzip_file(const fs::path& path, Bytes limit) {
  auto packed = read_file(path, limit);
  if (!packed) return packed;
  z_stream stream{};
  constexpr int kGzipOnly = 15 + 16;  // zlib.h, inflateInit2: window 2^15, gzip header required
  if (inflateInit2(&stream, kGzipOnly) != Z_OK) {
    return fail(ErrorCode::kIo, "cannot be decompressed: zlib did not start", path.string());
  }
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, inflateEnd);
  stream.next_in = reinterpret_cast<Bytef*>(packed->data());
  stream.avail_in = static_cast<uInt>(packed->size());
  std::string content;
  std::vector<char> block(1 << 18);
  int state = Z_OK;
  while (state != Z_STREAM_END) {
    stream.next_out = reinterpret_cast<Bytef*>(block.data());
    stream.avail_out = static_cast<uInt>(block.size());
    state = inflate(&stream, Z_NO_FLUSH);
    const std::size_t produced = block.size() - stream.avail_out;
    content.append(block.data(), produced);
    if (static_cast<std::int64_t>(content.size()) > limit.count()) {
      return fail(ErrorCode::kBadInput, "decompresses to more than it may; " + too_large(limit),
                  path.string());
    }
    if (state == Z_DATA_ERROR || state == Z_NEED_DICT) {
      return fail(ErrorCode::kBadInput,
                  "is not gzip, or is damaged; write it again (a step file: `stoker capture`)",
                  path.string());
    }
    if (state != Z_STREAM_END && produced == 0 && stream.avail_in == 0) {
      return fail(ErrorCode::kBadInput, "is cut short; write it again (a step file: `stoker capture`)",
                  path.string());
    }
  }
  return content;
}

Status write_file(const fs::path& path, std::string_view content) {
  const fs::path temporary = path.string() + ".tmp" + std::to_string(::getpid());
  {
    File file(std::fopen(temporary.c_str(), "wb"));
    if (!file) return fail(ErrorCode::kIo, "cannot be written: " + system_reason(), path.string());
    const bool written =
        std::fwrite(content.data(), 1, content.size(), file.get()) == content.size() &&
        std::fflush(file.get()) == 0 && ::fsync(::fileno(file.get())) == 0;
    if (!written) {
      const std::string reason = system_reason();
      std::remove(temporary.c_str());
      return fail(ErrorCode::kIo,
                  "cannot be written whole: " + reason + "; the old file is untouched",
                  path.string());
    }
  }
  std::error_code error;
  fs::rename(temporary, path, error);
  if (error) {
    std::remove(temporary.c_str());
    return fail(ErrorCode::kIo, "cannot be replaced: " + error.message(), path.string());
  }
  return {};
}

Result<fs::path> data_folder() {
  std::vector<fs::path> candidates;
  if (const char* given = std::getenv("STOKER_DATA"); given != nullptr && *given != '\0') {
    candidates.emplace_back(given);
  } else {
    std::error_code error;
    const fs::path binary = fs::read_symlink("/proc/self/exe", error).parent_path();
    if (!error) {
      candidates.push_back(binary / "../share/stoker");  // installed
      candidates.push_back(binary / "../data");     // inside the wheel: stoker/bin, stoker/data
      candidates.push_back(binary / "../../data");  // build/release/stoker in the source tree
      candidates.push_back(binary / "../../../data");
    }
#ifdef STOKER_SOURCE_DATA
    candidates.emplace_back(STOKER_SOURCE_DATA);
#endif
  }
  for (const fs::path& candidate : candidates) {
    std::error_code ignored;
    if (fs::exists(candidate / "gpus", ignored)) return fs::weakly_canonical(candidate);
  }
  return fail(ErrorCode::kNotFound,
              "the data that ships with stoker was not found; set STOKER_DATA to the project's "
              "data folder");
}

fs::path cache_folder() {
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && *xdg != '\0') {
    return fs::path(xdg) / "stoker";
  }
  const char* home = std::getenv("HOME");
  return fs::path(home != nullptr && *home != '\0' ? home : "/tmp") / ".cache" / "stoker";
}

}  // namespace stoker
