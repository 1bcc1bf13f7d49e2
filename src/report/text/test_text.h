#pragma once

#include <string>

/// What tests look for in texts.
namespace stoker::testing_support {

inline bool has(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

/// Text on one line, whatever the width that it was wrapped at.
inline std::string on_one_line(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool blank = c == '\n' || c == ' ';
    if (!blank) out += c;
    else if (!out.empty() && out.back() != ' ') out += ' ';
  }
  return out;
}

}  // namespace stoker::testing_support
