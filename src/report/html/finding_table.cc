#include "report/html/finding_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/percent.h"
#include "diagnosis/trace/trace_diagnosis.h"
#include "report/html/page.h"

namespace stoker::page {
namespace {

Shown gain_shown(const Figure& gain) {
  const auto text = [](double v) { return fmt::format("{:+.0f} %", kPerCent * v); };
  return {text(gain.value), text(gain.low) + " to " + text(gain.high),
          gain.value,       gain.low,
          gain.high,        gain.basis};
}

}  // namespace

namespace {

Json table_of(const std::vector<JobFinding>& findings,
              const std::function<std::string(const std::string&)>& words) {
  std::vector<std::vector<Cell>> rows;
  for (const JobFinding& f : findings) {
    std::string cause = words(f.name);
    rows.push_back({{std::move(cause), {}},
                    {"", shown_percent(f.lost)},
                    {std::string(name_of(f.confidence)), {}},
                    {f.evidence, {}},
                    {f.cure + (f.price.empty() ? "" : " Costs: " + f.price + "."), {}},
                    f.gain ? Cell{"", gain_shown(*f.gain)} : Cell{"-", {}}});
  }
  if (rows.empty()) return {};
  return table({{"cause", false},
                {"of the time"},
                {"confidence", false},
                {"what shows it", false},
                {"cure", false},
                {"brings"}},
               rows);
}

}  // namespace

Json finding_table(const std::vector<JobFinding>& findings) {
  return table_of(findings, [](std::string name) {
    std::ranges::replace(name, '_', ' ');
    return name;
  });
}

Json trace_finding_table(const std::vector<JobFinding>& findings) {
  return table_of(findings, words_of_finding);
}

}  // namespace stoker::page
