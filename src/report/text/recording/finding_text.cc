#include "report/text/recording/finding_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/percent.h"
#include "base/text.h"
#include "report/text/layout.h"
#include "report/text/screen.h"

namespace stoker::layout {
namespace {

std::string gain_text(const Figure& gain) {
  return fmt::format("{:+.0f} % [{:.0f} to {:.0f}]", kPerCent * gain.value, kPerCent * gain.low,
                     kPerCent * gain.high);
}

}  // namespace

std::string wrapped(const std::string& text, std::size_t indent, std::size_t most) {
  const std::size_t width = layout::columns_within(most);
  std::string out;
  std::size_t column = indent;
  for (const std::string& word : split(text, ' ')) {
    if (column + word.size() + 1 > width && column > indent) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out;
}

std::string finding_text(const JobFinding& f, std::size_t number) {
  constexpr std::size_t kIndent = 4;
  std::string text = " " +
                     wrapped(fmt::format("{}. {} ({:.0f} % of the time, confidence {})", number,
                                         f.name, kPerCent * f.lost, name_of(f.confidence)),
                             kIndent) +
                     "\n";
  text += "    " + wrapped(f.evidence, kIndent) + "\n";
  std::string cure = "Cure: " + f.cure;
  if (f.gain) cure += " Brings " + gain_text(*f.gain) + ".";
  if (!f.price.empty()) cure += " Costs: " + f.price + ".";
  return text + "    " + wrapped(cure, kIndent) + "\n";
}

}  // namespace stoker::layout
