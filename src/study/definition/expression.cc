#include "study/definition/expression.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>

#include "base/ranges.h"
#include "base/text.h"
#include "study/definition/values.h"

namespace stoker::study {

struct Expression::Node {
  enum class Kind : std::uint8_t { kValue, kName, kApply };
  Kind kind = Kind::kValue;
  std::string word;  ///< the value, the name or the operator
  std::vector<std::shared_ptr<const Node>> parts;
};

namespace {

using Node = Expression::Node;
using NodePtr = std::shared_ptr<const Node>;

constexpr int kMostDepth = 100;
/// A sum of so many terms is as deep as it is long, and evaluated by recursion.
constexpr std::ptrdiff_t kLongest = 10'000;

struct Token {
  enum class Kind : std::uint8_t { kValue, kName, kSymbol, kEnd };
  Kind kind = Kind::kEnd;
  std::string word;
  std::size_t column = 0;
};

bool starts_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

class Parser {
 public:
  Parser(std::string_view text, std::vector<std::string>& names) : text_(text), names_(names) {}

  Result<NodePtr> parse() {
    TRY(advance());
    NodePtr root = TRY(any());
    if (token_.kind != Token::Kind::kEnd) return wrong("has \"" + token_.word + "\"");
    return root;
  }

 private:
  [[nodiscard]] tl::unexpected<Error> wrong(const std::string& what) const {
    return fail(ErrorCode::kBadInput, "\"" + std::string(text_) + "\" " + what + " at column " +
                                          std::to_string(token_.column + 1) +
                                          ", where it cannot stand");
  }

  Status quoted(char quote) {
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos)
      return fail(ErrorCode::kBadInput, "\"" + std::string(text_) +
                                            "\" has a quote that nothing "
                                            "closes");
    token_ = {Token::Kind::kValue, std::string(text_.substr(at_ + 1, end - at_ - 1)), at_};
    at_ = end + 1;
    return {};
  }

  Status number() {
    std::size_t end = at_;
    while (end < text_.size() &&
           (in_name(text_[end]) || text_[end] == '.' ||
            ((text_[end] == '-' || text_[end] == '+') && (text_[end - 1] | 0x20) == 'e')))
      ++end;
    token_ = {Token::Kind::kValue, std::string(text_.substr(at_, end - at_)), at_};
    at_ = end;
    if (as_number(token_.word)) return {};
    return wrong("has \"" + token_.word + "\", which is no number,");
  }

  Status advance() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    if (at_ == text_.size()) {
      token_ = {Token::Kind::kEnd, "its end", at_};
      return {};
    }
    const char c = text_[at_];
    if (c == '\'' || c == '"') return quoted(c);
    if (std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '.') return number();
    if (starts_name(c)) {
      std::size_t end = at_;
      while (end < text_.size() && in_name(text_[end])) ++end;
      token_ = {Token::Kind::kName, std::string(text_.substr(at_, end - at_)), at_};
      at_ = end;
      return {};
    }
    for (const std::string_view two : {"<=", ">=", "==", "!=", "&&", "||", "**"}) {
      if (text_.substr(at_, 2) == two) return symbol(two);
    }
    return symbol(text_.substr(at_, 1));
  }

  Status symbol(std::string_view word) {
    token_ = {Token::Kind::kSymbol, std::string(word), at_};
    at_ += word.size();
    return {};
  }

  [[nodiscard]] bool is(std::string_view word) const {
    const bool spelled = word == "and" || word == "or" || word == "not" || word == "in";
    return token_.word == word &&
           token_.kind == (spelled ? Token::Kind::kName : Token::Kind::kSymbol);
  }
  Result<bool> took(std::string_view word) {
    if (!is(word)) return false;
    TRY(advance());
    return true;
  }

  static NodePtr apply(std::string word, std::vector<NodePtr> parts) {
    return std::make_shared<const Node>(
        Node{Node::Kind::kApply, std::move(word), std::move(parts)});
  }

  Result<NodePtr> any() {
    if (++depth_ > kMostDepth) return wrong("is nested too deep");
    NodePtr left = TRY(all());
    for (;;) {
      const bool word = TRY(took("or"));
      if (!word && !TRY(took("||"))) break;
      left = apply("or", {left, TRY(all())});
    }
    --depth_;
    return left;
  }
  Result<NodePtr> all() {
    NodePtr left = TRY(negated());
    for (;;) {
      const bool word = TRY(took("and"));
      if (!word && !TRY(took("&&"))) return left;
      left = apply("and", {left, TRY(negated())});
    }
  }
  Result<NodePtr> negated() {
    if (++depth_ > kMostDepth) return wrong("is nested too deep");
    const bool word = TRY(took("not"));
    NodePtr node = word || TRY(took("!")) ? apply("not", {TRY(negated())}) : TRY(compared());
    --depth_;
    return node;
  }
  Result<NodePtr> compared() {
    NodePtr left = TRY(sum());
    for (const char* op : {"<=", ">=", "==", "!=", "<", ">"}) {
      if (TRY(took(op))) return apply(op, {left, TRY(sum())});
    }
    const bool no = TRY(took("not"));
    if (no && !is("in")) return wrong("has \"" + token_.word + "\"");
    if (!TRY(took("in"))) return left;
    if (!TRY(took("("))) return wrong("needs \"(\" after \"in\"");
    std::vector<NodePtr> parts{left};
    do parts.push_back(TRY(sum()));
    while (TRY(took(",")));
    if (!TRY(took(")"))) return wrong("needs \")\"");
    NodePtr found = apply("in", std::move(parts));
    return no ? apply("not", {found}) : found;
  }
  Result<NodePtr> sum() {
    NodePtr left = TRY(product());
    for (;;) {
      const std::string op = token_.word;
      if (!is("+") && !is("-")) return left;
      TRY(advance());
      left = apply(op, {left, TRY(product())});
    }
  }
  Result<NodePtr> product() {
    NodePtr left = TRY(sign());
    for (;;) {
      const std::string op = token_.word;
      if (!is("*") && !is("/") && !is("%")) return left;
      TRY(advance());
      left = apply(op, {left, TRY(sign())});
    }
  }
  Result<NodePtr> sign() {
    if (++depth_ > kMostDepth) return wrong("is nested too deep");
    NodePtr node = TRY(took("-")) ? apply("minus", {TRY(sign())}) : TRY(power());
    --depth_;
    return node;
  }
  Result<NodePtr> power() {
    NodePtr base = TRY(atom());
    const bool caret = TRY(took("^"));
    if (!caret && !TRY(took("**"))) return base;
    return apply("^", {base, TRY(sign())});
  }
  Result<NodePtr> atom() {
    if (TRY(took("("))) {
      NodePtr inner = TRY(any());
      if (!TRY(took(")"))) return wrong("needs \")\"");
      return inner;
    }
    if (token_.kind == Token::Kind::kEnd || token_.kind == Token::Kind::kSymbol || is("and") ||
        is("or") || is("in"))
      return wrong("has \"" + token_.word + "\"");
    Node node;
    node.kind = token_.kind == Token::Kind::kName ? Node::Kind::kName : Node::Kind::kValue;
    node.word = token_.word;
    if (node.kind == Node::Kind::kName && std::ranges::find(names_, node.word) == names_.end())
      names_.push_back(node.word);
    TRY(advance());
    return std::make_shared<const Node>(std::move(node));
  }

