#include "report/html/finding_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/percent.h"
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

Json finding_table(const std::vector<JobFinding>& findings) {
  std::vector<std::vector<Cell>> rows;
  for (const JobFinding& f : findings) {
    std::string cause = f.name;
    std::ranges::replace(cause, '_', ' ');
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

}  // namespace stoker::page
