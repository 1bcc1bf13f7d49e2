#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/text.h"
#include "cli/arguments/version.h"
#include "cli/outside/launched.h"
#include "cli/verbs/verbs.h"
#include "observe/record/recording.h"
#include "observe/sampler.h"
#include "report/model/watch_report.h"
#include "system/system_files.h"

namespace stoker::cli {
namespace {

constexpr double kUsualRate = 10, kUsualEvery = 5;
constexpr double kNanosASecond = 1e9;

struct Options {
  std::string pid, output, fail_below;
  std::vector<std::string> command;
  std::optional<double> seconds, every, rate;
  bool json = false, all_findings = false;
};

/// "80%", "80" or "0.8".
Result<double> share_of(const std::string& text) {
  std::string_view number = text;
  if (number.ends_with('%')) number.remove_suffix(1);
  const auto value = decimal_number(number);
  const double share = !value ? -1 : (*value > 1 || text.ends_with('%') ? *value / 100 : *value);
  if (share < 0 || share > 1)
    return fail(ErrorCode::kUsage, "is a share of the time as 80%, not \"" + text + "\"",
                "--fail-below");
  return share;
}

/// Where the lines of a watch go: beside a command's own output they go to the errors.
std::FILE* lines_of(const Options& o) { return o.json || o.command.empty() ? stdout : stderr; }

/// A watch as it goes: samples into the timeline and the recording, lines on the way.
class Watch {
 public:
  Watch(const Options& o, Sampler& sampler, std::optional<RecordingWriter>& recording)
      : o_(o), sampler_(sampler), recording_(recording) {
    timeline_.set_facts(sampler.facts());
  }

  void run() {
    const double every = o_.every.value_or(kUsualEvery);
    double next_line = every;
    while (const auto sample = sampler_.next()) {
      const auto changed = sampler_.take_changed();
      timeline_.learn(changed);
      timeline_.add(*sample);
      if (recording_) record(changed, *sample);
      const double at = static_cast<double>(sample->at_ns) / kNanosASecond;
      if (at < next_line) continue;
      next_line = std::max(next_line + every, at);
      const WatchLine line = last_of(timeline_, every);
      std::fputs((o_.json ? watch_line_json(line, kVersion) : watch_line_text(line)).c_str(),
                 lines_of(o_));
      std::fflush(lines_of(o_));
    }
  }
  [[nodiscard]] const JobTimeline& timeline() const { return timeline_; }

 private:
  void record(const std::vector<ProcessFacts>& changed, const Sample& sample) {
    recording_->add(changed);
    recording_->add(sample);
    if (recording_->failure().empty() || told_) return;
    told_ = true;
    std::fprintf(stderr, "stoker: %s: %s; recording ends here, the watch goes on\n",
                 o_.output.c_str(), recording_->failure().c_str());
  }

  const Options& o_;
  Sampler& sampler_;
  std::optional<RecordingWriter>& recording_;
  JobTimeline timeline_;
  bool told_ = false;
};

std::string source_of(const Options& o, const Sampler& sampler) {
  if (!o.command.empty()) {
    std::string words;
    for (const std::string& word : o.command) words += (words.empty() ? "" : " ") + word;
    return words;
  }
  const std::string command = sampler.processes().front().command;
  return "process " + o.pid + (command.empty() ? "" : " (" + command + ")");
}

Result<int> watch_process(const Options& o, std::int64_t pid, Launched* launched) {
  std::optional<double> least;
  if (!o.fail_below.empty()) least = TRY(share_of(o.fail_below));
  SamplerOptions options;
  options.rate = o.rate.value_or(kUsualRate);
  options.started_here = launched != nullptr;
  Sampler sampler = TRY(Sampler::attach({pid}, options));
  std::optional<RecordingWriter> recording;
  if (!o.output.empty()) recording.emplace(TRY(RecordingWriter::create(o.output, sampler.facts())));
  const int before = interrupts();
  sampler.stop_when([&] {
    const double at = static_cast<double>(sampler.now()) / kNanosASecond;
    if (o.seconds && at > *o.seconds) return true;
    // Ctrl-C reaches a started command too: its end is waited for, until it comes again.
    return launched != nullptr ? launched->ended() || interrupts() > before + 1
                               : interrupts() > before;
  });
  Watch watch(o, sampler, recording);
  watch.run();
  if (recording) recording->end("ended");

  WatchReport report;
  report.tool_version = kVersion;
  report.source = source_of(o, sampler);
  report.timeline = &watch.timeline();
  report.diagnosis = diagnose_job(watch.timeline());
  report.hidden = sampler.hidden();
  if (recording && recording->failure().empty()) report.recording = o.output;
  if (o.all_findings) report.most_findings = report.diagnosis.findings.size();
  std::fputs((o.json ? watch_json(report) : "\n" + watch_text(report)).c_str(), lines_of(o));
  std::fflush(lines_of(o));
  const bool enough = !least || report.diagnosis.useful >= *least;
  if (!enough)
    std::fprintf(stderr, "stoker: the loop used %.0f %% of the time, less than --fail-below %s\n",
                 100 * report.diagnosis.useful, o.fail_below.c_str());
  return enough ? 0 : 1;
}

Result<int> run(const Options& o) {
  if (o.pid.empty() == o.command.empty())
    return fail(ErrorCode::kUsage,
                "needs a process id, or -- and a command: stoker watch 4242, or stoker watch -- "
                "python train.py",
                "watch");
  if (!o.fail_below.empty()) TRY(share_of(o.fail_below));
  // Before a command is started that takes hours.
  if (std::error_code ignored; !o.output.empty() && std::filesystem::exists(o.output, ignored))
    return fail(ErrorCode::kIo, std::string(kNeverOver), o.output);
  catch_interrupts();
  if (o.command.empty()) {
    const auto pid = whole_number(o.pid);
    if (!pid || *pid <= 0)
      return fail(
          ErrorCode::kUsage,
          "is no process id; to start a command write -- before it: stoker watch -- " + o.pid,
          "\"" + o.pid + "\"");
    return watch_process(o, *pid, nullptr);
  }
  Launched launched = TRY(
      Launched::start(o.command, o.json ? CommandOutput::kToErrors : CommandOutput::kInherited));
  const Result<int> watched = watch_process(o, launched.pid(), &launched);
  const int code = launched.wait();
  if (!watched && watched.error().code == ErrorCode::kIo) return watched;
  if (!watched) {
    std::fprintf(stderr, "stoker: \"%s\" ended before anything could be seen\n",
                 o.command.front().c_str());
    return code;
  }
  return code != 0 ? code : *watched;
}

}  // namespace

Command watch_command() {
  auto o = std::make_shared<Options>();
  return {"watch",
          "a running job, from outside: who waits for whom, and which setting to turn",
          "Examples: stoker watch 4242\n"
          "          stoker watch -o run.rec -- python train.py --epochs 3\n"
          "Nothing is injected and no root is needed; of another user's job less is seen.",
          {{"pid", &o->pid},
           {"output", &o->output},
           {"seconds", &o->seconds},
           {"every", &o->every},
           {"rate", &o->rate},
           {"fail-below", &o->fail_below},
           {"all-findings", &o->all_findings},
           {"json", &o->json}},
          [o] { return run(*o); },
          &o->command};
}

}  // namespace stoker::cli
