#include "study/definition/template.h"

#include <algorithm>
#include <cctype>

namespace stoker::study {
namespace {

/// In which quotes of a shell a place stands.
enum class Quotes : std::uint8_t { kNone, kSingle, kDouble };

Quotes quotes_after(std::string_view text, Quotes before) {
  Quotes now = before;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\' && now != Quotes::kSingle) ++i;
    else if (c == '\'' && now != Quotes::kDouble)
      now = now == Quotes::kNone ? Quotes::kSingle : Quotes::kNone;
    else if (c == '"' && now != Quotes::kSingle)
      now = now == Quotes::kNone ? Quotes::kDouble : Quotes::kNone;
  }
  return now;
}

/// Leaves the quotes that are open, and opens them again behind the value.
std::string quoted_within(std::string_view value, Quotes quotes) {
  if (quotes == Quotes::kSingle) return "'" + shell_quoted(value) + "'";
  if (quotes == Quotes::kDouble) return "\"" + shell_quoted(value) + "\"";
  return shell_quoted(value);
}

}  // namespace

Result<Template> Template::parse(std::string_view text) {
  Template result;
  result.text_ = text;
  Piece piece;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool twice = i + 1 < text.size() && text[i + 1] == c;
    if ((c == '{' || c == '}') && twice) {
      piece.text += c;
      ++i;
      continue;
    }
    if (c == '}')
      return fail(ErrorCode::kBadInput, "\"" + std::string(text) +
                                            "\" has a } that nothing opens; write }} for the sign");
    if (c != '{') {
      piece.text += c;
      continue;
    }
    const std::size_t end = text.find('}', i);
    if (end == std::string_view::npos)
      return fail(
          ErrorCode::kBadInput,
          "\"" + std::string(text) + "\" has a { that nothing closes; write {{ for the sign");
    auto value = Expression::parse(text.substr(i + 1, end - i - 1));
    if (!value)
      return fail(ErrorCode::kBadInput,
                  value.error().message + "; write {{ and }} for braces that are meant as such");
    piece.has_value = true;
    piece.value = std::move(*value);
    result.pieces_.push_back(std::move(piece));
    piece = {};
    i = end;
  }
  result.pieces_.push_back(std::move(piece));
  return result;
}

Result<std::string> Template::fill(const Lookup& lookup) const {
  std::string text;
  for (const Piece& piece : pieces_) {
    text += piece.text;
    if (piece.has_value) text += TRY(piece.value.value(lookup)).text;
  }
  return text;
}

Result<std::string> Template::fill_for_shell(const Lookup& lookup) const {
  std::string text;
  Quotes quotes = Quotes::kNone;
  for (const Piece& piece : pieces_) {
    quotes = quotes_after(piece.text, quotes);
    text += piece.text;
    if (piece.has_value) text += quoted_within(TRY(piece.value.value(lookup)).text, quotes);
  }
  return text;
}

std::vector<std::string> Template::names() const {
  std::vector<std::string> all;
  for (const Piece& piece : pieces_) {
    if (!piece.has_value) continue;
    for (const std::string& name : piece.value.names()) {
      if (std::ranges::find(all, name) == all.end()) all.push_back(name);
    }
  }
  return all;
}

Result<std::vector<std::string>> split_words(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
      word += text[++i];
      in_word = true;
    } else if (quote != 0) {
      if (c == quote) quote = 0;
      else word += c;
    } else if (c == '\'' || c == '"') {
      quote = c;
      in_word = true;
    } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      if (in_word) words.push_back(std::move(word));
      word.clear();
      in_word = false;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (quote != 0)
    return fail(ErrorCode::kBadInput,
                "\"" + std::string(text) + "\" has a quote that nothing closes");
  if (in_word) words.push_back(std::move(word));
  return words;
}

std::string shell_quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'') result += "'\\''";
    else result += c;
  }
  return result + "'";
}

std::string shell_line(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    const bool plain = !word.empty() && std::ranges::all_of(word, [](unsigned char c) {
      return std::isalnum(c) != 0 ||
             std::string_view("_-./:=,+@%").find(c) != std::string_view::npos;
    });
    line += (line.empty() ? "" : " ") + (plain ? word : shell_quoted(word));
  }
  return line;
}

}  // namespace stoker::study
