#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>
#include <thread>

#include "base/setting.h"
#include "base/text.h"
#include "cli/answers/against.h"
#include "cli/arguments/version.h"
#include "cli/outside/launched.h"
#include "cli/outside/live_screen.h"
#include "cli/outside/output.h"
#include "cli/verbs/verbs.h"
#include "diagnosis/timeline/times.h"
#include "observe/proc/node_jobs.h"
#include "observe/record/recording.h"
#include "observe/sampler.h"
#include "report/model/recording_page.h"
#include "report/model/watch_screen.h"
#include "system/system_files.h"

namespace stoker::cli {
namespace {

constexpr double kUsualRate = 10, kUsualEvery = 5;

struct WatchArguments {
  std::string pid, output, fail_below, job, html, against;
  std::vector<std::string> command;
  std::optional<double> seconds, every, rate;
  bool json = false, all_findings = false, all = false, plain = false;
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
std::FILE* lines_of(const WatchArguments& o) {
  return o.json || o.command.empty() ? stdout : stderr;
}

/// Prints for the terminal's width where it goes to standard output; command lines and process
/// names may hold anything.
void tell(const WatchArguments& o, const std::string& text) {
  if (lines_of(o) == stdout) print(text);
  else std::fputs(printable_lines(text).c_str(), stderr);
  std::fflush(lines_of(o));
}

/// A watch as it goes: samples into the timeline and the recording, lines on the way.
class Watch {
 public:
  Watch(const WatchArguments& o, Sampler& sampler, std::optional<RecordingWriter>& recording)
      : o_(o), sampler_(sampler), recording_(recording) {
    timeline_.set_facts(sampler.facts());
  }

  /// `source` is what the screen calls the job.
  void run(const std::string& source) {
    const bool live = !o_.json && !o_.plain && o_.command.empty() && !o_.all && is_terminal(stdout);
    const double every = live ? 1 : o_.every.value_or(kUsualEvery);
    double next = every;
    while (const auto sample = sampler_.next()) {
      const auto changed = sampler_.take_changed();
      timeline_.learn(changed);
      timeline_.add(*sample);
      if (recording_) record(changed, *sample);
      const double at = static_cast<double>(sample->at_ns) / kNanosASecond;
      if (at < next || o_.all) continue;
      next = std::max(next + every, at);
      if (live) show(source, at);
      else print_line(every);
    }
  }
  [[nodiscard]] const JobTimeline& timeline() const { return timeline_; }

 private:
  void record(const std::vector<ProcessFacts>& changed, const Sample& sample) {
    recording_->add(changed);
    recording_->add(sample);
    if (recording_->failure().empty() || told_) return;
    told_ = true;
    say(stderr, "stoker: " + o_.output + ": " + recording_->failure() +
                    "; recording ends here, the watch goes on\n");
  }

  void print_line(double every) {
    const WatchLine line = last_of(timeline_, every);
    tell(o_, o_.json ? watch_line_json(line, kVersion) : watch_line_text(line));
  }

  void show(const std::string& source, double at) {
    // The answer takes simulations, and changes slowly.
    if (at >= next_verdict_) {
      verdict_ = diagnose_job(timeline_).verdict;
      next_verdict_ = at + std::max(kVerdictEvery, at / 10);
    }
    const TerminalSize size = terminal_size(stdout);
    screen_.draw(screen_lines({&timeline_, source, verdict_, size.columns, size.rows - 1}));
  }

