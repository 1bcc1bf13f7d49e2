#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "study/definition/expression.h"

namespace stoker::study {

/// A text with places for values: "--batch={batch}", "{gpus*batch}", "{{" and "}}" for braces.
class Template {
 public:
  [[nodiscard]] static Result<Template> parse(std::string_view text);

  [[nodiscard]] Result<std::string> fill(const Lookup& lookup) const;
  /// Fills the text with each value quoted for a POSIX shell: within double or single quotes of the
  /// text as well as outside of them a value is one word and nothing in it is run.
  [[nodiscard]] Result<std::string> fill_for_shell(const Lookup& lookup) const;
  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  struct Piece {
    std::string text;  ///< as it is; of a place the text before it
    bool has_value = false;
    Expression value;
  };
  std::string text_;
  std::vector<Piece> pieces_;
};

/// Words of a command as a shell would part them, with quotes and backslashes, and nothing else of
/// a shell: no variables, no patterns. Refused: an open quote.
[[nodiscard]] Result<std::vector<std::string>> split_words(std::string_view text);

/// The text as one word of a POSIX shell: 'it'\''s'.
[[nodiscard]] std::string shell_quoted(std::string_view text);
/// Several words, those that need no quotes without.
[[nodiscard]] std::string shell_line(const std::vector<std::string>& words);

}  // namespace stoker::study
