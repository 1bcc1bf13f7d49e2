#include "report/model/watch_screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "base/percent.h"
#include "base/text.h"
#include "report/model/watch_report.h"

namespace stoker {
namespace {

constexpr double kMinute = 60;
constexpr std::size_t kLabel = 9;    ///< columns of a row's name
constexpr std::size_t kFigure = 16;  ///< columns kept for the figure behind a line
constexpr std::size_t kLeastLine = 8;

/// The first `columns` characters of UTF-8 text.
std::string cut(const std::string& text, std::size_t columns) {
  std::size_t at = 0, shown = 0;
  while (at < text.size()) {
    std::size_t next = at + 1;
    while (next < text.size() && (static_cast<unsigned char>(text[next]) & 0xc0) == 0x80) ++next;
    if (++shown > columns) break;
    at = next;
  }
  return text.substr(0, at);
}

std::vector<std::string> wrapped_lines(const std::string& text, std::size_t width,
                                       std::size_t most) {
  std::vector<std::string> lines(1);
  for (const std::string& word : split(text, ' ')) {
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > width)
      lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
  }
  if (lines.size() > most) lines.resize(most);
  return lines;
}

/// One row: name, the last minute, and the figure at present.
class ScreenRows {
 public:
  ScreenRows(const WatchScreen& screen, std::vector<std::string>& lines)
      : screen_(screen), lines_(lines) {}

  void add(const char* name, const std::function<double(const Stretch&)>& value, double most,
           const std::string& figure) {
    std::vector<double> values;
    bool known = false;
    for (const Stretch& s : screen_.timeline->stretches()) {
      values.push_back(s.seconds > 0 ? value(s) : -1);
      known = known || values.back() >= 0;
    }
    if (!known) return;
    std::string line = fmt::format("{:<{}}", name, kLabel);
    if (screen_.width >= kLabel + kFigure + kLeastLine) {
      const std::size_t room = std::min<std::size_t>(static_cast<std::size_t>(kMinute),
                                                     screen_.width - kLabel - kFigure);
      line += sparkline(values, most, room) + " ";
    }
    lines_.push_back(cut(line + figure, screen_.width));
  }

  /// A row without a line of the last minute.
  void add_text(const char* name, const std::string& text) {
    lines_.push_back(cut(fmt::format("{:<{}}", name, kLabel) + text, screen_.width));
  }

 private:
  const WatchScreen& screen_;
  std::vector<std::string>& lines_;
};

/// Where no batches are seen, what repeats in the main thread stands for steps.
void add_rhythm(const JobTimeline& timeline, ScreenRows& rows) {
  const std::vector<RankTimeline> ranks = timeline.ranks();
  const auto known = std::ranges::find_if(ranks, [](const RankTimeline& r) { return !!r.rhythm; });
  if (known == ranks.end()) return;
  const Rhythm& r = *known->rhythm;
  rows.add_text("steps", fmt::format("of about {} [{} to {}], by their rhythm",
                                     human_time(r.period * kSecond), human_time(r.low * kSecond),
                                     human_time(r.high * kSecond)));
}

double state_share(const Stretch& s, JobState state) {
  return s.job.all() > 0 ? s.job[state] / s.job.all() : -1;
}

std::string percent_or_nothing(double share) { return share < 0 ? "" : percent(share); }

}  // namespace

std::string sparkline(const std::vector<double>& values, double most, std::size_t columns) {
  constexpr std::array<const char*, 8> kBlocks{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const std::size_t shown = std::min(columns, values.size());
  std::string line(columns - shown, ' ');
  for (std::size_t i = values.size() - shown; i < values.size(); ++i) {
    if (values[i] < 0 || most <= 0) {
      line += ' ';
      continue;
    }
    const double part = std::clamp(values[i] / most, 0.0, 1.0);
    line += kBlocks[std::min<std::size_t>(7, static_cast<std::size_t>(part * 8))];
  }
  return line;
}

std::vector<std::string> screen_lines(const WatchScreen& screen) {
  std::vector<std::string> lines;
  const std::size_t width = std::max<std::size_t>(1, screen.width);
  const JobTimeline& t = *screen.timeline;
  const WatchLine now = last_of(t, 2);
  const Stretch& s = now.stretch;
  lines.push_back(
      cut(fmt::format("{}  {}", screen.source, human_time(t.seconds() * kSecond)), width));
  const std::string verdict =
      screen.verdict.empty() ? "watching; an answer comes after a few seconds" : screen.verdict;
  for (const std::string& line : wrapped_lines(verdict, width, 3))
    lines.push_back(cut(line, width));
  lines.emplace_back();
  ScreenRows rows(screen, lines);
  const auto state = [&](const char* name, JobState which) {
    rows.add(
        name, [which](const Stretch& x) { return state_share(x, which); }, 1,
        percent_or_nothing(state_share(s, which)));
  };
  rows.add(
      "GPU", [](const Stretch& x) { return x.gpu_busy; }, 1, percent_or_nothing(s.gpu_busy));
  state("computes", JobState::kComputes);
  state("data", JobState::kWaitsForData);
  state("no core", JobState::kWaitsForCore);
  const double cores = std::max(1.0, now.cores);
  rows.add(
      "cores", [](const Stretch& x) { return x.cores_used / x.seconds; }, cores,
      fmt::format("{:.1f} of {:g}", s.seconds > 0 ? s.cores_used / s.seconds : 0.0, cores));
  if (now.workers > 0) {
    const auto busy = [](const Stretch& x) {
      return x.workers.alive > 0 ? x.workers.making() / x.workers.alive : -1;
    };
    rows.add("workers", busy, 1,
             fmt::format("{} {} busy", now.workers, percent_or_nothing(busy(s))));
    double most = 1;
    for (const Stretch& x : t.stretches()) most = std::max(most, x.ready);
    rows.add(
        "ready", [](const Stretch& x) { return x.ready; }, most,
        s.ready < 0 ? "" : fmt::format("{:.1f} batches", s.ready));
  }
  double fastest = 0;
  for (const Stretch& x : t.stretches())
    fastest = std::max(fastest, x.seconds > 0 ? x.batches / x.seconds : 0);
  if (fastest > 0)
    rows.add(
        "batches", [](const Stretch& x) { return x.batches / x.seconds; }, fastest,
        fmt::format("{:.1f} /s", s.seconds > 0 ? s.batches / s.seconds : 0.0));
  else add_rhythm(t, rows);
  double most_memory = 1;
  for (const Stretch& x : t.stretches()) most_memory = std::max(most_memory, x.memory);
  rows.add(
      "memory", [](const Stretch& x) { return x.memory > 0 ? x.memory : -1; }, most_memory,
      human_bytes(Bytes(static_cast<std::int64_t>(s.memory))));
  if (lines.size() > screen.height) lines.resize(std::max<std::size_t>(1, screen.height));
  return lines;
}

}  // namespace stoker
