#include <fmt/format.h>

#include <algorithm>

#include "base/counted.h"
#include "base/percent.h"
#include "base/text.h"
#include "report/model/recording_report.h"
#include "report/text/layout.h"
#include "report/text/recording/finding_text.h"

namespace stoker {
namespace {

using layout::wrapped;

/// Shares below are left out of the lines of shares.
constexpr double kShownShare = 0.005;

std::string heading(const TraceDiagnosis& d, const std::string& file) {
  std::string text = fmt::format("{}, {} of ", file, human_time(d.seconds * kSecond));
  text += d.device ? fmt::format("GPU {}", *d.device) : "the CPU";
  if (d.steps > 0) text += ": " + counted(d.steps, "step");
  if (d.step_s > 0) text += fmt::format(" of {} (median)", human_time(d.step_s * kSecond));
  return text;
}

void add_share(std::string& line, std::string_view words, double share) {
  if (share < kShownShare) return;
  line += fmt::format("{}{} {}", line.empty() ? "" : ", ", words, percent(share));
}

std::string shares_text(const TraceDiagnosis& d) {
  std::string line, causes;
  if (d.device) {
    add_share(line, "computes", d.compute);
    add_share(line, "communicates alone", d.communication);
    add_share(line, "copies alone", d.copies);
    add_share(line, "idles", d.idle);
    line = "the GPU: " + line;
  } else {
    add_share(line, "within operators", d.compute);
    add_share(line, "communicates alone", d.communication);
    line = "the loop: " + line;
  }
  for (std::size_t i = 0; i < kIdleCauses; ++i)
    add_share(causes, words_of(static_cast<IdleCause>(i)), d.idle_by[i]);
  if (!causes.empty()) line += (d.device ? "; idle while " : ", ") + causes;
  return "  " + wrapped(line, 4) + "\n";
}

std::string one_line(const std::string& text) {
  constexpr std::size_t kLongestName = 72;
  std::string name = printable(text);
  if (name.size() > kLongestName) {
    std::size_t end = kLongestName;
    while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0U) == 0x80U) --end;
    name = name.substr(0, end) + "...";
  }
  return name;
}

std::string owners_text(const TraceDiagnosis& d) {
  /// A few lines of each; --json and --html have more.
  constexpr std::size_t kLines = 5;
  std::string text;
  const auto add = [&](const std::vector<TraceOwner>& owners, std::string_view heading) {
    for (std::size_t i = 0; i < std::min(kLines, owners.size()); ++i) {
      const TraceOwner& o = owners[i];
      if (o.share < kShownShare) break;
      if (i == 0) text += fmt::format("  {}:\n", heading);
      text += fmt::format("  {:>6}  {:>7}  {}", fine_percent(o.share), with_commas(o.count),
                          one_line(o.name));
      if (o.modules > 1) text += fmt::format(" ({} of them)", with_commas(o.modules));
      if (o.modules > 0 && o.backward > 0)
        text += fmt::format(", backward {}", fine_percent(o.backward));
      text += "\n";
    }
  };
  add(d.operators, "operators by the GPU's time");
  add(d.modules, "modules by the GPU's time");
  return text;
}

std::string largest_text(const TraceDiagnosis& d) {
  std::string text =
      d.device ? "  kernels and copies by their time:\n" : "  operators by their own time:\n";
  for (const TraceShare& s : d.largest) {
    text += fmt::format("  {:>6}  {:>7}  {}\n", fine_percent(s.share), with_commas(s.count),
                        one_line(s.name));
  }
  return d.largest.empty() ? "" : text;
}

std::string time_text(const ProfileReport& report) {
  const TraceDiagnosis& d = *report.time;
  std::string text = wrapped(heading(d, report.file), 0) + "\n\n" + wrapped(d.verdict, 0) + "\n\n";
  text += shares_text(d) + largest_text(d) + owners_text(d);
  return text + layout::trace_findings_text(d.findings) + layout::notes_text(d.notes);
}

}  // namespace

std::string profile_text(const ProfileReport& report) {
  std::string text;
  if (report.time) text = time_text(report);
  if (report.time && report.memory) text += "\n";
  if (report.memory) text += kineto_text(*report.memory, report.file);
  return text;
}

}  // namespace stoker
