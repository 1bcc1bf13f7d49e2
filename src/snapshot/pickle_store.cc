#include "snapshot/pickle_store.h"

#include <algorithm>

namespace stoker {
namespace pickle_detail {

Cell* Store::allocate(std::size_t count) {
  cell_bytes += count * sizeof(Cell);
  if (count > kBlockCells / 8) {
    blocks_.push_back(std::make_unique_for_overwrite<Cell[]>(count));
    return blocks_.back().get();
  }
  if (count > left_) {
    blocks_.push_back(std::make_unique_for_overwrite<Cell[]>(kBlockCells));
    next_ = blocks_.back().get();
    left_ = kBlockCells;
  }
  left_ -= count;
  return std::exchange(next_, next_ + count);
}

std::uint32_t Store::intern(std::string_view text) {
  const auto [entry, is_new] =
      string_ids.try_emplace(text, static_cast<std::uint32_t>(strings.size()));
  if (is_new) strings.push_back(text);
  return entry->second;
}

ShapeId Store::extend(ShapeId from, std::uint32_t key, std::uint32_t& slot) {
  const std::vector<std::uint32_t>& keys = shapes[from].keys;
  slot = static_cast<std::uint32_t>(keys.size());
  const auto [entry, is_new] =
      shape_transitions.try_emplace(std::uint64_t{from} << 32 | key, kEmptyShape);
  if (is_new) {
    const auto found = std::find(keys.begin(), keys.end(), key);
    if (found != keys.end()) {
      entry->second = from;
    } else {
      Shape longer{keys};
      longer.keys.push_back(key);
      entry->second = static_cast<ShapeId>(shapes.size());
      shape_bytes += 2 * sizeof(Shape) + 4 * longer.keys.size();
      shapes.push_back(std::move(longer));
    }
    shape_bytes += kStringBytes;
  }
  if (entry->second == from) {
    slot = static_cast<std::uint32_t>(std::find(keys.begin(), keys.end(), key) - keys.begin());
  }
  return entry->second;
}

}  // namespace pickle_detail

using pickle_detail::Cell;
using pickle_detail::Container;
using pickle_detail::payload_of;
using pickle_detail::Tag;
using pickle_detail::tag_of;

std::string_view name_of(PickleKind kind) {
  constexpr std::string_view kNames[] = {"None",    "a bool", "an int", "a very large int",
                                         "a float", "a str",  "bytes",  "a list",
                                         "a tuple", "a set",  "a dict"};
  return kNames[static_cast<std::size_t>(kind)];
}

PickleKind PickleValue::kind() const {
  switch (tag_of(cell_)) {
    case Tag::kNone:
      return PickleKind::kNone;
    case Tag::kFalse:
    case Tag::kTrue:
      return PickleKind::kBool;
    case Tag::kInt:
    case Tag::kWideInt:
      return PickleKind::kInt;
    case Tag::kHugeInt:
      return PickleKind::kHugeInt;
    case Tag::kFloat:
      return PickleKind::kFloat;
    case Tag::kString:
      return PickleKind::kString;
    case Tag::kBytes:
      return PickleKind::kBytes;
    case Tag::kList:
      return PickleKind::kList;
    case Tag::kTuple:
      return PickleKind::kTuple;
    case Tag::kSet:
      return PickleKind::kSet;
    case Tag::kDict:
      return PickleKind::kDict;
  }
  return PickleKind::kNone;
}

std::optional<bool> PickleValue::as_bool() const {
  const Tag tag = tag_of(cell_);
  if (tag != Tag::kTrue && tag != Tag::kFalse) return std::nullopt;
  return tag == Tag::kTrue;
}

std::optional<std::int64_t> PickleValue::as_int() const {
  if (tag_of(cell_) == Tag::kInt) return pickle_detail::inline_int(cell_);
  if (tag_of(cell_) == Tag::kWideInt) return store_->wide_ints[payload_of(cell_)];
  return std::nullopt;
}

std::optional<double> PickleValue::as_number() const {
  if (tag_of(cell_) == Tag::kFloat) return store_->floats[payload_of(cell_)];
  if (const auto whole = as_int()) return static_cast<double>(*whole);
  return std::nullopt;
}

std::optional<std::string_view> PickleValue::as_string() const {
  if (tag_of(cell_) != Tag::kString) return std::nullopt;
  return store_->strings[payload_of(cell_)];
}

std::size_t PickleValue::size() const {
  if (kind() < PickleKind::kList) return 0;
  const Container& container = store_->container(cell_);
  return container.shape == pickle_detail::kPairs ? container.count / 2 : container.count;
}

PickleValue PickleValue::operator[](std::size_t i) const {
  return {store_, store_->container(cell_).cells[i]};
}

std::optional<PickleValue> PickleValue::find(std::string_view key) const {
  const auto id = store_->string_ids.find(key);
  return id == store_->string_ids.end() ? std::nullopt : find(id->second);
}

std::optional<PickleValue> PickleValue::find(std::uint32_t key_id) const {
  if (!is(PickleKind::kDict)) return std::nullopt;
  const Container& dict = store_->container(cell_);
  if (dict.shape != pickle_detail::kPairs) {
    const auto& keys = store_->shapes[dict.shape].keys;
    const auto found = std::find(keys.begin(), keys.end(), key_id);
    if (found == keys.end()) return std::nullopt;
    return PickleValue(store_, dict.cells[found - keys.begin()]);
  }
  // From the end, since the last of equal keys counts.
  const Cell wanted = make_cell(Tag::kString, key_id);
  for (std::uint32_t i = dict.count; i >= 2; i -= 2) {
    if (dict.cells[i - 2] == wanted) return PickleValue(store_, dict.cells[i - 1]);
  }
  return std::nullopt;
}

PickleValue PickleValue::key(std::size_t i) const {
  const Container& dict = store_->container(cell_);
  if (dict.shape == pickle_detail::kPairs) return {store_, dict.cells[2 * i]};
  return {store_, make_cell(Tag::kString, store_->shapes[dict.shape].keys[i])};
}

PickleValue PickleValue::value(std::size_t i) const {
  const Container& dict = store_->container(cell_);
  return {store_, dict.cells[dict.shape == pickle_detail::kPairs ? 2 * i + 1 : i]};
}

}  // namespace stoker
