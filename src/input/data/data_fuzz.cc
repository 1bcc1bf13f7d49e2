#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "input/data/data_set.h"
#include "input/data/picture_decoder.h"
#include "input/data/records.h"
#include "input/data/tar_shards.h"
#include "input/data/text_lines.h"

namespace {

/// A file that exists in memory only.
class MemoryFile {
 public:
  MemoryFile(const std::uint8_t* data, std::size_t size)
      : handle_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    if (handle_ < 0 || ::write(handle_, data, size) != static_cast<ssize_t>(size)) std::abort();
  }
  ~MemoryFile() { ::close(handle_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(handle_); }

 private:
  int handle_;
};

}  // namespace

/// The bytes as each kind of data that a folder may hold: the first byte chooses.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker;
  if (size < 2) return 0;
  const std::uint8_t choice = data[0] % 4;
  ++data, --size;
  constexpr std::int64_t kPixels = 1 << 20;
  if (choice == 0) {
    PictureDecoder decoder(kPixels);
    PictureFacts facts;
    std::vector<std::uint8_t> rgb;
    if (decoder.decode({data, size}, facts, rgb) == PictureFault::kNone &&
        rgb.size() < std::size_t{3} * static_cast<std::size_t>(facts.width) *
                         static_cast<std::size_t>(facts.height)) {
      std::abort();
    }
    return 0;
  }
  const MemoryFile file(data, size);
  DataSet set;
  set.files = {{file.path(), Bytes(static_cast<std::int64_t>(size))}};
  set.facts.files = set.facts.files_estimate = 1;
  set.facts.total_bytes = set.files[0].size;
  const DataSetOptions options{.samples = 16, .deadline = wall_time() + kSecond};
  const Status status = choice == 1   ? open_tar_shards(options, set)
                        : choice == 2 ? open_records(options, set)
                                      : open_text(options, set);
  if (status && (set.samples.empty() || set.facts.samples < 1)) std::abort();
  return 0;
}
