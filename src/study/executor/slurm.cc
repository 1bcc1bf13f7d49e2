#include "study/executor/slurm.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <ctime>
#include <fstream>

#include "base/files.h"
#include "base/text.h"
#include "study/definition/duration.h"
#include "study/definition/template.h"
#include "study/executor/outcome.h"
#include "study/executor/program.h"
#include "system/clocks.h"
#include "system/system_files.h"

namespace stoker::study {
namespace fs = std::filesystem;
namespace {

/// Looks at a trial whose job is gone before it is given up: shared folders show files late.
constexpr int kLooksBeforeLost = 3;
/// Looks at a job that its runner has ended and that Slurm has not: only then it says why.
constexpr int kLooksBeforeUnexplained = 20;
constexpr double kSlurmMargin = 60;  // beyond the runner's own limit, in seconds

/// How a job's end by Slurm reads as a trial's; nothing of a job that simply ended.
struct EndMeaning {
  std::string_view state;
  TrialState trial;
  std::string_view cause, words;
};
constexpr EndMeaning kEnds[] = {
    {"TIMEOUT", TrialState::kTimedOut, "time_limit", "reached Slurm's time limit"},
    {"DEADLINE", TrialState::kTimedOut, "time_limit", "reached its deadline in Slurm"},
    {"OUT_OF_MEMORY", TrialState::kOutOfMemory, "host_out_of_memory",
     "Slurm ended it: it used more memory than it had asked for"},
    {"NODE_FAIL", TrialState::kFailed, "node_failure", "its node failed"},
    {"BOOT_FAIL", TrialState::kFailed, "node_failure", "its node did not start"},
    {"PREEMPTED", TrialState::kFailed, "preempted", "Slurm gave its place to another job"},
    {"CANCELLED", TrialState::kCancelled, "cancelled", "its job was cancelled"},
};

class SlurmExecutor final : public Executor {
 public:
  explicit SlurmExecutor(SlurmSettings settings) : settings_(std::move(settings)) {}

  [[nodiscard]] std::optional<std::string> impossible(const Needs& /*needs*/) const override {
    return std::nullopt;  // Slurm knows, and says so when it is asked
  }
  [[nodiscard]] bool has_room(const Needs& /*needs*/) const override { return true; }

  Result<std::string> start(std::int64_t trial, const TrialFiles& files,
                            const TrialSpec& spec) override {
    TRY(write_spec(files, spec));
    gathered_.push_back({trial, files, spec.needs});
    return std::string();
  }

  Status flush() override {
    while (!gathered_.empty()) {
      const Needs needs = gathered_.front().needs;
      const auto same =
          std::stable_partition(gathered_.begin(), gathered_.end(),
                                [&](const Gathered& g) { return !(g.needs == needs); });
      const std::vector<Gathered> group(same, gathered_.end());
      gathered_.erase(same, gathered_.end());
      TRY(submit(group));
    }
    return {};
  }

  std::vector<std::pair<std::int64_t, std::string>> take_names() override {
    return std::move(names_);
  }

  void adopt(const TrialRow& row, const TrialFiles& files, const Needs& needs) override {
    trials_[row.id] = {files, row.job, needs.seconds, row.state == TrialState::kRunning};
  }

  Result<std::vector<TrialNews>> news(double wait_seconds) override {
    const double until = seconds(wall_time()) + wait_seconds;
    if (next_look_ > until) {
      usleep(static_cast<useconds_t>(wait_seconds * 1e6));
      return std::vector<TrialNews>();
    }
    if (const double wait = next_look_ - seconds(wall_time()); wait > 0)
      usleep(static_cast<useconds_t>(wait * 1e6));
    if (take_back_again_) take_back();
    next_look_ = seconds(wall_time()) + settings_.poll_seconds;
    const auto answer = run_program({"squeue", "-h", "-r", "--me", "-o", "%i|%T|%r|%N"});
    // A controller of Slurm's that restarts says nothing for a while; trials go on meanwhile.
    const bool told = answer && answer->code == 0;
    const auto jobs = told ? parse_squeue(answer->output) : std::map<std::string, SlurmJob>();
    std::vector<TrialNews> all;
    std::vector<std::int64_t> ids;
    for (const auto& [id, trial] : trials_) ids.push_back(id);
    for (const std::int64_t id : ids) look(id, jobs, told, all);
    return all;
  }

  void take_back() override {
    take_back_again_ = false;
    std::vector<std::string> words{"scancel", "--state=PENDING"};
    for (auto& [id, trial] : trials_) {
      if (trial.job.empty() || trial.running) continue;
      trial.taken_back = true;
      words.push_back(trial.job);
    }
    if (words.size() == 2) return;
    const auto answer = run_program(words);
    take_back_again_ = !answer || answer->code != 0;
    next_look_ = 0;
  }

