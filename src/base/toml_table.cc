#include "base/toml_table.h"

#define TOML_EXCEPTIONS 0
// toml++ 3.3 asserts what files may break ("[@x]") and then refuses it by itself.
#define TOML_ASSERT(expr) static_cast<void>(0)
#include <toml++/toml.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "base/text.h"

namespace stoker {
namespace {

const toml::table& as_table(const void* table) { return *static_cast<const toml::table*>(table); }

const toml::node* node_at(const void* table, std::string_view key) {
  return table == nullptr ? nullptr : as_table(table).get(key);
}

/// toml++ 3.3 runs into undefined behaviour when a letter from U+00A1 to U+0499 stands where it
/// looks for white space (its is_non_ascii_horizontal_whitespace has no answer for them), which
/// damaged and even sound files bring about. So it sees all letters of the basic plane beyond ASCII
/// moved to the private plane 15, where it has an answer, and what it hands back is moved home.
constexpr std::uint32_t kFirstMoved = 0xA0;
constexpr std::uint32_t kLastMoved =
    0xFEFF;  // the byte-order mark; toml++ takes later ones for no white space
constexpr std::uint32_t kPrivatePlane = 0xF0000;

/// The code point that starts at text[at], and its length; length 0 when it is not well-formed
/// UTF-8.
std::pair<std::uint32_t, std::size_t> code_point(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const std::size_t length = byte(0) < 0x80 ? 1 : byte(0) < 0xE0 ? 2 : byte(0) < 0xF0 ? 3 : 4;
  if ((byte(0) >= 0x80 && byte(0) < 0xC2) || at + length > text.size()) return {0, 0};
  std::uint32_t point = length == 1 ? byte(0) : byte(0) & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {0, 0};
    point = point << 6 | (byte(i) & 0x3F);
  }
  return {point, length};
}

void append(std::string& out, std::uint32_t point) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | (point >> shift & 0x3F)); };
  if (point < 0x800) {
    out += static_cast<char>(0xC0 | point >> 6);
  } else if (point < 0x10000) {
    out += static_cast<char>(0xE0 | point >> 12);
    tail(6);
  } else {
    out += static_cast<char>(0xF0 | point >> 18);
    tail(12);
    tail(6);
  }
  tail(0);
}

/// Moves letters from [from + kFirstMoved, from + kLastMoved] by to - from; copies all else.
std::string moved(std::string_view text, std::uint32_t from, std::uint32_t to) {
  std::string out;
  std::size_t at = 0;
  while (at < text.size()) {
    const auto [point, length] = code_point(text, at);
    const bool surrogate = point >= from + 0xD800 && point < from + 0xE000;
    if (length > 1 && point >= from + kFirstMoved && point <= from + kLastMoved && !surrogate) {
      append(out, point - from + to);
    } else {
      out += text.substr(at, std::max<std::size_t>(length, 1));
    }
    at += std::max<std::size_t>(length, 1);
  }
  return out;
}

std::string away(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  return moved(text, 0, kPrivatePlane);
}
std::string home(std::string_view text) { return moved(text, kPrivatePlane, 0); }

/// Where a control character stands that TOML has no place for; toml++ 3.3 asserts that a key has
/// none, and reads on behind one.
std::size_t control_character(std::string_view text) {
  const auto at = std::find_if(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\t' && c != '\n' && c != '\r') || byte == 0x7F;
  });
  return static_cast<std::size_t>(at - text.begin());
}

/// A text, number or switch as it is written; numbers in the shortest form that reads back the
/// same.
std::optional<std::string> scalar_text(const toml::node& node) {
  if (node.is_string()) return home(*node.value<std::string>());
  if (node.is_boolean()) return *node.value<bool>() ? "true" : "false";
  if (node.is_integer()) return std::to_string(*node.value<std::int64_t>());
  if (node.is_floating_point()) return shortest(*node.value<double>());
  return std::nullopt;
}

}  // namespace

Result<TomlDocument> TomlDocument::parse(std::string_view text, const std::string& file,
                                         std::string page) {
  if (const std::size_t at = control_character(text); at < text.size()) {
    const auto before = text.substr(0, at);
    return fail(ErrorCode::kBadInput,
                "is not TOML: it holds the control character " +
                    std::to_string(static_cast<int>(text[at])) +
                    "; is it a text file? In a text such a character is written as \\u0000",
                file + ":" + std::to_string(1 + std::count(before.begin(), before.end(), '\n')));
  }
  auto parsed = std::make_shared<const toml::parse_result>(toml::parse(away(text), file));
  if (!*parsed) {
    const toml::parse_error& error = parsed->error();
    return fail(ErrorCode::kBadInput, "is not TOML, or is cut short: " + home(error.description()),
                file + ":" + std::to_string(error.source().begin.line));
  }
  TomlDocument document;
  document.parsed_ = std::move(parsed);
  document.file_ = file;
  document.page_ = std::move(page);
  return document;
}

