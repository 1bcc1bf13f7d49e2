#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/counted.h"
#include "base/percent.h"
#include "base/text.h"
#include "report/model/calibration_report.h"
#include "report/text/cpu_text.h"
#include "report/text/layout.h"

namespace stoker {
namespace {

using namespace layout;

constexpr std::size_t kMostChanges = 4;
/// Two calibrations of an idle machine agree within this.
constexpr double kAgrees = 0.05;

/// "186 GFLOP/s", "25.3 GB/s", "312 TFLOP/s"
std::string rate_text(const SustainedRate& rate) {
  const double giga = rate.measured * 1e-9;
  if (counts_bytes(rate.kind)) return number(giga) + " GB/s";
  return giga < 1e4 ? number(giga) + " GFLOP/s" : number(giga * 1e-3) + " TFLOP/s";
}

std::string rates_table(const CalibratedMachine& m) {
  std::vector<std::vector<std::string>> rows{
      {"", "threads", "sustained", "of the data sheet", "spread"}};
  const bool threads =
      std::ranges::any_of(m.rates, [](const SustainedRate& r) { return r.threads > 0; });
  for (const SustainedRate& r : m.rates) {
    rows.push_back({std::string(name_of(r.kind)), r.threads > 0 ? std::to_string(r.threads) : "-",
                    rate_text(r), r.sheet > 0 ? percent(r.measured / r.sheet) : "-",
                    r.spread > 0 ? fmt::format("{:.1f} %", kPerCent * r.spread) : "-"});
  }
  if (!threads) {
    for (auto& row : rows) row.erase(row.begin() + 1);
  }
  return table(rows, {0});
}

/// "one operator costs PyTorch 5.1 us in the forward pass, 4.2 us in the backward ..."
std::string host_words(const CalibratedMachine& m) {
  std::vector<std::string> parts;
  for (const auto& [name, words] : {std::pair("forward_us", "an operator in the forward pass"),
                                    {"backward_us", "in the backward pass"},
                                    {"optimizer_us", "in the optimizer"},
                                    {"view_us", "that only makes a view"},
                                    {"region_us", "opening a parallel region"}}) {
    for (const MeasuredFigure& f : m.calibration.figures) {
      if (f.name != name) continue;
      parts.push_back(fmt::format("{} {} us", words, two_digits(f.value)));
      break;  // of the fewest threads
    }
  }
  if (m.calibration.host_dispatch_us > 0)
    parts.push_back(fmt::format("an operator {} us", two_digits(m.calibration.host_dispatch_us)));
  if (m.calibration.launch_floor_us > 0)
    parts.push_back(
        fmt::format("an empty kernel {} us", two_digits(m.calibration.launch_floor_us)));
  return parts.empty() ? std::string() : labelled("PyTorch", parts);
}

std::string load_words(const CalibrationRuns& runs) {
  const MeasuredLoad& load = runs.load;
  std::vector<std::string> parts{
      fmt::format("others used {:.1f} % of the cores' time", kPerCent * load.foreign_share)};
  if (load.steal_share > 0)
    parts.push_back(fmt::format("the hypervisor {:.1f} %", kPerCent * load.steal_share));
  if (load.others_on_gpu > 0)
    parts.push_back(fmt::format("{} other process{} on the GPU", load.others_on_gpu,
                                load.others_on_gpu == 1 ? "" : "es"));
  if (load.clocks_changed) parts.emplace_back("clocks changed meanwhile");
  return labelled("Load", parts);
}

std::string change_words(const CalibratedMachine& m) {
  if (m.changes.empty()) return {};
  std::vector<std::string> parts;
  for (const FigureChange& c : m.changes) {
    if (std::fabs(c.change()) <= kAgrees || parts.size() == kMostChanges) break;
    parts.push_back(fmt::format("{}{} {:+.0f} %", c.name,
                                c.threads > 0 ? " (" + threads_text(c.threads) + ")" : "",
                                kPerCent * c.change()));
  }
  const auto far = std::ranges::count_if(
      m.changes, [](const FigureChange& c) { return std::fabs(c.change()) > kAgrees; });
  if (far == 0) {
    return labelled("Since last",
                    {fmt::format("all {} figures within {:.0f} % of the calibration before",
                                 m.changes.size(), kPerCent * kAgrees)});
  }
  if (static_cast<std::size_t>(far) > parts.size())
    parts.push_back(fmt::format("{} more above {:.0f} %",
                                far - static_cast<std::ptrdiff_t>(parts.size()),
                                kPerCent * kAgrees));
  return labelled("Since last", parts);
}

std::string headline(const CalibratedMachine& m, const CalibrationRuns& runs) {
  const Device& device = *m.file.device;
  std::string text = runs.load.disturbed ? "DISTURBED: " : "CALIBRATED: ";
  text += device->name;
  if (const Cpu* cpu = device.cpu()) {
    text += ", " + counted(cpu->cores, "core");
    if (cpu->simd_bits > 0) text += fmt::format(", {}-bit vectors", cpu->simd_bits);
  }
  text += fmt::format(": {} and {} measured",
                      counted(static_cast<std::int64_t>(m.measured_operators), "operator"),
                      counted(std::ssize(runs.calibration.figures), "figure"));
  if (m.kept_operators > 0)
    text += fmt::format(", {} kept from before",
                        counted(static_cast<std::int64_t>(m.kept_operators), "operator"));
  text += "\n";
  if (runs.load.disturbed) {
    text += fmt::format("  {}: bands of forecasts with it are wider\n",
                        runs.load.why.empty() ? "the machine was not idle" : runs.load.why);
  }
  return text;
}

std::string next_words(const CalibrationRuns& runs, const CalibrationSaid& said) {
  std::vector<std::string> steps;
  if (runs.load.disturbed) steps.emplace_back("calibrate again when the machine is idle");
  if (!runs.complete && !said.rows_given)
    steps.emplace_back("a larger --budget measures the rest of the operators");
  if (!said.file.empty()) {
    steps.push_back(fmt::format("stoker predict MODEL --gpu {}", said.file));
    steps.push_back(fmt::format("stoker validate MODEL --machine {}", said.file));
  }
  std::string text;
  for (std::size_t i = 0; i < steps.size(); ++i)
    text += fmt::format("{} {}. {}\n", i == 0 ? "Next " : "     ", i + 1, steps[i]);
  return text;
}

}  // namespace

std::string calibration_text(const CalibratedMachine& m, const CalibrationRuns& runs,
                             const CalibrationSaid& said) {
  std::string text = headline(m, runs) + "\n";
  if (!m.rates.empty()) text += rates_table(m) + "\n";
  text += host_words(m);
  text += labelled("Spread", {fmt::format("{:.1f} % in the middle", kPerCent * m.median_spread),
                              fmt::format("{:.1f} % at most ({})", kPerCent * m.worst_spread,
                                          m.worst_label.empty() ? "-" : m.worst_label)});
  text += load_words(runs) + change_words(m);
  std::vector<std::string> with;
  for (const char* key : {"date", "torch", "cuda", "driver", "onednn", "python"}) {
    const auto found = runs.provenance.find(key);
    if (found != runs.provenance.end() && !found->second.empty())
      with.push_back(std::string(key) == "date" ? found->second
                                                : std::string(key) + " " + found->second);
  }
  if (!with.empty()) text += labelled("Measured", with);
  for (const std::string& note : m.notes) text += labelled("Note", {note});
  if (!said.file.empty()) text += labelled(m.updated ? "Updated" : "Written", {said.file});
  return text + "\n" + next_words(runs, said) + diagnostics(runs.data);
}

}  // namespace stoker