  static constexpr double kVerdictEvery = 10;
  const WatchArguments& o_;
  Sampler& sampler_;
  std::optional<RecordingWriter>& recording_;
  JobTimeline timeline_;
  LiveScreen screen_{stdout};
  std::string verdict_;
  double next_verdict_ = kLeastSeconds;
  bool told_ = false;
};

std::string source_of(const WatchArguments& o, std::int64_t pid, const Sampler& sampler) {
  if (!o.command.empty()) {
    std::string words;
    for (const std::string& word : o.command) words += (words.empty() ? "" : " ") + word;
    return words;
  }
  const std::string command = sampler.processes().front().command;
  if (!o.job.empty()) return "Slurm job " + o.job + ", its processes on this node";
  return "process " + std::to_string(pid) + (command.empty() ? "" : " (" + command + ")");
}

/// What could not be forecast is said, and what was seen is reported all the same.
void add_forecast(const WatchArguments& o, const JobTimeline& timeline, WatchReport& report) {
  auto against = set_against(o.against, timeline);
  if (against) report.against = std::move(*against);
  else report.diagnosis.notes.push_back("no forecast: " + with_flags(against.error().text()));
}

/// Reports of several jobs do not interrupt each other.
std::mutex printing;

Result<int> watch_processes(const WatchArguments& o, const std::vector<std::int64_t>& roots,
                            Launched* launched) {
  std::optional<double> least;
  if (!o.fail_below.empty()) least = TRY(share_of(o.fail_below));
  SamplerOptions options;
  options.rate = o.rate.value_or(kUsualRate);
  options.started_here = launched != nullptr;
  Sampler sampler = TRY(Sampler::attach(roots, options));
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
  const std::string source = printable(source_of(o, roots.front(), sampler));
  watch.run(source);
  if (recording) recording->end("ended");

  WatchReport report;
  report.tool_version = kVersion;
  report.source = source;
  report.timeline = &watch.timeline();
  report.diagnosis = diagnose_job(watch.timeline());
  report.hidden = sampler.hidden();
  if (recording && recording->failure().empty()) report.recording = o.output;
  if (o.all_findings) report.most_findings = report.diagnosis.findings.size();
  if (!o.against.empty()) add_forecast(o, watch.timeline(), report);
  if (!o.html.empty()) TRY(write_page(o.html, watch_page(report)));
  const std::scoped_lock lock(printing);
  tell(o, o.json ? watch_json(report) : "\n" + watch_text(report));
  const bool enough = !least || report.diagnosis.useful >= *least;
  if (!enough)
    std::fprintf(stderr, "stoker: the loop used %.0f %% of the time, less than --fail-below %s\n",
                 100 * report.diagnosis.useful, o.fail_below.c_str());
  return enough ? 0 : 1;
}

/// Every job of the node at the same time, each by a thread of its own; a report for each.
Result<int> watch_all(const WatchArguments& given) {
  const std::vector<std::int64_t> jobs = training_jobs("/proc");
  if (jobs.empty())
    return fail(ErrorCode::kAnswerIsNo,
                "no training job that this user can see runs on this node (Python with PyTorch in "
                "its memory, or DataLoader workers)",
                "--all");
  constexpr double kUsualAll = 15;
  WatchArguments o = given;
  if (!o.seconds) o.seconds = kUsualAll;
  std::vector<Result<int>> results(jobs.size(), 0);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < jobs.size(); ++i)
    threads.emplace_back([&, i] { results[i] = watch_processes(o, {jobs[i]}, nullptr); });
  for (std::thread& thread : threads) thread.join();
  int code = 0;
  for (const Result<int>& result : results) {
    // A job that ended meanwhile is no failure of the watch.
    if (result) code = std::max(code, *result);
    else say(stderr, "stoker: " + result.error().text() + "\n");
  }
  return code;
}

Result<int> watch_slurm_job(const WatchArguments& o) {
  const std::vector<std::int64_t> roots = slurm_job_roots("/proc", o.job);
  if (roots.empty())
    return fail(ErrorCode::kNotFound,
                "no process of this Slurm job that this user can see runs on this node; "
                "scontrol show job names its nodes",
                o.job);
  return watch_processes(o, roots, nullptr);
}

Result<int> run_watch(const WatchArguments& o) {
  const int ways = static_cast<int>(!o.pid.empty()) + static_cast<int>(!o.command.empty()) +
                   static_cast<int>(!o.job.empty()) + static_cast<int>(o.all);
  if (ways != 1)
    return fail(
        ErrorCode::kUsage,
        "needs a process id, or -- and a command, or --job, or --all: stoker watch 4242, or "
        "stoker watch -- python train.py",
        "watch");
  if (o.all && !o.output.empty())
    return fail(ErrorCode::kUsage, "records one job; give its process id instead of --all",
                "--output");
  if (o.all && !o.html.empty())
    return fail(ErrorCode::kUsage, "is of one job; give its process id instead of --all", "--html");
  if (!o.fail_below.empty()) TRY(share_of(o.fail_below));
  if (!o.against.empty()) TRY(check_against(o.against));
  // Before a command is started that takes hours.
  if (std::error_code ignored; !o.output.empty() && std::filesystem::exists(o.output, ignored))
    return fail(ErrorCode::kIo, std::string(kNeverOver), o.output);
  catch_interrupts();
  if (o.all) return watch_all(o);
  if (!o.job.empty()) return watch_slurm_job(o);
  if (o.command.empty()) {
    const auto pid = whole_number(o.pid);
    if (!pid || *pid <= 0)
      return fail(
          ErrorCode::kUsage,
          "is no process id; to start a command write -- before it: stoker watch -- " + o.pid,
          "\"" + o.pid + "\"");
    return watch_processes(o, {*pid}, nullptr);
  }
  Launched launched = TRY(
      Launched::start(o.command, o.json ? CommandOutput::kToErrors : CommandOutput::kInherited));
  const Result<int> watched = watch_processes(o, {launched.pid()}, &launched);
  const int code = launched.wait();
  if (!watched && watched.error().code == ErrorCode::kIo) return watched;
  if (!watched) {
    say(stderr,
        "stoker: \"" + printable(o.command.front()) + "\" ended before anything could be seen\n");
    return code;
  }
  return code != 0 ? code : *watched;
}

}  // namespace

Command watch_command() {
  auto o = std::make_shared<WatchArguments>();
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
           {"all", &o->all},
           {"job", &o->job},
           {"plain", &o->plain},
           {"fail-below", &o->fail_below},
           {"against", &o->against},
           {"all-findings", &o->all_findings},
           {"html", &o->html},
           {"json", &o->json}},
          [o] { return run_watch(*o); },
          &o->command};
}

}  // namespace stoker::cli