TomlTable TomlDocument::root() const {
  const toml::table& table = static_cast<const toml::parse_result*>(parsed_.get())->table();
  return {&table, "", file_, page_};
}

bool TomlTable::empty() const { return !present() || as_table(table_).empty(); }

bool TomlTable::has(std::string_view key) const { return node_at(table_, key) != nullptr; }

std::uint32_t TomlTable::line(std::string_view key) const {
  if (!present()) return 0;
  const toml::node* node = node_at(table_, key);
  return node != nullptr ? node->source().begin.line : as_table(table_).source().begin.line;
}

std::string TomlTable::heading(const std::string& key) const {
  return key_.empty() ? key : key_ + "." + key;
}

std::string TomlTable::where(std::string_view key) const {
  std::string text = file_;
  if (const std::uint32_t at = line(key); at > 0 && !(key.empty() && key_.empty())) {
    text += ":" + std::to_string(at);
  }
  if (!key_.empty()) text += ", [" + key_ + "]";
  if (!key.empty()) text += (key_.empty() ? ", " : " ") + home(key);
  return text;
}

std::string TomlTable::place(std::string_view key) const { return where(away(key)); }

void TomlTable::reject(std::string_view key, std::string message) {
  if (error_ && error_line_ <= line(key)) return;
  error_ = Error{ErrorCode::kBadInput, std::move(message), where(key)};
  error_line_ = line(key);
}

void TomlTable::number(const char* key, const Range& range, double scale, double& target) {
  asked_.emplace_back(key);
  const toml::node* node = node_at(table_, key);
  if (node == nullptr) return;
  const auto value = node->is_number() ? node->value<double>() : std::nullopt;
  if (!value) return reject(key, std::string("must be a number, in ") + range.unit);
  const auto good = within(*value, range);
  if (!good) return reject(key, good.error().message);
  target = *good * scale;
}

void TomlTable::integer(const char* key, const Range& range, int& target) {
  asked_.emplace_back(key);
  const toml::node* node = node_at(table_, key);
  if (node == nullptr) return;
  const auto value = node->is_integer() ? node->value<std::int64_t>() : std::nullopt;
  if (!value) return reject(key, "must be a whole number");
  const auto good = within(static_cast<double>(*value), range);
  if (!good) return reject(key, good.error().message);
  target = static_cast<int>(*good);
}

void TomlTable::size(const char* key, const Range& range, Bytes& target) {
  asked_.emplace_back(key);
  const toml::node* node = node_at(table_, key);
  if (node == nullptr) return;
  Bytes bytes;
  if (node->is_integer()) {
    bytes = Bytes(*node->value<std::int64_t>());
  } else if (node->is_string()) {
    const auto parsed = parse_bytes(home(*node->value<std::string>()));
    if (!parsed) return reject(key, parsed.error().message);
    bytes = *parsed;
  } else {
    return reject(key, "must be a size: \"24G\", \"24260MiB\" or a whole number of bytes");
  }
  const auto good = within(static_cast<double>(bytes.count()), range);
  if (!good) {
    return reject(key,
                  good.error().message + (node->is_integer() ? "; a bare number means bytes" : ""));
  }
  target = bytes;
}

void TomlTable::text(const char* key, std::string& target) {
  asked_.emplace_back(key);
  const toml::node* node = node_at(table_, key);
  if (node == nullptr) return;
  if (!node->is_string()) return reject(key, "must be a text in quotes");
  target = home(*node->value<std::string>());
}

void TomlTable::boolean(const char* key, bool& target) {
  asked_.emplace_back(key);
  const toml::node* node = node_at(table_, key);
  if (node == nullptr) return;
  if (!node->is_boolean()) return reject(key, "must be true or false");
  target = *node->value<bool>();
}

std::optional<std::string> TomlTable::word(const char* key) {
  asked_.emplace_back(key);
  const toml::node* node = node_at(table_, key);
  if (node == nullptr) return std::nullopt;
  if (node->is_string()) return home(*node->value<std::string>());
  if (node->is_number()) return shortest(*node->value<double>());
  reject(key, "must be a text or a number");
  return std::nullopt;
}

