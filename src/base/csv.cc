#include "base/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace stoker {
namespace {

/// Cells of one record, taken from the front of `text`; counts the line breaks that it passes.
class Reader {
 public:
  Reader(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  [[nodiscard]] bool at_end() const { return at_ >= text_.size(); }
  [[nodiscard]] int line() const { return line_; }
  [[nodiscard]] bool skip_line_without_record();
  [[nodiscard]] Result<std::vector<std::string>> record();

 private:
  [[nodiscard]] char peek() const { return at_end() ? '\n' : text_[at_]; }
  [[nodiscard]] bool at_line_end() const {
    return peek() == '\n' ||
           (peek() == '\r' && (at_ + 1 >= text_.size() || text_[at_ + 1] == '\n'));
  }
  void pass_line_end() {
    while (!at_end() && text_[at_] != '\n') ++at_;
    if (!at_end()) ++at_;
    ++line_;
  }
  [[nodiscard]] Result<std::string> quoted_cell();
  [[nodiscard]] std::string plain_cell();
  [[nodiscard]] tl::unexpected<Error> refuse(int line, std::string message) const {
    return fail(ErrorCode::kBadInput, std::move(message), name_ + ":" + std::to_string(line));
  }

  std::string_view text_;
  const std::string& name_;
  std::size_t at_ = 0;
  int line_ = 1;
};

bool Reader::skip_line_without_record() {
  if (at_end() || (peek() != '#' && !at_line_end())) return false;
  pass_line_end();
  return true;
}

Result<std::string> Reader::quoted_cell() {
  const int opened = line_;
  std::string cell;
  ++at_;
  while (!at_end()) {
    const char c = text_[at_++];
    if (c == '\n') ++line_;
    if (c != '"') {
      cell += c;
    } else if (!at_end() && peek() == '"') {
      cell += '"';
      ++at_;
    } else {
      if (peek() != ',' && !at_line_end()) {
        return refuse(line_,
                      "text follows a closing quote; double a quote that belongs to the cell");
      }
      return cell;
    }
  }
  return refuse(opened, "a quote is opened here and never closed; the file may be cut short");
}

std::string Reader::plain_cell() {
  const std::size_t start = at_;
  while (peek() != ',' && !at_line_end()) ++at_;
  return std::string(text_.substr(start, at_ - start));
}

Result<std::vector<std::string>> Reader::record() {
  std::vector<std::string> cells;
  while (true) {
    if (!at_end() && peek() == '"') {
      auto cell = TRY(quoted_cell());
      cells.push_back(std::move(cell));
    } else {
      cells.push_back(plain_cell());
    }
    if (at_end() || peek() != ',') break;
    ++at_;
  }
  pass_line_end();
  return cells;
}

}  // namespace

std::string_view CsvRow::operator[](std::string_view column) const {
  const auto found = cells.find(column);
  return found == cells.end() ? std::string_view() : std::string_view(found->second);
}

Result<std::vector<CsvRow>> parse_csv(std::string_view text, const std::string& name) {
  Reader reader(text, name);
  std::vector<std::string> headings;
  std::vector<CsvRow> rows;
  while (!reader.at_end()) {
    if (reader.skip_line_without_record()) continue;
    const int line = reader.line();
    auto cells = TRY(reader.record());
    const std::string where = name + ":" + std::to_string(line);
    if (headings.empty()) {
      headings = std::move(cells);
      std::vector<std::string> sorted = headings;
      std::ranges::sort(sorted);
      if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end()) {
        return fail(ErrorCode::kBadInput, "the column \"" + *twice + "\" appears twice; rename one",
                    where);
      }
      continue;
    }
    if (cells.size() != headings.size()) {
      return fail(ErrorCode::kBadInput,
                  "has " + std::to_string(cells.size()) + " cells where the heading has " +
                      std::to_string(headings.size()) + "; quote cells that contain commas",
                  where);
    }
    CsvRow row{.line = line, .cells = {}};
    for (std::size_t i = 0; i < headings.size(); ++i) row.cells[headings[i]] = std::move(cells[i]);
    rows.push_back(std::move(row));
  }
  if (headings.empty())
    return fail(ErrorCode::kBadInput, "is empty; a heading line is needed", name);
  return rows;
}

Result<double> positive_number(std::string_view cell) {
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  const bool whole = error == std::errc() && end == cell.data() + cell.size();
  if (whole && std::isfinite(value) && value > 0) return value;
  return fail(ErrorCode::kBadInput, "\"" + std::string(cell) + "\" is not a positive number");
}

}  // namespace stoker
