#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace stoker::json {

struct Member;

/// A JSON document as a tree of values. An object keeps its members in the order in which they were
/// added or read. The header is light on purpose: reading and writing text is compiled once
/// (json/text.cc).
class Value {
 public:
  enum class Kind : std::uint8_t {
    kNull,
    kBool,
    kInteger,   ///< fits 64 bits with a sign
    kUnsigned,  ///< above the largest std::int64_t
    kDouble,
    kString,
    kArray,
    kObject
  };
  using Array = std::vector<Value>;
  using Object = std::vector<Member>;
  struct Init;

  Value() = default;
  Value(std::nullptr_t) {}  // NOLINT(google-explicit-constructor): literals of a document
  template <std::integral T>
  Value(T value) {  // NOLINT(google-explicit-constructor)
    if constexpr (std::same_as<T, bool>) {
      kind_ = Kind::kBool, bool_ = value;
    } else if constexpr (std::is_signed_v<T>) {
      kind_ = Kind::kInteger, integer_ = value;
    } else {
      set_unsigned(value);
    }
  }
  Value(double value)
      : kind_(Kind::kDouble), double_(value) {}              // NOLINT(google-explicit-constructor)
  Value(float value) : Value(static_cast<double>(value)) {}  // NOLINT(google-explicit-constructor)
  Value(std::string value);                                  // NOLINT(google-explicit-constructor)
  Value(std::string_view value);                             // NOLINT(google-explicit-constructor)
  Value(const char* value);                                  // NOLINT(google-explicit-constructor)
  template <class T>
  Value(const std::vector<T>& list) : Value(array()) {  // NOLINT(google-explicit-constructor)
    for (const auto& one : list) push_back(one);
  }
  template <class T, class Compare>
  Value(const std::map<std::string, T, Compare>& map)  // NOLINT(google-explicit-constructor)
      : Value(object()) {
    for (const auto& [key, one] : map) append(key, one);
  }
  /// {{"name", 1}, {"list", {1, 2}}}: an object when every entry is a pair that begins with a
  /// string, otherwise an array; `array({...})` says so where a list of pairs is meant.
  Value(std::initializer_list<Init> list);  // NOLINT(google-explicit-constructor)

  Value(const Value& other);
  Value(Value&& other) noexcept : kind_(other.kind_), integer_(other.integer_) {
    other.kind_ = Kind::kNull;
  }
  Value& operator=(const Value& other);
  Value& operator=(Value&& other) noexcept;
  ~Value() {
    if (kind_ >= Kind::kString) destroy();
  }

  [[nodiscard]] static Value array();
  [[nodiscard]] static Value array(std::initializer_list<Init> list);
  [[nodiscard]] static Value object();

  [[nodiscard]] Kind kind() const { return kind_; }
  [[nodiscard]] bool is_null() const { return kind_ == Kind::kNull; }
  [[nodiscard]] bool is_bool() const { return kind_ == Kind::kBool; }
  [[nodiscard]] bool is_integer() const {
    return kind_ == Kind::kInteger || kind_ == Kind::kUnsigned;
  }
  [[nodiscard]] bool is_number() const { return is_integer() || kind_ == Kind::kDouble; }
  [[nodiscard]] bool is_string() const { return kind_ == Kind::kString; }
  [[nodiscard]] bool is_array() const { return kind_ == Kind::kArray; }
  [[nodiscard]] bool is_object() const { return kind_ == Kind::kObject; }

  /// A value of another kind reads as false, 0 or empty: readers check the kind first
  /// (json/fields.h does).
  [[nodiscard]] bool as_bool() const { return is_bool() && bool_; }
  [[nodiscard]] double as_double() const;
  [[nodiscard]] std::int64_t as_integer() const;  ///< a fraction is cut off
  [[nodiscard]] const std::string& as_string() const;

  /// Elements of an array, members of an object; 0 for anything else.
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] bool empty() const { return size() == 0; }
  /// Elements of an array; nothing for anything else.
  [[nodiscard]] const Array& elements() const;
  [[nodiscard]] Array::const_iterator begin() const { return elements().begin(); }
  [[nodiscard]] Array::const_iterator end() const { return elements().end(); }
  [[nodiscard]] Array::iterator begin() { return const_cast<Array&>(elements()).begin(); }
  [[nodiscard]] Array::iterator end() { return const_cast<Array&>(elements()).end(); }
  /// Members of an object; nothing for anything else.
  [[nodiscard]] const Object& items() const;

  /// Null when this is no object or has no such member.
  [[nodiscard]] const Value* find(std::string_view key) const;
  [[nodiscard]] bool contains(std::string_view key) const { return find(key) != nullptr; }
  /// A null value when there is none.
  [[nodiscard]] const Value& operator[](std::string_view key) const;
  template <std::integral I>
  [[nodiscard]] const Value& operator[](I index) const {
    return element(static_cast<std::size_t>(index));
  }

  /// The member as `otherwise` is, or `otherwise` when it is absent or null.
  template <class T>
  requires std::integral<T> || std::floating_point<T>
  [[nodiscard]] T value(std::string_view key, T otherwise) const {
    const Value& found = (*this)[key];
    if (found.is_null()) return otherwise;
    if constexpr (std::same_as<T, bool>) return found.as_bool();
    if constexpr (std::floating_point<T>) return static_cast<T>(found.as_double());
    return static_cast<T>(found.as_integer());
  }
  [[nodiscard]] std::string value(std::string_view key, std::string_view otherwise) const;

  /// The member, added when it is missing; a null value becomes an object.
  Value& operator[](std::string_view key);
  template <std::integral I>
  [[nodiscard]] Value& operator[](I index) {
    return const_cast<Value&>(element(static_cast<std::size_t>(index)));
  }
  /// A null value becomes an array.
  void push_back(Value value);
  /// Adds a member without looking whether there is one of that name; a null value becomes an
  /// object.
  void append(std::string key, Value value);
  void erase(std::string_view key);
  [[nodiscard]] Value& back();

  /// Members in the order of their names, at every depth: for files that are compared as text.
  void sort_keys();

  /// Text without line breaks, or indented. What is no UTF-8 is replaced.
  [[nodiscard]] std::string dump(int indent = -1) const;

  /// Numbers compare by value, objects whatever the order of their members.
  friend bool operator==(const Value& a, const Value& b) { return equal(a, b); }
  friend std::ostream& operator<<(std::ostream& out, const Value& value);

 private:
  friend class Builder;
  static bool equal(const Value& a, const Value& b);
  [[nodiscard]] const Value& element(std::size_t index) const;
  void set_unsigned(std::uint64_t value) {
    kind_ = value > INT64_MAX ? Kind::kUnsigned : Kind::kInteger;
    unsigned_ = value;
  }
  void destroy();

  Kind kind_ = Kind::kNull;
  union {
    bool bool_;
    std::int64_t integer_ = 0;
    std::uint64_t unsigned_;
    double double_;
    std::string* string_;
    Array* array_;
    Object* object_;
  };
};

struct Member {
  std::string key;
  Value value;
};

/// An entry of a literal: moved, not copied, into the tree.
struct Value::Init {
  template <class T>
  requires std::constructible_from<Value, T&&> &&
      (!std::same_as<std::remove_cvref_t<T>, Init>)Init(T&& given)
      : value(std::forward<T>(given)) {}                   // NOLINT
  Init(std::initializer_list<Init> list) : value(list) {}  // NOLINT
  mutable Value value;
};

/// A number, or null when nothing was measured.
template <class T>
[[nodiscard]] Value or_null(const std::optional<T>& value) {
  return value ? Value(*value) : Value();
}

}  // namespace stoker::json
