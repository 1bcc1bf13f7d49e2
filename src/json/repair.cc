#include "json/repair.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace stoker::json {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/// Bytes of the UTF-8 character at the beginning of `text`; 0: there is none.
std::size_t character_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  std::size_t length = 1;
  if (byte(0) >= 0xC2 && byte(0) <= 0xDF) length = 2;
  else if (byte(0) >= 0xE0 && byte(0) <= 0xEF) length = 3;
  else if (byte(0) >= 0xF0 && byte(0) <= 0xF4) length = 4;
  else if (byte(0) >= 0x80) return 0;
  if (length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Overlong forms, surrogates and what lies beyond Unicode.
  const bool bad = (byte(0) == 0xE0 && byte(1) < 0xA0) || (byte(0) == 0xED && byte(1) > 0x9F) ||
                   (byte(0) == 0xF0 && byte(1) < 0x90) || (byte(0) == 0xF4 && byte(1) > 0x8F);
  return bad ? 0 : length;
}

class Repairer {
 public:
  explicit Repairer(std::string_view text) : rest_(text) { out_.text.reserve(text.size()); }

  Repaired run() {
    while (!rest_.empty()) {
      if (rest_[0] == '"') string();
      else if (is_letter(rest_[0]) || (rest_[0] == '-' && rest_.size() > 1 && is_letter(rest_[1])))
        word();
      else if (rest_[0] >= '0' && rest_[0] <= '9') number();
      else keep(1);
    }
    return std::move(out_);
  }

 private:
  void keep(std::size_t bytes) {
    out_.text += rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
  }

  /// The letters of a number belong to it: 1e5.
  void number() {
    std::size_t end = 0;
    while (end < rest_.size() &&
           (is_letter(rest_[end]) || (rest_[end] >= '0' && rest_[end] <= '9') ||
            rest_[end] == '.' || rest_[end] == '+' || rest_[end] == '-'))
      ++end;
    keep(end);
  }

  void word() {
    std::size_t end = 1;
    while (end < rest_.size() && is_letter(rest_[end])) ++end;
    const std::string_view word = rest_.substr(0, end);
    if (word == "true" || word == "false" || word == "null") return keep(end);
    constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kWords{
        {{"inf", "null"},
         {"Inf", "null"},
         {"INF", "null"},
         {"infinity", "null"},
         {"Infinity", "null"},
         {"nan", "null"},
         {"NaN", "null"},
         {"NAN", "null"},
         {"None", "null"},
         {"undefined", "null"},
         {"True", "true"},
         {"False", "false"}}};
    const std::string_view bare = word[0] == '-' ? word.substr(1) : word;
    for (const auto& [known, meant] : kWords) {
      if (bare != known) continue;
      out_.text += meant;
      ++out_.values;
      rest_.remove_prefix(end);
      return;
    }
    keep(end);
  }

  void string() {
    keep(1);
    while (!rest_.empty() && rest_[0] != '"') {
      if (rest_[0] == '\\') escape();
      else character();
    }
    if (!rest_.empty()) keep(1);
  }

  void escape() {
    constexpr std::string_view kShort = "\"\\/bfnrt";
    if (rest_.size() > 1 && kShort.find(rest_[1]) != std::string_view::npos) return keep(2);
    const bool unicode = rest_.size() >= 6 && rest_[1] == 'u' &&
                         std::all_of(rest_.begin() + 2, rest_.begin() + 6, is_hex);
    if (unicode) return keep(6);
    out_.text += "\\\\";  // a backslash that stands for itself, as in C:\path
    ++out_.strings;
    rest_.remove_prefix(1);
  }

  void character() {
    if (static_cast<unsigned char>(rest_[0]) < 0x20) {
      char text[8];
      std::snprintf(text, sizeof text, "\\u%04x", static_cast<unsigned>(rest_[0]));
      out_.text += text;
    } else if (const std::size_t length = character_length(rest_); length > 0) {
      return keep(length);
    } else {
      out_.text += '?';
    }
    ++out_.strings;
    rest_.remove_prefix(1);
  }

  std::string_view rest_;
  Repaired out_;
};

}  // namespace

Repaired repaired(std::string_view text) { return Repairer(text).run(); }

}  // namespace stoker::json
