#pragma once

#include <cstdint>
#include <string>
#include <string_view>

/// Whole numbers of few bytes where they are small: seven bits a byte, the least first, the eighth
/// bit set on all but the last (LEB128); signed ones folded so that small negatives stay small.
namespace stoker::record {

inline void put(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>((value & 0x7f) | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

inline void put_signed(std::string& out, std::int64_t value) {
  put(out, (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
}

/// Takes numbers off the front of a text; after damage `good()` is false and all are 0.
class Varints {
 public:
  explicit Varints(std::string_view text) : text_(text) {}

  std::uint64_t take() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; good_ && shift < 64; shift += 7) {
      if (text_.empty()) break;
      const auto byte = static_cast<unsigned char>(text_.front());
      text_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    good_ = false;
    return 0;
  }
  std::int64_t take_signed() {
    const std::uint64_t folded = take();
    return static_cast<std::int64_t>((folded >> 1) ^ (~(folded & 1) + 1));
  }
  [[nodiscard]] bool good() const { return good_; }
  [[nodiscard]] bool at_end() const { return text_.empty(); }

 private:
  std::string_view text_;
  bool good_ = true;
};

}  // namespace stoker::record
