#include "input/data/unpacked_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

namespace stoker {
namespace {
constexpr unsigned kBuffer = 128 * 1024;
constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;
}  // namespace

UnpackedFile::UnpackedFile(const std::filesystem::path& path) {
  // O_NONBLOCK: what was a file when it was listed may be a pipe by now, and must not hang us.
  const int handle = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (handle < 0) return;
  struct stat info {};
  if (::fstat(handle, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(handle);
    return;
  }
  file_.reset(gzdopen(handle, "rb"));
  if (!file_) {
    ::close(handle);
    return;
  }
  gzbuffer(file_.get(), kBuffer);
  plain_ = gzdirect(file_.get()) != 0;
}

std::size_t UnpackedFile::read(std::span<std::uint8_t> out) {
  const auto wanted = static_cast<unsigned>(std::min(out.size(), kMostAtOnce));
  const int got = file_ ? gzread(file_.get(), out.data(), wanted) : 0;
  return got > 0 ? static_cast<std::size_t>(got) : 0;
}

bool UnpackedFile::damaged() const {
  int error = Z_OK;
  if (file_) gzerror(file_.get(), &error);
  return error == Z_DATA_ERROR || error == Z_BUF_ERROR;
}

bool UnpackedFile::seek(std::int64_t offset) {
  return file_ && gzseek(file_.get(), offset, SEEK_SET) == offset;
}

std::int64_t UnpackedFile::packed_position() const {
  return file_ ? std::max<std::int64_t>(0, gzoffset(file_.get())) : 0;
}

}  // namespace stoker
