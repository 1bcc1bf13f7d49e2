#include "machine/toml_table.h"

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include <algorithm>
#include <sstream>

#include "base/text.h"

namespace stoker {
namespace {

const toml::table& as_table(const void* table) { return *static_cast<const toml::table*>(table); }

const toml::node* node_at(const void* table, std::string_view key) {
  return table == nullptr ? nullptr : as_table(table).get(key);
}

/// Length of the string or comment that starts here; 0 when none does. An open one ends with its line, or,
/// with three quotes, with the text. Three quotes open a string of many lines only as a value (`is_value`);
/// in a key they are an empty string and a quote.
std::size_t quoted_or_comment(std::string_view text, bool is_value) {
  if (text[0] == '#') return std::min(text.find('\n'), text.size());
  if (text[0] != '"' && text[0] != '\'') return 0;
  const bool escapes = text[0] == '"';
  const std::string mark(is_value && text.starts_with(std::string(3, text[0])) ? 3 : 1, text[0]);
  std::size_t at = mark.size();
  while (at < text.size() && !text.substr(at).starts_with(mark)) {
    if (mark.size() == 1 && text[at] == '\n') return at;
    at += escapes && text[at] == '\\' ? 2 : 1;
  }
  at = std::min(at + mark.size(), text.size());
  while (mark.size() == 3 && at < text.size() && text[at] == mark[0]) ++at;  // """ends with ""quotes"""""
  return at;
}

/// Line of the first letter that is not ASCII and stands outside of quotes and comments, where TOML 1.0 allows
/// none; 0 when there is none. toml++ 3.3 runs into undefined behaviour there (is_non_ascii_horizontal_
/// whitespace has no answer for U+00A1 to U+0499), so it must not see one.
int stray_letter(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // byte-order mark
  int line = 1;
  char before = '\n';  // the last letter that is not a blank
  while (!text.empty()) {
    const std::size_t length = std::max<std::size_t>(quoted_or_comment(text, before == '='), 1);
    if (text[0] != ' ' && text[0] != '\t') before = text[0];
    if (length == 1 && static_cast<unsigned char>(text[0]) >= 0x80) return line;
    line += static_cast<int>(std::ranges::count(text.substr(0, length), '\n'));
    text.remove_prefix(length);
  }
  return 0;
}

}  // namespace

Result<TomlDocument> TomlDocument::parse(std::string_view text, const std::string& file) {
  if (const int line = stray_letter(text); line > 0) {
    return fail(ErrorCode::kBadInput, "is not TOML: letters beyond ASCII must stand in quotes",
                file + ":" + std::to_string(line));
  }
  auto parsed = std::make_shared<const toml::parse_result>(toml::parse(text, file));
  if (!*parsed) {
    const toml::parse_error& error = parsed->error();
    return fail(ErrorCode::kBadInput,
                "is not TOML, or is cut short: " + std::string(error.description()),
                file + ":" + std::to_string(error.source().begin.line));
  }
  TomlDocument document;
  document.parsed_ = std::move(parsed);
  document.file_ = file;
  return document;
}

TomlTable TomlDocument::root() const {
  const toml::table& table = static_cast<const toml::parse_result*>(parsed_.get())->table();
  return {&table, "", file_};
}

bool TomlTable::empty() const { return !present() || as_table(table_).empty(); }

bool TomlTable::has(std::string_view key) const { return node_at(table_, key) != nullptr; }

std::uint32_t TomlTable::line(std::string_view key) const {
  if (!present()) return 0;
  const toml::node* node = node_at(table_, key);
  return node != nullptr ? node->source().begin.line : as_table(table_).source().begin.line;
}

std::string TomlTable::where(std::string_view key) const {
  std::string text = file_;
  if (const std::uint32_t at = line(key); at > 0 && !(key.empty() && key_.empty())) {
    text += ":" + std::to_string(at);
  }
  if (!key_.empty()) text += ", [" + key_ + "]";
  if (!key.empty()) text += (key_.empty() ? ", " : " ") + std::string(key);
  return text;
}

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
    const auto parsed = parse_bytes(*node->value<std::string>());
    if (!parsed) return reject(key, parsed.error().message);
    bytes = *parsed;
  } else {
    return reject(key, "must be a size: \"24G\", \"24260MiB\" or a whole number of bytes");
  }
  const auto good = within(static_cast<double>(bytes.count()), range);
  if (!good) {
    return reject(key, good.error().message + (node->is_integer() ? "; a bare number means bytes" : ""));
  }
  target = bytes;
}

void TomlTable::text(const char* key, std::string& target) {
  asked_.emplace_back(key);
  const toml::node* node = node_at(table_, key);
  if (node == nullptr) return;
  if (!node->is_string()) return reject(key, "must be a text in quotes");
  target = *node->value<std::string>();
}

std::optional<std::string> TomlTable::word(const char* key) {
  asked_.emplace_back(key);
  const toml::node* node = node_at(table_, key);
  if (node == nullptr) return std::nullopt;
  if (node->is_string()) return node->value<std::string>();
  if (node->is_number()) return shortest(*node->value<double>());
  reject(key, "must be a text or a number");
  return std::nullopt;
}

TomlTable TomlTable::table(const char* key) {
  asked_.emplace_back(key);
  const toml::node* node = node_at(table_, key);
  if (node != nullptr && !node->is_table()) {
    reject(key, std::string("must be a table: write [") + key + "] on a line of its own");
    node = nullptr;
  }
  return {node == nullptr ? nullptr : node->as_table(), key, file_};
}

std::map<std::string, std::string> TomlTable::texts() {
  std::map<std::string, std::string> all;
  if (!present()) return all;
  for (const auto& [key, node] : as_table(table_)) {
    const std::string name(key.str());
    asked_.push_back(name);
    if (const auto value = node.value<std::string>()) all[name] = *value;
    else reject(name, "must be a text in quotes");
  }
  return all;
}

std::string TomlTable::as_toml() const {
  if (!present()) return {};
  std::ostringstream out;
  out << toml::toml_formatter{toml::table{{key_, as_table(table_)}}};
  return out.str();
}

std::optional<Error> TomlTable::finish() {
  if (!present()) return error_;
  for (const auto& [key, node] : as_table(table_)) {
    const std::string name(key.str());
    if (std::ranges::find(asked_, name) != asked_.end()) continue;
    const std::string near = suggestion(name, asked_);
    reject(name, "is not known here" + (near.empty() ? "; docs/machine-format.md lists what is" : near));
  }
  return error_;
}

}  // namespace stoker
