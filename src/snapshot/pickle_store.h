#pragma once

// Internal to src/snapshot: how the values of a pickle are kept.

#include <array>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "snapshot/pickle.h"

namespace stoker::pickle_detail {

// A cell: 4 bits of tag, 60 of payload.
enum class Tag : std::uint8_t {
  kNone,
  kFalse,
  kTrue,
  kInt,      ///< payload: the value, signed
  kWideInt,  ///< payload: index into wide_ints
  kHugeInt,
  kFloat,   ///< payload: index into floats
  kString,  ///< payload: index into strings
  kBytes,
  kList,  ///< payload: index into containers
  kTuple,
  kSet,
  kDict
};
constexpr int kTagBits = 4;
constexpr std::int64_t kInlineMax = (std::int64_t{1} << 59) - 1;

[[nodiscard]] constexpr Cell make_cell(Tag tag, std::uint64_t payload) {
  return payload << kTagBits | static_cast<std::uint64_t>(tag);
}
[[nodiscard]] constexpr Tag tag_of(Cell cell) { return static_cast<Tag>(cell & 15); }
[[nodiscard]] constexpr std::uint64_t payload_of(Cell cell) { return cell >> kTagBits; }
[[nodiscard]] constexpr std::int64_t inline_int(Cell cell) {
  return static_cast<std::int64_t>(cell) >> kTagBits;
}

using ShapeId = std::uint32_t;
constexpr ShapeId kEmptyShape = 0;
/// A dict that is no record: its cells are key, value, key, value.
constexpr ShapeId kPairs = 0xffffffff;
/// Dicts with more entries are kept as pairs: a record of one kind seldom has that many.
constexpr std::size_t kMaxShapeKeys = 64;

/// The keys that many dicts have in common, in order: string numbers.
struct Shape {
  std::vector<std::uint32_t> keys;
};

/// A list, tuple, set or dict. `cells` holds `count` values (a record), elements, or pairs.
struct Container {
  Cell* cells = nullptr;
  std::uint32_t count = 0;
  std::uint32_t capacity = 0;
  ShapeId shape = kEmptyShape;  ///< of a dict
};

/// Everything but the input: arenas that only grow, so that places stay valid.
class Store {
 public:
  explicit Store(std::string input) : content(std::move(input)) { shapes.emplace_back(); }

  /// Room for `count` cells.
  [[nodiscard]] Cell* allocate(std::size_t count);
  [[nodiscard]] std::uint32_t intern(std::string_view text);
  /// The shape `from` with one key more, or with the same keys when it has that one; then `slot` is
  /// its place.
  [[nodiscard]] ShapeId extend(ShapeId from, std::uint32_t key, std::uint32_t& slot);
  [[nodiscard]] const Container& container(Cell cell) const { return containers[payload_of(cell)]; }
  [[nodiscard]] PickleValue value(Cell cell) const { return {this, cell}; }
  /// Bytes held, without the input.
  [[nodiscard]] std::size_t memory() const {
    return cell_bytes + containers.size() * sizeof(Container) + floats.size() * 8 +
           wide_ints.size() * 8 + strings.size() * kStringBytes + shape_bytes;
  }

  std::string content;
  std::deque<Container> containers;
  std::vector<std::string_view> strings;
  std::unordered_map<std::string_view, std::uint32_t> string_ids;
  std::vector<double> floats;
  std::vector<std::int64_t> wide_ints;
  std::deque<Shape> shapes;
  std::unordered_map<std::uint64_t, ShapeId> shape_transitions;  ///< (shape, key) -> shape
  std::size_t cell_bytes = 0, shape_bytes = 0;
  Cell root = 0;
  bool cut = false;  ///< the input ended early

 private:
  /// About the bytes of one interned string in its two tables.
  static constexpr std::size_t kStringBytes = 64;
  static constexpr std::size_t kBlockCells = 1 << 16;
  std::vector<std::unique_ptr<Cell[]>> blocks_;
  Cell* next_ = nullptr;
  std::size_t left_ = 0;
};

}  // namespace stoker::pickle_detail
