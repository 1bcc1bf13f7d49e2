#pragma once

// Internal to src/snapshot: the stack machine of the pickle format.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "snapshot/pickle.h"
#include "snapshot/pickle_store.h"

namespace stoker::pickle_detail {

/// Thrown between the files of this machine only.
struct Refusal {
  std::string message;
};
struct CutShort : Refusal {};

class Builder {
 public:
  explicit Builder(Store& store) : store_(store), input_(store.content) {
    budget_ = Pickle::kMemoryAlways + Pickle::kMemoryPerByte * input_.size();
  }

  void run() {
    if (input_.empty() || byte_at(0) != 0x80) {
      throw Refusal{"is no pickle of protocol 2 or later (those begin with the byte 0x80)"};
    }
    while (true) {
      opcode_at_ = at_;
      const unsigned char opcode = read<std::uint8_t>();
      if (opcode == '.') break;
      execute(opcode);
      // What the stack and the memo hold is bounded by the number of opcodes, hence of bytes.
      if ((++steps_ & 0xfff) == 0) check_memory();
    }
    check_memory();
    if (stack_.size() != 1 || !marks_.empty()) refuse("STOP", "finds not exactly one value");
    store_.root = stack_[0];
  }

  /// After a cut: puts what stands unfinished on the stack where the missing opcodes would have put
  /// it. False: there is no list and no dict to keep.
  bool salvage();

 private:
  [[nodiscard]] unsigned char byte_at(std::size_t i) const {
    return static_cast<unsigned char>(input_[i]);
  }
  [[noreturn]] void refuse(const std::string& opcode, const std::string& why) const {
    throw Refusal{"opcode " + opcode + " at byte " + std::to_string(opcode_at_) + " " + why};
  }
  [[noreturn]] static void cut_short() {
    throw CutShort{{"is cut short: a pickle ends with STOP; copy or write the file again"}};
  }
  void check_memory() const {
    if (store_.memory() + 8 * (stack_.size() + memo_.size() + marks_.size()) > budget_) {
      throw Refusal{"takes more than " + std::to_string(Pickle::kMemoryPerByte) +
                    " times its size in memory (at byte " + std::to_string(at_) +
                    "); no memory snapshot does"};
    }
  }

  std::string_view take(std::uint64_t count) {
    if (count > input_.size() - at_) cut_short();
    const std::string_view bytes = input_.substr(at_, static_cast<std::size_t>(count));
    at_ += static_cast<std::size_t>(count);
    return bytes;
  }
  template <class T>
  T read() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;  // pickles are little-endian, as the machines that this runs on
  }

