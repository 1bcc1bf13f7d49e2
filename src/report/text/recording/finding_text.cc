#include "report/text/recording/finding_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/percent.h"
#include "base/text.h"
#include "diagnosis/trace/trace_diagnosis.h"
#include "report/text/layout.h"
#include "report/text/screen.h"

namespace stoker::layout {
namespace {

std::string gain_text(const Figure& gain) {
  return fmt::format("{:+.0f} % [{:.0f} to {:.0f}]", kPerCent * gain.value, kPerCent * gain.low,
                     kPerCent * gain.high);
}

/// Its first letter as a capital, where that is of ASCII.
std::string capitalised(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z')
    text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
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
  return finding_text(f, number, f.name);
}

std::string finding_text(const JobFinding& f, std::size_t number, const std::string& name) {
  constexpr std::size_t kIndent = 4;
  std::string text = " " +
                     wrapped(fmt::format("{}. {} ({:.0f} % of the time, confidence {})", number,
                                         name, kPerCent * f.lost, name_of(f.confidence)),
                             kIndent) +
                     "\n";
  text += "    " + wrapped(f.evidence, kIndent) + "\n";
  std::string cure = "Cure: " + f.cure;
  if (f.gain) cure += " Brings " + gain_text(*f.gain) + ".";
  if (!f.price.empty()) cure += " Costs: " + f.price + ".";
  return text + "    " + wrapped(cure, kIndent) + "\n";
}

std::string trace_findings_text(const std::vector<JobFinding>& findings) {
  std::string text;
  for (std::size_t i = 0; i < findings.size(); ++i)
    text += finding_text(findings[i], i + 1, capitalised(words_of_finding(findings[i].name)));
  return text.empty() ? text : "\n" + text;
}

std::string notes_text(const std::vector<std::string>& notes) {
  std::string text;
  for (const std::string& note : notes) text += wrapped("Note: " + note, 6) + "\n";
  return text.empty() ? text : "\n" + text;
}

}  // namespace stoker::layout