std::optional<std::vector<std::string>> TomlTable::words(const std::string& key) {
  asked_.push_back(away(key));
  const toml::node* node = node_at(table_, asked_.back());
  if (node == nullptr) return std::nullopt;
  std::vector<std::string> all;
  if (!node->is_array()) {
    if (auto one = scalar_text(*node)) return std::vector<std::string>{std::move(*one)};
    reject(asked_.back(), "must be a list of texts, numbers or switches, or one of them");
    return std::nullopt;
  }
  for (const toml::node& entry : *node->as_array()) {
    auto one = scalar_text(entry);
    if (!one) {
      reject(asked_.back(), "must be a list of texts, numbers or switches");
      return std::nullopt;
    }
    all.push_back(std::move(*one));
  }
  return all;
}

std::optional<std::vector<std::vector<std::string>>> TomlTable::rows(const std::string& key) {
  asked_.push_back(away(key));
  const toml::node* node = node_at(table_, asked_.back());
  if (node == nullptr) return std::nullopt;
  std::vector<std::vector<std::string>> all;
  bool good = node->is_array();
  for (std::size_t i = 0; good && i < node->as_array()->size(); ++i) {
    const toml::array* row = (*node->as_array())[i].as_array();
    good = row != nullptr;
    if (!good) break;
    all.emplace_back();
    for (const toml::node& entry : *row) {
      auto one = scalar_text(entry);
      good = good && one.has_value();
      if (one) all.back().push_back(std::move(*one));
    }
  }
  if (good) return all;
  reject(asked_.back(), "must be a list of lists: [[1, \"a\"], [2, \"b\"]]");
  return std::nullopt;
}

bool TomlTable::is_table(std::string_view key) const {
  const toml::node* node = node_at(table_, away(key));
  return node != nullptr && node->is_table();
}

bool TomlTable::is_text(std::string_view key) const {
  const toml::node* node = node_at(table_, away(key));
  return node != nullptr && node->is_string();
}

std::vector<std::string> TomlTable::keys() const {
  std::vector<std::pair<toml::source_position, std::string>> found;
  if (!present()) return {};
  for (const auto& [key, node] : as_table(table_)) {
    const toml::source_position at = node.source().begin;
    found.emplace_back(at, home(std::string(key.str())));
  }
  std::ranges::stable_sort(found, [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> names;
  for (auto& [at, name] : found) names.push_back(std::move(name));
  return names;
}

TomlTable TomlTable::table(const std::string& typed) {
  const std::string key = away(typed);
  asked_.push_back(key);
  const toml::node* node = node_at(table_, key);
  if (node != nullptr && !node->is_table()) {
    reject(key, "must be a table: write [" + heading(typed) + "] on a line of its own");
    node = nullptr;
  }
  return {node == nullptr ? nullptr : node->as_table(), heading(typed), file_, page_};
}

std::vector<TomlTable> TomlTable::tables(const char* key) {
  asked_.emplace_back(key);
  const toml::node* node = node_at(table_, key);
  std::vector<TomlTable> all;
  if (node == nullptr) return all;
  if (!node->is_array_of_tables()) {
    reject(key, "must be a list of tables: write [[" + heading(key) + "]] above each");
    return all;
  }
  for (const auto& entry : *node->as_array())
    all.push_back({entry.as_table(), heading(key), file_, page_});
  return all;
}

std::map<std::string, std::int64_t> TomlTable::other_integers() {
  std::map<std::string, std::int64_t> all;
  if (!present()) return all;
  for (const auto& [key, node] : as_table(table_)) {
    const std::string name(key.str());
    if (std::ranges::find(asked_, name) != asked_.end()) continue;
    asked_.push_back(name);
    if (node.is_integer()) all[home(name)] = *node.value<std::int64_t>();
    else reject(name, "must be a whole number");
  }
  return all;
}

std::string TomlTable::location() const {
  const std::uint32_t at = line("");
  return at > 0 ? file_ + ":" + std::to_string(at) : file_;
}

std::map<std::string, std::string> TomlTable::texts() {
  std::map<std::string, std::string> all;
  if (!present()) return all;
  for (const auto& [key, node] : as_table(table_)) {
    const std::string name(key.str());
    asked_.push_back(name);
    if (node.is_string()) all[home(name)] = home(*node.value<std::string>());
    else reject(name, "must be a text in quotes");
  }
  return all;
}

std::string TomlTable::as_toml() const {
  if (!present()) return {};
  std::ostringstream out;
  out << toml::toml_formatter{toml::table{{key_, as_table(table_)}}};
  return home(out.str());
}

std::optional<Error> TomlTable::finish() {
  if (!present()) return error_;
  for (const auto& [key, node] : as_table(table_)) {
    const std::string name(key.str());
    if (std::ranges::find(asked_, name) != asked_.end()) continue;
    const std::string near = suggestion(name, asked_);
    reject(name, "is not known here" + (near.empty() ? "; " + page_ + " lists what is" : near));
  }
  return error_;
}

}  // namespace stoker
