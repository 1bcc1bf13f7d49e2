#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "snapshot/pickle.h"

/// Values of a snapshot's pickle by key, checked: what a reader of such a file asks of each dict.
namespace stoker::snapshot_fields {

/// No device has more; keeps sums of sizes far from overflow.
inline constexpr std::int64_t kMaxSize = std::int64_t{1} << 50;
/// CUDA's addresses have 57 bits at most.
inline constexpr std::int64_t kMaxAddress = std::int64_t{1} << 60;

/// Why a file is refused; thrown within its reader only.
struct Refusal {
  ErrorCode code;
  std::string message;
};

/// Why one segment, block or event is refused, which a reader may leave out and count.
struct OddEntry : Refusal {};

[[noreturn]] inline void refuse(const std::string& field, const std::string& why,
                                ErrorCode code = ErrorCode::kBadInput) {
  throw OddEntry{{code, "key " + field + " " + why}};
}

/// A dict of the pickle with its place in the file, for errors.
struct Fields {
  PickleValue dict;
  std::string place;  ///< "segments[3]"

  [[nodiscard]] std::string name(std::string_view key) const {
    return place.empty() ? std::string(key) : place + "." + std::string(key);
  }
  [[nodiscard]] PickleValue need(std::string_view key) const {
    const auto value = dict.find(key);
    if (!value) refuse(name(key), "is missing; is it a snapshot of torch.cuda.memory?");
    return *value;
  }
  [[nodiscard]] std::int64_t integer(std::string_view key, const PickleValue& value) const {
    const auto number = value.as_int();
    if (!number) refuse(name(key), "is " + std::string(name_of(value.kind())) + ", not an int");
    return *number;
  }
  [[nodiscard]] std::int64_t need_int(std::string_view key) const {
    return integer(key, need(key));
  }
  [[nodiscard]] std::int64_t get_int(std::string_view key, std::int64_t otherwise) const {
    const auto value = dict.find(key);
    return value && !value->is(PickleKind::kNone) ? integer(key, *value) : otherwise;
  }
  [[nodiscard]] std::int64_t need_size(std::string_view key) const {
    const std::int64_t bytes = need_int(key);
    if (bytes < 0 || bytes > kMaxSize)
      refuse(name(key), "is " + std::to_string(bytes) + " bytes, which cannot be");
    return bytes;
  }
  void check_address(std::string_view key, std::int64_t address) const {
    if (address < 0 || address > kMaxAddress)
      refuse(name(key), "is " + std::to_string(address) + ", which is no address");
  }
};

inline PickleValue expect(const PickleValue& value, PickleKind kind, const std::string& field) {
  if (!value.is(kind)) {
    refuse(field,
           "is " + std::string(name_of(value.kind())) + ", not " + std::string(name_of(kind)));
  }
  return value;
}

}  // namespace stoker::snapshot_fields
