#include <fmt/format.h>

#include <algorithm>

#include "report/model/settings_table.h"
#include "report/text/layout.h"

namespace stoker {
namespace {

using namespace layout;

std::string verdict_word(const MemoryForecast& m) {
  if (!m.fits) return "DOES NOT FIT";
  return m.verdict == MemoryVerdictWord::kFits ? "FITS" : "RISKY";
}

/// Which columns there are beside the figures.
struct Columns {
  bool seq_len = false, precision = false, accumulate = false;

  explicit Columns(const std::vector<SettingsAnswer>& answers) {
    for (const SettingsAnswer& a : answers) {
      seq_len = seq_len || !a.seq_len.empty();
      precision = precision || !a.precision.empty();
      accumulate = accumulate || (a.forecast && a.forecast->job.accumulate > 1);
    }
  }

  std::vector<std::string> head() const {
    std::vector<std::string> names{"batch"};
    if (seq_len) names.emplace_back("seq_len");
    if (precision) names.emplace_back("precision");
    if (accumulate) names.emplace_back("accumulate");
    return names;
  }

  std::vector<std::string> of(const SettingsAnswer& a) const {
    std::vector<std::string> cells{a.forecast ? std::to_string(a.forecast->job.batch)
                                              : (a.batch.empty() ? "-" : a.batch)};
    if (seq_len) cells.push_back(a.seq_len);
    if (precision) cells.push_back(a.precision);
    if (accumulate) cells.push_back(a.forecast ? std::to_string(a.forecast->job.accumulate) : "-");
    return cells;
  }
};

std::vector<std::string> figures(const SettingsAnswer& a) {
  if (!a.forecast) return {"REFUSED", "-", "-", "-", "-", "-"};
  const Forecast& f = *a.forecast;
  const bool runs = f.memory.fits;
  return {verdict_word(f.memory),
          gib(f.memory.device_peak),
          std::to_string(a.limits.low),
          runs ? number(f.step_ms.value) : "-",
          runs ? rate(f.samples_per_s) : "-",
          runs ? std::string(limit_word(f.limiter)) : "memory"};
}

}  // namespace

std::string settings_table_text(const std::vector<SettingsAnswer>& answers,
                                const ReportContext& context) {
  const Columns columns(answers);
  std::vector<std::vector<std::string>> rows{columns.head()};
  const std::size_t before = rows[0].size();
  const auto append = [](std::vector<std::string>& row, const std::vector<std::string>& more) {
    row.insert(row.end(), more.begin(), more.end());
  };
  append(rows[0], {"verdict", "memory [90 %]", "safe batch", "step ms",
                   context.sample_word + "/s [90 %]", "limit"});
  for (const SettingsAnswer& a : answers) {
    rows.push_back(columns.of(a));
    append(rows.back(), figures(a));
  }
  std::string text = context.model_line + "\n" + settings_line(context.settings) + "\n" +
                     table(rows, {before, before + 5}) + "\n";
  std::vector<std::string> said;
  for (const SettingsAnswer& a : answers) {
    if (a.refused.empty() || std::find(said.begin(), said.end(), a.refused) != said.end()) continue;
    said.push_back(a.refused);
    text += "Refused: " + a.refused + "\n";
  }
  std::string warnings;
  for (const SettingsAnswer& a : answers) {
    if (!a.forecast) continue;
    const std::string more = diagnostics(a.forecast->diagnostics);
    if (warnings.find(more) == std::string::npos) warnings += more;
  }
  return text + footer(context.rests_on, context.assumed, context.excluded) + warnings +
         diagnostics(context.data);
}

}  // namespace stoker
