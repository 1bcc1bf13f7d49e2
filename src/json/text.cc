#include "json/text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "json/written_events.h"

namespace stoker::json {

/// Builds a tree from the pieces of a text. The innermost open container is the last of `open_`;
/// nothing is added to a container while one inside it is open, so the pointers stay good.
class Builder final : public Events {
 public:
  explicit Builder(int max_depth) : max_depth_(max_depth) {}

  bool null() override { return leaf({}); }
  bool boolean(bool value) override { return leaf(value); }
  bool integer(std::int64_t value) override { return leaf(value); }
  bool large_integer(std::uint64_t value) override { return leaf(value); }
  bool real(double value) override { return leaf(value); }
  bool string(std::string& value) override { return leaf(std::move(value)); }
  bool key(std::string& value) override {
    open_.back()->object_->push_back({std::move(value), {}});
    return true;
  }
  bool begin_object() override { return open(Value::object()); }
  bool begin_array() override { return open(Value::array()); }
  bool end_object() override {
    keep_last(*open_.back()->object_);
    open_.pop_back();
    return true;
  }
  bool end_array() override {
    open_.pop_back();
    return true;
  }

  [[nodiscard]] bool too_deep() const { return too_deep_; }
  Value root;

 private:
  Value* add(Value value) {
    if (open_.empty()) {
      root = std::move(value);
      return &root;
    }
    Value& parent = *open_.back();
    if (parent.is_array()) return &parent.array_->emplace_back(std::move(value));
    Value& member = parent.object_->back().value;
    member = std::move(value);
    return &member;
  }

  bool leaf(Value value) {
    too_deep_ = static_cast<int>(open_.size()) > max_depth_;
    if (!too_deep_) add(std::move(value));
    return !too_deep_;
  }

  bool open(Value container) {
    too_deep_ = static_cast<int>(open_.size()) > max_depth_;
    if (!too_deep_) open_.push_back(add(std::move(container)));
    return !too_deep_;
  }

  /// Where members share a name, the last value stays, in the place of the first.
  static void keep_last(Value::Object& members) {
    const auto by_key = [&](std::size_t a, std::size_t b) {
      return std::pair(std::string_view(members[a].key), a) <
             std::pair(std::string_view(members[b].key), b);
    };
    if (members.size() < 2) return;
    if (members.size() <= kFew) {
      for (std::size_t i = 1; i < members.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
          if (members[i].key != members[j].key) continue;
          members[j].value = std::move(members[i].value);
          members.erase(members.begin() + static_cast<std::ptrdiff_t>(i--));
          break;
        }
      }
      return;
    }
    std::vector<std::size_t> order(members.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), by_key);
    std::vector<bool> repeated(members.size());
    for (std::size_t i = 0, first = 0; i < order.size(); ++i) {
      if (i == 0 || members[order[i]].key != members[order[first]].key) {
        first = i;
        continue;
      }
      members[order[first]].value = std::move(members[order[i]].value);
      repeated[order[i]] = true;
    }
    Value::Object kept;
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (!repeated[i]) kept.push_back(std::move(members[i]));
    }
    members = std::move(kept);
  }

  static constexpr std::size_t kFew = 16;
  int max_depth_;
  bool too_deep_ = false;
  std::vector<Value*> open_;
};

namespace {

using Library = nlohmann::ordered_json;

/// Hands the library's events on.
class Adapter {
 public:
  explicit Adapter(Events& events)
      : events_(events), written_(dynamic_cast<WrittenEvents*>(&events)) {}

  bool null() { return events_.null(); }
  bool boolean(bool value) { return events_.boolean(value); }
  bool number_integer(std::int64_t value) { return events_.integer(value); }
  bool number_unsigned(std::uint64_t value) {
    return value > INT64_MAX ? events_.large_integer(value)
                             : events_.integer(static_cast<std::int64_t>(value));
  }
  bool number_float(double value, const std::string& text) {
    return written_ ? written_->decimal(value, text) : events_.real(value);
  }
  bool string(std::string& value) { return events_.string(value); }
  bool binary(Library::binary_t& /*value*/) { return true; }
  bool key(std::string& value) { return events_.key(value); }
  bool start_object(std::size_t /*size*/) { return events_.begin_object(); }
  bool end_object() { return events_.end_object(); }
  bool start_array(std::size_t /*size*/) { return events_.begin_array(); }
  bool end_array() { return events_.end_array(); }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) {
    error_at = position;
    return false;
  }

  std::optional<std::size_t> error_at;

 private:
  Events& events_;
  WrittenEvents* written_;  ///< events_, where it wants numbers as they are written
};

Library library_value(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kNull:
      break;
    case Value::Kind::kBool:
      return value.as_bool();
    case Value::Kind::kInteger:
      return value.as_integer();
    case Value::Kind::kUnsigned:
      return static_cast<std::uint64_t>(value.as_integer());
    case Value::Kind::kDouble:
      return value.as_double();
    case Value::Kind::kString:
      return value.as_string();
    case Value::Kind::kArray: {
      Library list = Library::array();
      auto& elements = list.get_ref<Library::array_t&>();
      elements.reserve(value.size());
      for (const Value& one : value) elements.push_back(library_value(one));
      return list;
    }
    case Value::Kind::kObject: {
      Library object = Library::object();
      // The map's own emplace would look through all members for each that is added.
      auto& members = static_cast<std::vector<std::pair<const std::string, Library>>&>(
          object.get_ref<Library::object_t&>());
      members.reserve(value.size());
      for (const Member& member : value.items())
        members.emplace_back(member.key, library_value(member.value));
      return object;
    }
  }
  return nullptr;
}

}  // namespace

std::optional<std::size_t> read_events(std::string_view text, Events& events) {
  Adapter adapter(events);
  (void)Library::sax_parse(text, &adapter);
  return adapter.error_at;
}

tl::expected<Value, Damage> parse(std::string_view text, int max_depth) {
  Builder builder(max_depth);
  const auto error = read_events(text, builder);
  if (builder.too_deep()) return tl::unexpected(Damage::kTooDeep);
  if (error) return tl::unexpected(Damage::kNotJson);
  return std::move(builder.root);
}

Result<Value> parse_document(std::string_view text, const std::string& where,
                             const DocumentKind& kind) {
  auto root = parse(text, kind.max_depth);
  if (root) return std::move(*root);
  if (root.error() == Damage::kTooDeep)
    return fail(ErrorCode::kBadInput, "is nested too deeply for " + std::string(kind.name), where);
  return fail(ErrorCode::kBadInput,
              "is cut short or damaged (not valid JSON); " + std::string(kind.cure), where);
}

std::string Value::dump(int indent) const {
  return library_value(*this).dump(indent, ' ', /*ensure_ascii=*/false,
                                   Library::error_handler_t::replace);
}

}  // namespace stoker::json
