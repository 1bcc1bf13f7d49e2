#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "base/result.h"
#include "json/value.h"

namespace stoker::json {

/// A document may nest this deep when its reader says nothing else: deeper text is an attack on the
/// stack.
inline constexpr int kMostDepth = 512;

enum class Damage {
  kNotJson,  ///< cut short or damaged
  kTooDeep   ///< nested deeper than allowed
};

/// Where members of one object share a name, the last counts.
[[nodiscard]] tl::expected<Value, Damage> parse(std::string_view text, int max_depth = kMostDepth);

/// How a file is called in errors, and how deep it may nest.
struct DocumentKind {
  std::string_view name;  ///< "a probe file"
  std::string_view cure;  ///< "probe the folder again"
  int max_depth = 8;
};

/// The document of a file that `where` names in errors.
[[nodiscard]] Result<Value> parse_document(std::string_view text, const std::string& where,
                                           const DocumentKind& kind);

/// Told of each piece of a text in turn: for files too large to hold as a tree. False ends the
/// reading.
class Events {
 public:
  virtual ~Events() = default;
  virtual bool null() = 0;
  virtual bool boolean(bool value) = 0;
  virtual bool integer(std::int64_t value) = 0;
  virtual bool large_integer(std::uint64_t value) = 0;  ///< above the largest std::int64_t
  virtual bool real(double value) = 0;
  virtual bool string(std::string& value) = 0;
  virtual bool key(std::string& value) = 0;
  virtual bool begin_object() = 0;
  virtual bool end_object() = 0;
  virtual bool begin_array() = 0;
  virtual bool end_array() = 0;
};

/// Where the text stops being JSON, in bytes; nullopt: all of it was read, or `events` ended it.
[[nodiscard]] std::optional<std::size_t> read_events(std::string_view text, Events& events);

}  // namespace stoker::json