  std::string_view text_;
  std::vector<std::string>& names_;
  std::size_t at_ = 0;
  int depth_ = 0;
  Token token_;
};

Operand number(double value) { return {shortest(value), value}; }
Operand truth(bool value) { return {value ? "1" : "0", value ? 1.0 : 0.0}; }

bool true_of(const Operand& o) {
  if (o.number) return *o.number != 0;
  return !o.text.empty() && o.text != "false" && o.text != "False";
}

int compare(const Operand& a, const Operand& b) {
  if (a.number && b.number) return *a.number < *b.number ? -1 : *a.number > *b.number ? 1 : 0;
  const int order = a.text.compare(b.text);
  return order < 0 ? -1 : order > 0 ? 1 : 0;
}

std::optional<bool> compared(const std::string& op, const Operand& a, const Operand& b) {
  const int order = compare(a, b);
  if (op == "<=") return order <= 0;
  if (op == ">=") return order >= 0;
  if (op == "==") return order == 0;
  if (op == "!=") return order != 0;
  if (op == "<") return order < 0;
  if (op == ">") return order > 0;
  return std::nullopt;
}

Result<Operand> arithmetic(const std::string& op, const Operand& a, const Operand& b) {
  for (const Operand* o : {&a, &b}) {
    if (!o->number)
      return fail(ErrorCode::kBadInput,
                  "\"" + o->text + "\" is no number, and " + op + " needs numbers");
  }
  const double x = *a.number, y = *b.number;
  if ((op == "/" || op == "%") && y == 0)
    return fail(ErrorCode::kBadInput, "divides " + a.text + " by 0");
  const double result = op == "+"   ? x + y
                        : op == "-" ? x - y
                        : op == "*" ? x * y
                        : op == "/" ? x / y
                        : op == "%" ? x - y * std::floor(x / y)
                                    : std::pow(x, y);
  if (!std::isfinite(result))
    return fail(ErrorCode::kBadInput, a.text + " " + op + " " + b.text + " is no number");
  return number(result);
}

Result<Operand> evaluate(const Node& node, const Lookup& lookup) {
  if (node.kind == Node::Kind::kValue) return operand_of(node.word);
  if (node.kind == Node::Kind::kName) {
    const std::string* found = lookup(node.word);
    if (found == nullptr)
      return fail(ErrorCode::kNotFound, "\"" + node.word + "\" is no axis of this study");
    return operand_of(*found);
  }
  const Operand left = TRY(evaluate(*node.parts[0], lookup));
  if (node.word == "not") return truth(!true_of(left));
  if (node.word == "minus") return arithmetic("-", number(0), left);
  if (node.word == "and" && !true_of(left)) return truth(false);
  if (node.word == "or" && true_of(left)) return truth(true);
  if (node.word == "in") {
    bool found = false;
    for (std::size_t i = 1; i < node.parts.size(); ++i)
      found = found || compare(left, TRY(evaluate(*node.parts[i], lookup))) == 0;
    return truth(found);
  }
  const Operand right = TRY(evaluate(*node.parts[1], lookup));
  if (node.word == "and" || node.word == "or") return truth(true_of(right));
  if (const auto result = compared(node.word, left, right)) return truth(*result);
  return arithmetic(node.word, left, right);
}

}  // namespace

Operand operand_of(std::string text) {
  const auto value = as_number(text);
  return {std::move(text), value};
}

Result<Expression> Expression::parse(std::string_view text) {
  if (std::ssize(text) > kLongest)
    return fail(ErrorCode::kBadInput, "an expression of " + with_commas(std::ssize(text)) +
                                          " characters is too long; at most " +
                                          with_commas(kLongest) + " can be read");
  Expression expression;
  expression.text_ = text;
  expression.root_ = TRY(Parser(expression.text_, expression.names_).parse());
  return expression;
}

Result<Operand> Expression::value(const Lookup& lookup) const { return evaluate(*root_, lookup); }

Result<bool> Expression::holds(const Lookup& lookup) const {
  return true_of(TRY(evaluate(*root_, lookup)));
}

}  // namespace stoker::study
