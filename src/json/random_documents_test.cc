#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "base/random.h"
#include "json/text.h"

namespace stoker::json {
namespace {

/// Text of one to four bytes a character, quotes, backslashes and control characters among them.
std::string drawn_text(Random& random) {
  constexpr std::string_view kPieces[] = {"a", "Z", "\"", "\\", "/", "\n", "\t", "\x01", "\x7f",
                                          "é", "€", "😀",  " ",  "{", "]",  ",",  ":",    "u0041"};
  std::string text;
  for (auto left = random.below(9); left > 0; --left)
    text += kPieces[random.below(std::size(kPieces))];
  return text;
}

Value drawn_number(Random& random) {
  switch (random.below(4)) {
    case 0:
      return static_cast<std::int64_t>(random.next());
    case 1:
      return random.next() | (std::uint64_t{1} << 63);
    case 2:
      return std::round(random.normal() * 100) / 100;
    default: {
      const double bits = std::bit_cast<double>(random.next());
      return std::isfinite(bits) ? bits : 0.1;
    }
  }
}

Value drawn(Random& random, int depth) {
  const auto kind = random.below(depth > 0 ? 6 : 4);
  if (kind == 0) return nullptr;
  if (kind == 1) return random.below(2) == 0;
  if (kind == 2) return drawn_text(random);
  if (kind == 3) return drawn_number(random);
  Value all = kind == 4 ? Value::array() : Value::object();
  for (auto left = random.below(5); left > 0; --left) {
    if (kind == 4) all.push_back(drawn(random, depth - 1));
    else all[drawn_text(random)] = drawn(random, depth - 1);
  }
  return all;
}

TEST(RandomDocuments, ComeBackAsTheyWere) {
  Random random(11);
  for (int i = 0; i < 5'000; ++i) {
    const Value value = drawn(random, 4);
    for (const int indent : {-1, 2}) {
      const std::string text = value.dump(indent);
      const auto back = parse(text);
      ASSERT_TRUE(back) << text;
      ASSERT_EQ(*back, value) << text;
      ASSERT_EQ(back->dump(indent), text);
    }
  }
}

TEST(RandomDocuments, MembersInOrderOfTheirNamesAreTheSameDocument) {
  Random random(12);
  for (int i = 0; i < 1'000; ++i) {
    const Value value = drawn(random, 4);
    Value sorted = value;
    sorted.sort_keys();
    ASSERT_EQ(sorted, value);
    const std::string once = sorted.dump();
    sorted.sort_keys();
    ASSERT_EQ(sorted.dump(), once);
  }
}

TEST(RandomDocuments, CutShortOrDamagedNothingIsTakenForWhole) {
  Random random(13);
  int refused = 0;
  for (int i = 0; i < 3'000; ++i) {
    Value list = Value::array();
    for (int n = 0; n < 3; ++n) list.push_back(drawn(random, 3));
    std::string text = list.dump();
    const std::string cut = text.substr(0, random.below(text.size()));
    ASSERT_FALSE(parse(cut)) << cut;  // a list without its bracket is none
    text[random.below(text.size())] = static_cast<char>(random.below(256));
    const auto damaged = parse(text);
    refused += damaged ? 0 : 1;
    if (damaged) {
      ASSERT_TRUE(parse(damaged->dump())) << text;
    }
  }
  EXPECT_GT(refused, 1'000);
}

/// Rebuilds the tree from what is told of it.
class Rebuilder final : public Events {
 public:
  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool integer(std::int64_t value) override { return add(value); }
  bool large_integer(std::uint64_t value) override { return add(value); }
  bool real(double value) override { return add(value); }
  bool string(std::string& value) override { return add(value); }
  bool key(std::string& value) override {
    keys_.push_back(value);
    return true;
  }
  bool begin_object() override { return begin(Value::object()); }
  bool end_object() override { return end(); }
  bool begin_array() override { return begin(Value::array()); }
  bool end_array() override { return end(); }
  [[nodiscard]] const Value& root() const { return root_; }

 private:
  bool begin(Value value) {
    open_.push_back(std::move(value));
    return true;
  }
  bool end() {
    Value done = std::move(open_.back());
    open_.pop_back();
    return add(std::move(done));
  }
  bool add(Value value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (open_.back().is_array()) {
      open_.back().push_back(std::move(value));
    } else {
      open_.back()[keys_.back()] = std::move(value);
      keys_.pop_back();
    }
    return true;
  }

  Value root_;
  std::vector<Value> open_;
  std::vector<std::string> keys_;
};

TEST(RandomDocuments, EventsTellWhatTheTreeHolds) {
  Random random(14);
  for (int i = 0; i < 2'000; ++i) {
    const Value value = drawn(random, 4);
    Rebuilder rebuilt;
    ASSERT_EQ(read_events(value.dump(), rebuilt), std::nullopt);
    ASSERT_EQ(rebuilt.root(), value) << value.dump();
  }
}

}  // namespace
}  // namespace stoker::json
