#include <fmt/core.h>

#include <cmath>

#include "base/counted.h"
#include "base/text.h"
#include "base/units.h"
#include "report/model/tune_report.h"

namespace stoker {
namespace {

/// A whole number that a command may have been given, of any size.
std::string number_text(double whole) {
  constexpr double kExact = 0x1p53;
  return std::fabs(whole) <= kExact ? with_commas(std::llround(whole))
                                    : fmt::format("{:.6g}", whole);
}

std::string time_text(double seconds) { return human_time(Nanos(seconds * 1e9)); }

std::string values_text(const TuneReport& report) {
  std::string text;
  for (std::size_t i = 0; i < report.choice->values.size(); ++i)
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", printable(report.axes[i]),
                        printable(report.choice->values[i]));
  return text;
}

std::string spent_text(const tune::Spent& spent) {
  std::string text = fmt::format("Spent {} in {}", time_text(spent.seconds),
                                 counted(static_cast<std::int64_t>(spent.trials), "trial"));
  if (spent.restarted > 0)
    text += fmt::format(", {} of which began anew because there was no checkpoint to go on from",
                        spent.restarted);
  if (spent.saved_s > 0)
    text +=
        fmt::format("; stopping early and not running saved about {}", time_text(spent.saved_s));
  return text + "\n";
}

/// DDP gives each process the batch of the command, which is what users are misled by most.
std::string batch_text(const BatchReport& batch) {
  std::string text =
      fmt::format("  Batch: {} a device x {} {} = {} in all\n", number_text(batch.per_device),
                  number_text(batch.devices), batch.devices == 1 ? "device" : "devices",
                  number_text(batch.global()));
  if (batch.rate)
    text += fmt::format(
        "  At another batch another rate: stoker.scale_batch({:.6g}, old={:.0f}, new=..., "
        "devices={:.0f}) has the rules\n",
        *batch.rate, batch.per_device, batch.devices);
  return text;
}

}  // namespace

std::string decision_line(const tune::Decision& decision) {
  std::string line = printable(decision.what);
  if (!decision.why.empty()) line += ": " + printable(decision.why);
  if (decision.saved_s > 0) line += fmt::format(" (saved about {})", time_text(decision.saved_s));
  return line + "\n";
}

std::string tune_text(const TuneReport& report) {
  std::string text = "Decisions\n";
  for (const tune::Decision& decision : report.decisions) text += "  " + decision_line(decision);
  if (report.decisions.empty()) text += "  none yet\n";
  text += "\n" + spent_text(report.spent);
  if (report.choice) {
    const bool open = !report.over.empty() || !report.problem.empty();
    text += fmt::format("{} {}", open ? "Best so far" : "Take", values_text(report));
    if (report.choice->score)
      text += ": " + printable(report.objective.named_result(*report.choice->score));
    if (report.choice->trial > 0) text += fmt::format(" (trial {})", report.choice->trial);
    text += "\n";
    if (!report.command.empty()) text += "  " + printable(report.command) + "\n";
    if (report.batch) text += batch_text(*report.batch);
  }
  if (!report.over.empty())
    text += fmt::format("\nStopped: {}. `stoker tune {}{}` goes on.\n", printable(report.over),
                        printable(report.store), report.go_on);
  return text;
}

}  // namespace stoker