  void push(Cell cell) { stack_.push_back(cell); }
  void push_int(std::int64_t value) {
    if (value >= -kInlineMax && value <= kInlineMax) {
      return push(make_cell(Tag::kInt, static_cast<std::uint64_t>(value)));
    }
    store_.wide_ints.push_back(value);
    push(make_cell(Tag::kWideInt, store_.wide_ints.size() - 1));
  }
  /// Little-endian two's complement of any length.
  void push_long(std::string_view bytes) {
    if (bytes.size() > 8) return push(make_cell(Tag::kHugeInt, 0));
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      value |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
    }
    if (!bytes.empty() && bytes.size() < 8 && (bytes.back() & 0x80) != 0) {
      value |= ~std::uint64_t{0} << (8 * bytes.size());
    }
    push_int(static_cast<std::int64_t>(value));
  }
  void push_float() {
    // The one big-endian number of the format.
    std::uint64_t bits = 0;
    for (const char c : take(8)) bits = bits << 8 | static_cast<unsigned char>(c);
    store_.floats.push_back(std::bit_cast<double>(bits));
    push(make_cell(Tag::kFloat, store_.floats.size() - 1));
  }
  void push_text(Tag tag, std::uint64_t length) {
    push(make_cell(tag, store_.intern(take(length))));
  }
  void push_container(Tag tag, const Cell* from, std::size_t count) {
    Container container;
    if (count > 0) {
      if (count > kMaxCount) too_many();
      container.cells = store_.allocate(count);
      std::copy(from, from + count, container.cells);
      container.count = container.capacity = static_cast<std::uint32_t>(count);
    }
    store_.containers.push_back(container);
    push(make_cell(tag, store_.containers.size() - 1));
  }
  [[noreturn]] void too_many() const {
    throw Refusal{"holds a list of more than four thousand million elements"};
  }

  /// What lies above the topmost mark; the mark is gone, its values are still on the stack.
  std::span<const Cell> above_mark(const char* opcode) {
    if (marks_.empty() || marks_.back() > stack_.size()) refuse(opcode, "finds no MARK");
    const std::size_t from = marks_.back();
    marks_.pop_back();
    return std::span(stack_).subspan(from);
  }
  [[nodiscard]] std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  std::span<const Cell> topmost(const char* opcode, std::size_t count) {
    if (stack_.size() < floor() + count) refuse(opcode, "finds too few values");
    return std::span(stack_).last(count);
  }
  void drop(std::size_t count) { stack_.resize(stack_.size() - count); }

  /// The container right below what lies above the mark.
  Cell receiver(const char* opcode, std::size_t count, Tag tag) {
    if (stack_.size() < floor() + count + 1) refuse(opcode, "finds nothing to add to");
    const Cell cell = stack_[stack_.size() - count - 1];
    if (tag_of(cell) != tag) refuse(opcode, "finds something else to add to than it must");
    return cell;
  }

  void make_room(Container& container, std::size_t more) {
    const std::size_t needed = std::size_t{container.count} + more;
    if (needed > kMaxCount) too_many();
    if (needed <= container.capacity) return;
    // A second helping is the sign of a long one.
    const std::size_t capacity = container.count == 0 ? needed : std::max(needed, needed * 2);
    Cell* cells = store_.allocate(std::min(capacity, kMaxCount));
    if (container.count > 0) {
      std::memcpy(cells, container.cells, container.count * sizeof(Cell));
    }
    container.cells = cells;
    container.capacity = static_cast<std::uint32_t>(std::min(capacity, kMaxCount));
  }

  void append(const char* opcode, std::span<const Cell> values, Tag tag) {
    Container& list = store_.containers[payload_of(receiver(opcode, values.size(), tag))];
    if (!values.empty()) {
      make_room(list, values.size());
      std::copy(values.begin(), values.end(), list.cells + list.count);
      list.count += static_cast<std::uint32_t>(values.size());
    }
    drop(values.size());
  }

  void set_items(const char* opcode, std::span<const Cell> pairs) {
    if (pairs.size() % 2 != 0) refuse(opcode, "finds a key without a value");
    Container& dict = store_.containers[payload_of(receiver(opcode, pairs.size(), Tag::kDict))];
    if (dict.shape != kPairs && !fill_record(dict, pairs)) {
      to_pairs(dict);
    }
    if (dict.shape == kPairs) {
      make_room(dict, pairs.size());
      std::copy(pairs.begin(), pairs.end(), dict.cells + dict.count);
      dict.count += static_cast<std::uint32_t>(pairs.size());
    }
    drop(pairs.size());
  }

  /// Whether the dict could stay a record. If not, nothing has changed.
  bool fill_record(Container& dict, std::span<const Cell> pairs) {
    const std::size_t added = pairs.size() / 2;
    if (dict.count + added > kMaxShapeKeys) return false;
    if (dict.count == 0 && repeats_last_shape(pairs)) {
      make_room(dict, added);
      for (std::size_t i = 0; i < added; ++i) dict.cells[i] = pairs[2 * i + 1];
      dict.count = static_cast<std::uint32_t>(added);
      dict.shape = last_shape_;
      return true;
    }
    for (std::size_t i = 0; i < pairs.size(); i += 2) {
      if (tag_of(pairs[i]) != Tag::kString) return false;
    }
    make_room(dict, added);
    for (std::size_t i = 0; i < pairs.size(); i += 2) {
      std::uint32_t slot = 0;
      dict.shape =
          store_.extend(dict.shape, static_cast<std::uint32_t>(payload_of(pairs[i])), slot);
      dict.cells[slot] = pairs[i + 1];
      if (slot == dict.count) ++dict.count;
    }
    last_shape_ = dict.shape;
    return true;
  }
  [[nodiscard]] bool repeats_last_shape(std::span<const Cell> pairs) const {
    const auto& keys = store_.shapes[last_shape_].keys;
    if (keys.size() != pairs.size() / 2) return false;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (pairs[2 * i] != make_cell(Tag::kString, keys[i])) return false;
    }
    return true;
  }
  void to_pairs(Container& dict) {
    Container pairs;
    pairs.shape = kPairs;
    make_room(pairs, 2 * std::size_t{dict.count});
    const auto& keys = store_.shapes[dict.shape].keys;
    for (std::uint32_t i = 0; i < dict.count; ++i) {
      pairs.cells[2 * i] = make_cell(Tag::kString, keys[i]);
      pairs.cells[2 * i + 1] = dict.cells[i];
    }
    pairs.count = 2 * dict.count;
    dict = pairs;
  }

  void put(std::uint64_t index) {
    if (stack_.empty()) refuse("PUT", "finds nothing to remember");
    // Picklers count from 0 up, so that no number can exceed the bytes read.
    if (index > at_) refuse("PUT", "uses memo number " + std::to_string(index));
    if (index >= memo_.size()) memo_.resize(static_cast<std::size_t>(index) + 1, kForgotten);
    memo_[static_cast<std::size_t>(index)] = stack_.back();
  }
  void get(std::uint64_t index) {
    if (index >= memo_.size() || memo_[static_cast<std::size_t>(index)] == kForgotten) {
      refuse("GET", "refers to memo number " + std::to_string(index) + ", which was never put");
    }
    push(memo_[static_cast<std::size_t>(index)]);
  }

  void settle_tail(std::size_t from);
  void settle_frame();
  void execute(unsigned char opcode);
  void execute_container(unsigned char opcode);

  static constexpr std::size_t kMaxCount = 0xffffffff;
  static constexpr Cell kForgotten = ~Cell{0};

  Store& store_;
  std::string_view input_;
  std::size_t at_ = 0, opcode_at_ = 0, budget_ = 0, steps_ = 0;
  std::vector<Cell> stack_, memo_;
  std::vector<std::size_t> marks_;
  ShapeId last_shape_ = kEmptyShape;
};

}  // namespace stoker::pickle_detail
