#include "base/packed_file.h"

#include <zlib.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/text.h"

namespace stoker {
namespace {

constexpr std::string_view kGzipMark("\x1f\x8b", 2);
constexpr std::size_t kBlock = 1 << 18;
/// zlib counts what it is given in 32 bits.
constexpr std::size_t kMostAtOnce = 1 << 30;

}  // namespace

Result<Unpacked> unpacked(std::string packed, const std::string& where, Bytes limit) {
  if (!std::string_view(packed).starts_with(kGzipMark)) return Unpacked{std::move(packed), false};
  z_stream stream{};
  constexpr int kGzipOnly = 15 + 16;  // zlib.h, inflateInit2: window 2^15, gzip header required
  if (inflateInit2(&stream, kGzipOnly) != Z_OK)
    return fail(ErrorCode::kIo, "cannot be decompressed: zlib did not start", where);
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, inflateEnd);
  Unpacked result;
  std::vector<char> block(kBlock);
  std::size_t given = 0;
  while (true) {
    if (stream.avail_in == 0) {
      const std::size_t more = std::min(packed.size() - given, kMostAtOnce);
      stream.next_in = reinterpret_cast<Bytef*>(packed.data() + given);
      stream.avail_in = static_cast<uInt>(more);
      given += more;
    }
    stream.next_out = reinterpret_cast<Bytef*>(block.data());
    stream.avail_out = static_cast<uInt>(block.size());
    const int state = inflate(&stream, Z_NO_FLUSH);
    const std::size_t produced = block.size() - stream.avail_out;
    result.content.append(block.data(), produced);
    if (static_cast<std::int64_t>(result.content.size()) > limit.count()) {
      return fail(ErrorCode::kBadInput,
                  "decompresses to more than " + human_bytes(limit) + ", which is too much", where);
    }
    const std::string_view rest =
        std::string_view(packed).substr(given - stream.avail_in, packed.size());
    if (state == Z_STREAM_END) {
      // Zeros behind the last member are padding of tapes; another member goes on.
      if (!rest.starts_with(kGzipMark)) return result;
      if (inflateReset(&stream) != Z_OK) break;
      continue;
    }
    if ((state != Z_OK && state != Z_BUF_ERROR) || (produced == 0 && rest.empty())) break;
  }
  if (result.content.empty())
    return fail(ErrorCode::kBadInput, "is gzip that is cut short or damaged from its beginning on",
                where);
  result.cut = true;
  return result;
}

Result<Unpacked> read_unpacked(const std::filesystem::path& path, Bytes limit) {
  std::string packed = TRY(read_file(path, limit));
  return unpacked(std::move(packed), path.string(), limit);
}

}  // namespace stoker
