#include "json/value.h"

#include <algorithm>
#include <ostream>

#include "base/saturating.h"

namespace stoker::json {
namespace {

const Value kNull{};

bool is_pair(const Value& value) {
  return value.is_array() && value.size() == 2 && value[0].is_string();
}

}  // namespace

Value::Value(std::string value)
    : kind_(Kind::kString), string_(new std::string(std::move(value))) {}
Value::Value(std::string_view value) : Value(std::string(value)) {}
Value::Value(const char* value) : Value(std::string(value)) {}

Value::Value(std::initializer_list<Init> list) {
  const bool pairs =
      std::all_of(list.begin(), list.end(), [](const Init& entry) { return is_pair(entry.value); });
  if (!pairs) {
    *this = array(list);
    return;
  }
  *this = object();
  object_->reserve(list.size());
  for (const Init& entry : list) {
    Array& pair = *entry.value.array_;
    if (!contains(*pair[0].string_)) append(std::move(*pair[0].string_), std::move(pair[1]));
  }
}

Value::Value(const Value& other) : kind_(other.kind_), integer_(other.integer_) {
  if (kind_ == Kind::kString) string_ = new std::string(*other.string_);
  if (kind_ == Kind::kArray) array_ = new Array(*other.array_);
  if (kind_ == Kind::kObject) object_ = new Object(*other.object_);
}

Value& Value::operator=(const Value& other) {
  if (this != &other) *this = Value(other);
  return *this;
}

Value& Value::operator=(Value&& other) noexcept {
  std::swap(kind_, other.kind_);
  std::swap(integer_, other.integer_);
  return *this;
}

void Value::destroy() {
  if (kind_ == Kind::kString) delete string_;
  if (kind_ == Kind::kArray) delete array_;
  if (kind_ == Kind::kObject) delete object_;
}

Value Value::array() {
  Value value;
  value.array_ = new Array;
  value.kind_ = Kind::kArray;
  return value;
}

Value Value::array(std::initializer_list<Init> list) {
  Value value = array();
  value.array_->reserve(list.size());
  for (const Init& entry : list) value.array_->push_back(std::move(entry.value));
  return value;
}

Value Value::object() {
  Value value;
  value.object_ = new Object;
  value.kind_ = Kind::kObject;
  return value;
}

double Value::as_double() const {
  switch (kind_) {
    case Kind::kInteger:
      return static_cast<double>(integer_);
    case Kind::kUnsigned:
      return static_cast<double>(unsigned_);
    case Kind::kDouble:
      return double_;
    default:
      return 0;
  }
}

std::int64_t Value::as_integer() const {
  if (kind_ == Kind::kInteger || kind_ == Kind::kUnsigned) return integer_;
  return kind_ == Kind::kDouble ? saturating_whole(double_) : 0;
}

const std::string& Value::as_string() const {
  static const std::string kNone;
  return is_string() ? *string_ : kNone;
}

std::size_t Value::size() const {
  return is_array() ? array_->size() : is_object() ? object_->size() : 0;
}

const Value::Array& Value::elements() const {
  static const Array kNone;
  return is_array() ? *array_ : kNone;
}

const Value::Object& Value::items() const {
  static const Object kNone;
  return is_object() ? *object_ : kNone;
}

const Value* Value::find(std::string_view key) const {
  for (const Member& member : items()) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

const Value& Value::operator[](std::string_view key) const {
  const Value* found = find(key);
  return found == nullptr ? kNull : *found;
}

const Value& Value::element(std::size_t index) const {
  return index < elements().size() ? elements()[index] : kNull;
}

std::string Value::value(std::string_view key, std::string_view otherwise) const {
  const Value& found = (*this)[key];
  return found.is_null() ? std::string(otherwise) : found.as_string();
}

Value& Value::operator[](std::string_view key) {
  if (!contains(key)) append(std::string(key), Value());
  return const_cast<Value&>(*find(key));
}

void Value::push_back(Value value) {
  if (is_null()) *this = array();
  if (is_array()) array_->push_back(std::move(value));
}

void Value::append(std::string key, Value value) {
  if (is_null()) *this = object();
  if (is_object()) object_->push_back({std::move(key), std::move(value)});
}

void Value::erase(std::string_view key) {
  if (is_object()) std::erase_if(*object_, [&](const Member& member) { return member.key == key; });
}

Value& Value::back() { return array_->back(); }

void Value::sort_keys() {
  if (is_array()) {
    for (Value& one : *array_) one.sort_keys();
  }
  if (!is_object()) return;
  std::sort(object_->begin(), object_->end(),
            [](const Member& a, const Member& b) { return a.key < b.key; });
  for (Member& member : *object_) member.value.sort_keys();
}

bool Value::equal(const Value& a, const Value& b) {
  if (a.is_integer() && b.is_integer()) return a.kind_ == b.kind_ && a.integer_ == b.integer_;
  if (a.is_number() && b.is_number()) return a.as_double() == b.as_double();
  if (a.kind_ != b.kind_) return false;
  switch (a.kind_) {
    case Kind::kBool:
      return a.bool_ == b.bool_;
    case Kind::kString:
      return *a.string_ == *b.string_;
    case Kind::kArray:
      return *a.array_ == *b.array_;
    case Kind::kObject:
      return a.size() == b.size() &&
             std::all_of(a.items().begin(), a.items().end(), [&](const Member& member) {
               const Value* other = b.find(member.key);
               return other != nullptr && equal(member.value, *other);
             });
    default:
      return true;
  }
}

std::ostream& operator<<(std::ostream& out, const Value& value) { return out << value.dump(); }

}  // namespace stoker::json
