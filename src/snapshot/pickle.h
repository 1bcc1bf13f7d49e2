#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stoker {

enum class PickleKind : std::uint8_t {
  kNone,
  kBool,
  kInt,
  kHugeInt,  ///< beyond 64 bits: known to be there, of no use
  kFloat,
  kString,
  kBytes,
  kList,
  kTuple,
  kSet,
  kDict
};
/// The type as Python names it: "a dict", "an int".
[[nodiscard]] std::string_view name_of(PickleKind kind);

namespace pickle_detail {
class Store;
class Builder;
using Cell = std::uint64_t;  ///< a kind in the low bits and, above them, the value or its place
}  // namespace pickle_detail

/// One value of a Pickle, which it borrows from. Cheap to copy. What holds itself (a list in its
/// own list) is legal in a pickle: descend to a depth that you know.
class PickleValue {
 public:
  [[nodiscard]] PickleKind kind() const;
  [[nodiscard]] bool is(PickleKind wanted) const { return kind() == wanted; }
  [[nodiscard]] std::optional<bool> as_bool() const;
  [[nodiscard]] std::optional<std::int64_t> as_int() const;
  /// A float, or an int as one.
  [[nodiscard]] std::optional<double> as_number() const;
  [[nodiscard]] std::optional<std::string_view> as_string() const;

  /// Elements of a list, tuple or set, entries of a dict, else 0.
  [[nodiscard]] std::size_t size() const;
  /// Element of a list, tuple or set.
  [[nodiscard]] PickleValue operator[](std::size_t i) const;
  /// The value of a dict at that key.
  [[nodiscard]] std::optional<PickleValue> find(std::string_view key) const;
  [[nodiscard]] std::optional<PickleValue> find(std::uint32_t key_id) const;
  /// Entry of a dict, in the order of the file.
  [[nodiscard]] PickleValue key(std::size_t i) const;
  [[nodiscard]] PickleValue value(std::size_t i) const;

  /// Equal for two appearances of the same object (a list pickled once and referred to again).
  [[nodiscard]] std::uint64_t identity() const { return cell_; }

 private:
  friend class Pickle;
  friend class pickle_detail::Store;
  PickleValue(const pickle_detail::Store* store, pickle_detail::Cell cell)
      : store_(store), cell_(cell) {}
  const pickle_detail::Store* store_;
  pickle_detail::Cell cell_;
};

/// Plain data from a Python pickle of protocol 2 to 5, read without Python and without running
/// anything: dict, list, tuple, set, str, bytes, int, float, bool, None. Every opcode that could
/// import or call is refused by name; so are protocols 0 and 1.
///
/// Memory is bounded by the size of the input (`kMemoryPerByte`): values shared through the memo
/// stay shared, dicts of equal keys share the keys, strings are views of the input.
class Pickle {
 public:
  static constexpr std::size_t kMemoryPerByte = 10;  ///< bytes of tree for each byte of input
  static constexpr std::size_t kMemoryAlways = 1 << 20;

  /// `where` names the input in errors.
  [[nodiscard]] static Result<Pickle> parse(std::string content, const std::string& where);

  Pickle(Pickle&&) noexcept;
  Pickle& operator=(Pickle&&) noexcept;
  ~Pickle();

  [[nodiscard]] PickleValue root() const;
  /// The number of a string, for `PickleValue::find`; nothing when the pickle does not hold it.
  [[nodiscard]] std::optional<std::uint32_t> key_id(std::string_view key) const;
  /// The input ended before the pickle did: the values are those that had been read, an unfinished
  /// list or dict with what it held so far.
  [[nodiscard]] bool cut() const;
  /// Bytes held beside the input itself.
  [[nodiscard]] std::size_t memory() const;

 private:
  explicit Pickle(std::unique_ptr<pickle_detail::Store> store);
  std::unique_ptr<pickle_detail::Store> store_;
};

}  // namespace stoker
