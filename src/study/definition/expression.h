#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stoker::study {

/// What an expression works with: a text that is a number where it reads as one.
struct Operand {
  std::string text;
  std::optional<double> number;
};
[[nodiscard]] Operand operand_of(std::string text);

/// The value of a name in one trial; nullptr: there is no such name.
using Lookup = std::function<const std::string*(std::string_view name)>;

/// A condition or a sum over the values of a trial: "gpus*batch <= 1024", "optimizer == 'sgd' and
/// workers in (0, 2)". Operators, loosest first: or, and, not, comparisons and in, + -, * / %,
/// a sign, ^. True is 1, false 0. Numbers compare as numbers; where one side is none, texts.
class Expression {
 public:
  /// Refused: what is no expression, with the column.
  [[nodiscard]] static Result<Expression> parse(std::string_view text);

  /// Refused: a name that has no value, a sum over a text, a division by 0.
  [[nodiscard]] Result<Operand> value(const Lookup& lookup) const;
  [[nodiscard]] Result<bool> holds(const Lookup& lookup) const;
  /// The names that it uses, in order, each once.
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  [[nodiscard]] const std::string& text() const { return text_; }

  struct Node;

 private:
  std::string text_;
  std::shared_ptr<const Node> root_;
  std::vector<std::string> names_;
};

}  // namespace stoker::study