  void cancel_all() override {
    cancelling_ = true;
    std::vector<std::string> pending{"scancel", "--state=PENDING"};
    std::vector<std::string> running{"scancel", "--batch", "--signal=TERM"};
    for (const auto& [id, trial] : trials_) {
      if (trial.job.empty()) continue;
      pending.push_back(trial.job);
      running.push_back(trial.job);
    }
    if (pending.size() == 2) return;
    [[maybe_unused]] const auto first = run_program(pending);
    [[maybe_unused]] const auto second = run_program(running);
    next_look_ = 0;
  }

 private:
  struct Gathered {
    std::int64_t trial;
    TrialFiles files;
    Needs needs;
  };
  struct Trial {
    TrialFiles files;
    std::string job;
    double limit_seconds = 0;  ///< the runner's own; 0: none
    bool running = false;
    bool taken_back = false;  ///< out of the queue, if it had not begun
    int looks_without_job = 0, looks_unexplained = 0;
  };

  /// A list of folders and a script that runs the one of its task.
  Status submit(const std::vector<Gathered>& group) {
    const std::string base = "array-" + std::to_string(group.front().trial) + "-" +
                             std::to_string(group.back().trial) + "-" + std::to_string(getpid());
    const fs::path list = settings_.folder / (base + ".list");
    const fs::path script = settings_.folder / (base + ".sh");
    std::string folders;
    for (const Gathered& one : group) folders += one.files.folder.string() + "\n";
    TRY(write_file(list, folders));
    TRY(write_file(script, "#!/bin/sh\n" + settings_.options.prologue + "\nexec " +
                               shell_quoted(settings_.program) +
                               " run-trial \"$(sed -n \"${SLURM_ARRAY_TASK_ID}p\" " +
                               shell_quoted(list.string()) + ")\"\n"));
    const auto answer = TRY(run_program(sbatch_words(settings_.options, group.front().needs,
                                                     settings_.name, script, group.size())));
    if (answer.code != 0) {
      const std::string said(trimmed(answer.errors));
      return fail(ErrorCode::kBadInput, "Slurm refused the trials: " + said, "sbatch");
    }
    const std::string job(trimmed(answer.output.substr(0, answer.output.find(';'))));
    for (std::size_t i = 0; i < group.size(); ++i) {
      const std::string task = job + "_" + std::to_string(i + 1);
      trials_[group[i].trial] = {group[i].files, task, group[i].needs.seconds};
      names_.emplace_back(group[i].trial, task);
    }
    return {};
  }

  void look(std::int64_t id, const std::map<std::string, SlurmJob>& jobs, bool told,
            std::vector<TrialNews>& all) {
    Trial& trial = trials_.at(id);
    std::error_code error;
    if (fs::exists(trial.files.result(), error)) return settle(id, all);
    if (!told) return;
    const auto found = jobs.find(trial.job);
    if (found != jobs.end()) {
      trial.looks_without_job = 0;
      if (found->second.state != "RUNNING" || trial.running) return;
      trial.running = true;
      all.push_back({id, TrialNews::Kind::kRunning, {}, found->second.nodes, {}});
      return;
    }
    // Submitted by a controller that died before it wrote the job down: whoever runs it holds the
    // claim, and if nobody has it yet, nobody will.
    if (trial.job.empty() && Claim::look(trial.files) == Claim::Found::kHeld) return;
    if (trial.taken_back || ++trial.looks_without_job >= kLooksBeforeLost) settle(id, all);
  }

  void settle(std::int64_t id, std::vector<TrialNews>& all) {
    Trial& trial = trials_.at(id);
    auto news = settle_trial(id, trial.files, !trial.job.empty() && !trial.taken_back);
    if (!news) return;
    if (news->kind == TrialNews::Kind::kEnded && leaves_open_why(trial, news->result) &&
        !explain(trial, *news) && ++trial.looks_unexplained < kLooksBeforeUnexplained)
      return;
    all.push_back(std::move(*news));
    trials_.erase(id);
  }

  /// Where Slurm itself ends a job (preemption, a node that is taken, its time limit), runner and
  /// command are told to end and know no more than that.
  [[nodiscard]] bool leaves_open_why(const Trial& trial, const TrialResult& result) const {
    const bool told =
        result.state == TrialState::kCancelled ||
        (result.cause == "signal" && (result.signal == SIGTERM || result.signal == SIGKILL));
    const bool early = result.cause == "time_limit" &&
                       (trial.limit_seconds == 0 || result.wall_s < trial.limit_seconds);
    return result.cause == "lost" || early || (told && !cancelling_);
  }

