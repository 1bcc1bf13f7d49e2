#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"
#include "report/study/figures.h"
#include "report/study/study_report.h"
#include "report/text/layout.h"

namespace stoker {
namespace {

constexpr std::size_t kMostRows = 24;

/// What tables of utilisation and memory show, where any trial has it.
struct Column {
  const char* figure;
  const char* otherwise;  ///< taken where no trial has the first
  const char* heading;
  bool gigabytes;
};
constexpr Column kColumns[] = {
    {"samples_per_s", "", "samples/s", false},
    {"gpu_percent_steady", "gpu_percent", "GPU %", false},
    {"gpu_peak_bytes", "", "card GB", true},
    {"gpu_memory_percent", "", "card %", false},
    {"gpu_watts", "", "W", false},
    {"gpu_energy_j", "", "J", false},
    {"cpu_percent_steady", "", "CPU %", false},
    {"cpu_cores_steady", "cpu_cores", "cores", false},
    {"peak_bytes", "", "host GB", true},
};

std::vector<std::string> setting_cells(const std::vector<std::string>& values) {
  std::vector<std::string> cells;
  for (const std::string& value : values) cells.push_back(printable(value, 40));
  return cells;
}

std::string cut_text(std::size_t rows) {
  return rows > kMostRows ? fmt::format("  ... and {} more: --json has all\n", rows - kMostRows)
                          : "";
}

}  // namespace

std::string convergence_text(const study::StudyView& view, const study::Convergence& c) {
  std::string text = fmt::format(
      "\nConvergence of {}: when it reaches {}{}, and where settings stand after equal times\n",
      printable(c.metric), named_figure(c.metric, c.target),
      c.asked ? "" : " (what half of the settings reach; --target sets another)");
  std::vector<std::vector<std::string>> table{{}};
  for (const std::string& axis : view.axes) table[0].push_back(printable(axis));
  table[0].insert(table[0].end(), {"epoch", "time"});
  for (const double time : c.times) table[0].push_back("after " + seconds_text(time));
  table[0].insert(table[0].end(), {"best", "last"});
  for (std::size_t i = 0; i < std::min(c.approaches.size(), kMostRows); ++i) {
    const study::Approach& a = c.approaches[i];
    auto cells = setting_cells(a.values);
    cells.push_back(a.step ? named_figure("", a.step) : "-");
    cells.push_back(seconds_text(a.seconds) +
                    (a.trials > 1 ? fmt::format(" ({} of {})", a.reached, a.trials) : ""));
    for (const auto& value : a.at) cells.push_back(named_figure(c.metric, value));
    cells.push_back(named_figure(c.metric, a.best));
    cells.push_back(named_figure(c.metric, a.last));
    table.push_back(std::move(cells));
  }
  // What stands after equal times goes first on a narrow terminal.
  std::vector<std::size_t> first_to_go;
  for (std::size_t i = 0; i < c.times.size(); ++i) first_to_go.push_back(view.axes.size() + 2 + i);
  return text + layout::table(table, {}, "  ", first_to_go) + cut_text(c.approaches.size());
}

std::string usage_text(const study::StudyView& view) {
  std::vector<std::string> figures;
  std::vector<const Column*> columns;
  for (const Column& column : kColumns) {
    for (const char* name : {column.figure, column.otherwise}) {
      const bool any = std::ranges::any_of(view.rows, [&](const study::TrialRow& row) {
        return study::figure_of(row, name).has_value();
      });
      if (!any) continue;
      figures.emplace_back(name);
      columns.push_back(&column);
      break;
    }
  }
  const auto settings = study::settings_of(view, figures);
  if (settings.empty() || figures.empty()) return "";
  std::vector<std::vector<std::string>> table{{}};
  for (const std::string& axis : view.axes) table[0].push_back(printable(axis));
  for (const Column* column : columns) table[0].emplace_back(column->heading);
  for (std::size_t i = 0; i < std::min(settings.size(), kMostRows); ++i) {
    auto cells = setting_cells(settings[i].values);
    for (std::size_t f = 0; f < figures.size(); ++f) {
      const auto& value = settings[i].figures[f];
      constexpr double kGigabyte = 1e9;
      cells.push_back(!value                  ? "-"
                      : columns[f]->gigabytes ? fmt::format("{:.2f}", *value / kGigabyte)
                                              : fmt::format("{:.3g}", *value));
    }
    table.push_back(std::move(cells));
  }
  return "\nUtilisation and memory (means; GB = 1e9 bytes; card % of its memory, CPU % of a "
         "trial's "
         "cores)\n" +
         layout::table(table, {}) + cut_text(settings.size());
}

}  // namespace stoker
