#include "observe/record/block.h"

#include <zlib.h>

#include <array>

namespace stoker::record {
namespace {

/// mark, kind, raw length, stored length, checksum: numbers of four bytes, the least first.
constexpr std::string_view kBlockMark = "\xf1SKB";
constexpr std::size_t kHeader = 4 + 1 + 4 + 4 + 4;
/// No block that we write comes near; a length above it is damage.
constexpr std::uint32_t kMostContent = 256U << 20U;

void put_number(std::string& out, std::uint32_t number) {
  for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<char>(number >> shift));
}

std::uint32_t number_at(std::string_view bytes, std::size_t at) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < 4; ++i)
    number |= std::uint32_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  return number;
}

std::uint32_t checksum(std::string_view header, std::string_view stored) {
  const auto* const head = reinterpret_cast<const Bytef*>(header.data());
  const auto* const body = reinterpret_cast<const Bytef*>(stored.data());
  const uLong start = ::crc32(0L, head, static_cast<uInt>(header.size()));
  return static_cast<std::uint32_t>(::crc32(start, body, static_cast<uInt>(stored.size())));
}

std::optional<std::string> inflated(std::string_view stored, std::uint32_t size) {
  std::string content(size, '\0');
  uLongf length = size;
  const int result = ::uncompress(reinterpret_cast<Bytef*>(content.data()), &length,
                                  reinterpret_cast<const Bytef*>(stored.data()), stored.size());
  if (result != Z_OK || length != size) return std::nullopt;
  return content;
}

}  // namespace

std::string framed(BlockKind kind, std::string_view content) {
  uLongf size = ::compressBound(content.size());
  std::string stored(size, '\0');
  ::compress2(reinterpret_cast<Bytef*>(stored.data()), &size,
              reinterpret_cast<const Bytef*>(content.data()), content.size(), Z_BEST_SPEED);
  stored.resize(size);
  std::string block(kBlockMark);
  block.push_back(static_cast<char>(kind));
  put_number(block, static_cast<std::uint32_t>(content.size()));
  put_number(block, static_cast<std::uint32_t>(stored.size()));
  put_number(block, checksum(block, stored));
  return block + stored;
}

std::optional<Block> BlockReader::next() {
  while (!rest_.empty()) {
    const std::size_t start = rest_.find(kBlockMark);
    if (start == std::string_view::npos) break;
    damaged_ += start;
    rest_.remove_prefix(start);
    if (rest_.size() < kHeader) break;
    const std::uint32_t raw = number_at(rest_, 5), stored = number_at(rest_, 9);
    const bool sane = raw <= kMostContent && stored <= kMostContent;
    if (sane && rest_.size() - kHeader >= stored) {
      const std::string_view body = rest_.substr(kHeader, stored);
      if (checksum(rest_.substr(0, kHeader - 4), body) == number_at(rest_, kHeader - 4)) {
        auto content = inflated(body, raw);
        const auto kind = static_cast<BlockKind>(rest_[4]);
        rest_.remove_prefix(kHeader + stored);
        if (content) return Block{kind, std::move(*content)};
        damaged_ += kHeader + stored;
        continue;
      }
    } else if (sane && rest_.find(kBlockMark, 1) == std::string_view::npos) {
      break;  // the last block, cut short
    }
    // What looked like a block is none, or was cut before another began.
    damaged_ += 1;
    rest_.remove_prefix(1);
  }
  cut_ += rest_.size();
  rest_ = {};
  return std::nullopt;
}

}  // namespace stoker::record