  /// Slurm knows why a job left no result, or was told to end. False: it does not say yet.
  static bool explain(const Trial& trial, TrialNews& news) {
    SlurmEnd end;
    if (const auto shown = run_program({"scontrol", "show", "job", "-o", trial.job});
        shown && shown->code == 0)
      end = parse_job_end(shown->output);
    if (end.state.empty()) {
      const auto counted = run_program({"sacct", "-n", "-X", "-P", "-j", trial.job, "-o", "State"});
      if (counted && counted->code == 0) end = parse_job_end(counted->output);
    }
    // A job that gave way while it was told of its end, or was put back, is not always called so.
    const std::string state = end.preempted ? "PREEMPTED" : end.state;
    TrialResult& result = news.result;
    for (const EndMeaning& meaning : kEnds) {
      if (meaning.state != state) continue;
      result.state = meaning.trial;
      result.cause = meaning.cause;
      result.reason = meaning.words;
      return true;
    }
    if (end.restarts > 0) {
      // A job that was put back has forgotten why. It would find its trial taken and do nothing.
      if (result.cause != "lost") result.cause = "preempted";
      result.state = TrialState::kFailed;
      result.reason =
          "Slurm took its place and put its job back into the queue; the command is "
          "not run again unless asked for";
      [[maybe_unused]] const auto done = run_program({"scancel", trial.job});
      return true;
    }
    if (result.cause == "time_limit") {
      result.reason = "was told to end before Slurm's time limit";
    } else if (result.cause == "lost" && !state.empty()) {
      result.reason += " (Slurm's state of job " + trial.job + ": " + state + ")";
    }
    // A lost trial is not looked at again: what was asked of its claim was asked once.
    const bool ending = state == "COMPLETING" || state == "RUNNING";
    return !ending || result.cause == "lost";
  }

  SlurmSettings settings_;
  std::vector<Gathered> gathered_;
  std::map<std::int64_t, Trial> trials_;
  std::vector<std::pair<std::int64_t, std::string>> names_;
  double next_look_ = 0;
  bool cancelling_ = false;
  bool take_back_again_ = false;  ///< Slurm did not answer
};

}  // namespace

std::map<std::string, SlurmJob> parse_squeue(std::string_view text) {
  std::map<std::string, SlurmJob> jobs;
  for (const std::string& line : split(text, '\n')) {
    const auto cells = split(line, '|');
    if (cells.size() == 4) jobs[std::string(trimmed(cells[0]))] = {cells[1], cells[3], cells[2]};
  }
  return jobs;
}

SlurmEnd parse_job_end(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  const auto named = [&](std::string_view name) {
    const auto at = line.find(name);
    if (at == std::string_view::npos) return std::string_view();
    const std::string_view rest = line.substr(at + name.size());
    return rest.substr(0, rest.find(' '));
  };
  SlurmEnd end;
  const bool shown = line.find("JobState=") != std::string_view::npos;
  const std::string_view word = shown ? named("JobState=") : trimmed(line);
  end.state = word.substr(0, word.find_first_of(" +"));  // "CANCELLED by 0", "CANCELLED+"
  const std::string_view time = named(" PreemptTime=");
  end.preempted = time.starts_with("2");  // a date; else None, N/A or Unknown
  end.restarts = whole_number(named(" Restarts=")).value_or(0);
  return end;
}

std::vector<std::string> sbatch_words(const SlurmOptions& options, const Needs& needs,
                                      const std::string& name, const fs::path& script,
                                      std::size_t count) {
  std::vector<std::string> words{"sbatch",
                                 "--parsable",
                                 "--no-requeue",
                                 "--job-name=" + name,
                                 "--array=1-" + std::to_string(count),
                                 "--output=" + (script.parent_path() / "slurm-%A_%a.out").string()};
  const auto add = [&](const char* flag, const std::string& value) {
    if (!value.empty()) words.push_back(flag + value);
  };
  add("--partition=", options.partition);
  add("--account=", options.account);
  add("--constraint=", needs.constraint);
  add("--qos=", options.qos);
  if (needs.cores > 0) words.push_back("--cpus-per-task=" + std::to_string(needs.cores));
  if (needs.gpus > 0) words.push_back("--gres=gpu:" + std::to_string(needs.gpus));
  if (needs.memory_bytes > 0)
    words.push_back("--mem=" + std::to_string((needs.memory_bytes + (1 << 20) - 1) >> 20) + "M");
  if (needs.seconds > 0)
    words.push_back("--time=" + clock_text(needs.seconds + needs.grace_seconds + kSlurmMargin));
  // To the runner alone, in time for it to end the command and to write the result.
  words.push_back("--signal=B:USR1@" + std::to_string(static_cast<int>(needs.grace_seconds) + 30));
  words.insert(words.end(), options.options.begin(), options.options.end());
  words.push_back(script.string());
  return words;
}

Result<std::unique_ptr<Executor>> slurm_executor(SlurmSettings settings) {
  const auto there = run_program({"sbatch", "--version"});
  if (!there || there->code != 0)
    return fail(ErrorCode::kNotFound,
                "there is no sbatch here; log in to a machine of the cluster, or load its module",
                "--on slurm");
  std::error_code error;
  fs::create_directories(settings.folder, error);
  if (error)
    return fail(ErrorCode::kIo, "cannot be made: " + error.message(), settings.folder.string());
  return std::unique_ptr<Executor>(std::make_unique<SlurmExecutor>(std::move(settings)));
}

}  // namespace stoker::study
