#include "study/runner/run_trial.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>

#include "base/disk_room.h"
#include "base/files.h"
#include "base/text.h"
#include "study/runner/bounded_output.h"
#include "study/runner/child_process.h"
#include "study/runner/failure_cause.h"
#include "study/runner/metric_reader.h"
#include "study/runner/report_tail.h"
#include "study/runner/result_file.h"
#include "study/runner/usage.h"
#include "study/trial/trial_spec.h"
#include "system/cgroup.h"

namespace stoker::study {
namespace {

constexpr Bytes kLargestSpec{16LL << 20};
constexpr double kTickSeconds = 0.5;
constexpr Bytes kLargestReason{4096};
/// Reports after a request to stop: one may have been on its way, a second has not heard of it.
constexpr std::int64_t kReportsToHear = 2;
constexpr double kMicro = 1e-6;
/// Least room on a disk that takes a report: a block of a file system.
constexpr Bytes kRoomForReports{4096};

double clock_now(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * kMicro;
}

/// How often the kernel ended a process of this cgroup for want of memory.
std::int64_t kernel_kills() {
  const SystemFiles files = system_files();
  return memory_kills(cgroup_folders("memory", files), files);
}

/// Whether a report of a line would find no room there.
bool is_full(const std::filesystem::path& folder) {
  const auto room = room_on_disk(folder);
  return room && *room < kRoomForReports;
}

/// One trial from its start to its result.
class Runner {
 public:
  Runner(const TrialFiles& files, TrialSpec spec, const Claim& claim, Echo echo)
      : files_(files),
        spec_(std::move(spec)),
        claim_(claim),
        result_file_(files.result()),
        output_(files.output(), spec_.output_bytes, echo.output),
        errors_(files.errors(), spec_.output_bytes, echo.errors),
        reports_(files.reports()),
        metrics_(spec_.metrics) {}

  Status run() {
    block_signals();
    prctl(PR_SET_CHILD_SUBREAPER, 1);  // what forks away stays below this process
    result_.host = host_name();
    result_.started = clock_now(CLOCK_REALTIME);
    started_ = clock_now(CLOCK_MONOTONIC);
    kills_before_ = kernel_kills();
    auto child = start_child(options());
    if (!child) {
      result_.state = TrialState::kFailed;
      result_.cause = "no_command";
      result_.reason = child.error().message;
      return write();
    }
    child_ = *child;
    claim_.note_group(child_.process);
    follow();
    end_descendants();
    drain();
    judge();
    return write();
  }

 private:
  [[nodiscard]] double elapsed() const { return clock_now(CLOCK_MONOTONIC) - started_; }

  void block_signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGQUIT, SIGCHLD})
      sigaddset(&set, number);
    sigprocmask(SIG_BLOCK, &set, nullptr);
    signal(SIGPIPE, SIG_IGN);
    signals_ = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  }

  [[nodiscard]] ChildOptions options() const {
    ChildOptions options{spec_.words, spec_.environment, spec_.folder, spec_.cores};
    options.environment.emplace_back("STOKER_TRIAL", std::to_string(spec_.trial));
    options.environment.emplace_back("STOKER_TRIAL_FOLDER", files_.folder.string());
    options.environment.emplace_back("STOKER_REPORTS", files_.reports().string());
    const bool named = std::ranges::any_of(
        spec_.environment, [](const auto& one) { return one.first == "STOKER_CHECKPOINT_DIR"; });
    if (!named && !spec_.checkpoints.empty())
      options.environment.emplace_back("STOKER_CHECKPOINT_DIR",
                                       (files_.folder.parent_path() / spec_.checkpoints).string());
    // Where stoker.observe_step writes, unless the user names another file.
    if (std::getenv("STOKER_OBSERVATION") == nullptr)
      options.environment.emplace_back("STOKER_OBSERVATION",
                                       (files_.folder / "steps.obs.jsonl").string());
    return options;
  }

  void follow() {
    double next_tick = kTickSeconds, next_heartbeat = spec_.heartbeat_seconds;
    while (!ended_) {
      pollfd watched[3] = {
          {child_.output, POLLIN, 0}, {child_.errors, POLLIN, 0}, {signals_, POLLIN, 0}};
      const double wait = std::clamp(next_event(next_tick) - elapsed(), 0.0, 60.0);
      poll(watched, 3, static_cast<int>(wait * 1000) + 1);
      take_signals();
      read_from(child_.output, output_, output_lines_);
      read_from(child_.errors, errors_, error_lines_);
      reap();
      if (ended_) return;
      if (elapsed() >= next_tick) {
        tick();
        next_tick = elapsed() + kTickSeconds;
      }
      if (elapsed() >= next_heartbeat) {
        heartbeat();
        next_heartbeat = elapsed() + spec_.heartbeat_seconds;
      }
      hold_to_limits();
    }
  }

  [[nodiscard]] double next_event(double tick) const {
    double next = tick;
    if (spec_.needs.seconds > 0 && ending_.empty()) next = std::min(next, spec_.needs.seconds);
    if (kill_at_ > 0) next = std::min(next, kill_at_);
    return next;
  }

  void take_signals() {
    signalfd_siginfo info{};
    while (read(signals_, &info, sizeof info) == sizeof info) {
      const int number = static_cast<int>(info.ssi_signo);
      if (number == SIGCHLD) continue;
      if (number == SIGTERM || number == SIGINT || number == SIGQUIT || number == SIGHUP) {
        begin_end("cancelled", number);
      } else if (number == SIGUSR1) {
        begin_end("time_limit", SIGTERM);
      } else {
        kill(-child_.process, number);
      }
    }
  }

  void begin_end(const std::string& why, int number) {
    if (!ending_.empty() && kill_at_ > 0) {
      if (number != SIGTERM) kill_at_ = elapsed();  // asked twice
      return;
    }
    ending_ = why;
    kill(-child_.process, number);
    kill_at_ = elapsed() + spec_.needs.grace_seconds;
  }

  void hold_to_limits() {
    if (ending_.empty() && spec_.needs.seconds > 0 && elapsed() >= spec_.needs.seconds)
      begin_end("time_limit", SIGTERM);
    if (ending_.empty() && spec_.needs.memory_bytes > 0 && resident_ > spec_.needs.memory_bytes) {
      ending_ = "memory_limit";
      over_by_ = resident_;
      kill(-child_.process, SIGKILL);
    }
    if (kill_at_ > 0 && elapsed() >= kill_at_) {
      kill(-child_.process, SIGKILL);
      kill_at_ = elapsed() + 1;
    }
  }

  void tick() {
    // Not before the first tick: what ends within a moment costs nothing to watch.
    if (!usage_.runs()) usage_.start(child_.process, started_, given_gpus());
    resident_ = resident_bytes(descendants(getpid()));
    peak_ = std::max(peak_, resident_);
    disk_was_full_ = disk_was_full_ || is_full(files_.folder);
    read_reports();
    look_for_stop();
  }

  [[nodiscard]] std::set<std::int64_t> given_gpus() const {
    if (spec_.needs.gpus == 0) return {};
    for (const auto& [name, value] : spec_.environment) {
      if (name == "CUDA_VISIBLE_DEVICES") return gpu_numbers(value);
    }
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");  // of the batch system
    return visible == nullptr ? std::set<std::int64_t>() : gpu_numbers(visible);
  }

  void read_reports() {
    reports_.read([this](std::string_view line) {
      ++reports_read_;
      metrics_.report(line, started_);
    });
  }

  void read_stop() {
    const auto reason = read_file(files_.stop(), kLargestReason);
    if (!reason) return;
    stop_reason_ = trimmed(*reason);
    stop_asked_at_ = elapsed();
    reports_at_stop_ = reports_read_;
  }

  /// A stop file asks that the command ends. A loop that reads what stoker.report returns saves
  /// what it wants to save and leaves by itself; one that reports on, or never did, is signalled.
  void look_for_stop() {
    if (!stop_asked_at_) read_stop();
    if (!stop_asked_at_ || !ending_.empty()) return;
    const bool deaf = reports_read_ == 0 || reports_read_ >= reports_at_stop_ + kReportsToHear;
    if (deaf || elapsed() - *stop_asked_at_ >= spec_.needs.grace_seconds)
      begin_end("stopped", SIGTERM);
  }

  void heartbeat() {
    const std::string text = std::to_string(clock_now(CLOCK_REALTIME)) + " " +
                             std::to_string(elapsed()) + " " + std::to_string(resident_) + "\n";
    const int file = open(files_.heartbeat().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
                          S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH);
    if (file < 0) return;
    [[maybe_unused]] const ssize_t ignored = ::write(file, text.data(), text.size());
    close(file);
  }

  void read_from(int& from, BoundedOutput& to, LineSplitter& lines) {
    if (from < 0) return;
    char block[65536];
    // Some blocks at a time: a command that writes without end must not keep limits from it.
    for (int i = 0; i < 16; ++i) {
      const ssize_t count = read(from, block, sizeof block);
      if (count < 0 && errno == EINTR) continue;
      if (count == 0) {
        close(from);
        from = -1;
      }
      if (count <= 0) return;
      const std::string_view bytes(block, static_cast<std::size_t>(count));
      to.write(bytes);
      lines.write(bytes, [this](std::string_view line) { metrics_.output(line, elapsed()); });
    }
  }

  void reap() {
    int status = 0;
    rusage usage{};
    pid_t process = 0;
    while ((process = wait4(-1, &status, WNOHANG, &usage)) > 0) {
      if (process != child_.process) continue;
      ended_ = true;
      status_ = status;
      result_.wall_s = elapsed();
      result_.ended = clock_now(CLOCK_REALTIME);
    }
  }

  /// What the command left behind ends with it: workers, and what forked away.
  void end_descendants() {
    kill(-child_.process, SIGKILL);
    // Orphans of the command are children of this process, which usually has none.
    if (waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD) return;
    for (int round = 0; round < 20; ++round) {
      const auto left = descendants(getpid());
      if (left.empty()) break;
      if (round == 0) left_behind_ = left.size();
      for (const pid_t process : left) kill(process, SIGKILL);
      for (int i = 0; i < 50 && waitpid(-1, nullptr, WNOHANG) >= 0; ++i) usleep(1000);
    }
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
  }

  void drain() {
    for (int i = 0; i < 64; ++i) {  // at most what a pipe holds
      read_from(child_.output, output_, output_lines_);
      read_from(child_.errors, errors_, error_lines_);
      if (child_.output < 0 && child_.errors < 0) break;
      if (i > 0) break;
    }
    output_lines_.finish([this](std::string_view line) { metrics_.output(line, elapsed()); });
    error_lines_.finish([this](std::string_view line) { metrics_.output(line, elapsed()); });
    output_.finish();
    errors_.finish();
    read_reports();
  }

  void judge() {
    rusage usage{};
    getrusage(RUSAGE_CHILDREN, &usage);
    auto& r = result_.resources;
    r["cpu_s"] = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
    if (result_.wall_s > 0) r["cpu_cores"] = r["cpu_s"] / result_.wall_s;
    r["peak_bytes"] = std::max(static_cast<double>(peak_), 1024.0 * usage.ru_maxrss);
    r["read_bytes"] = 512.0 * static_cast<double>(usage.ru_inblock);
    r["written_bytes"] = 512.0 * static_cast<double>(usage.ru_oublock);
    disk_was_full_ = disk_was_full_ || is_full(files_.folder);
    if (disk_was_full_) r["disk_full"] = 1;
    if (left_behind_ > 0) r["left_behind"] = static_cast<double>(left_behind_);
    if (const auto lost = output_.lost() + errors_.lost(); lost > 0)
      r["output_lost_bytes"] = static_cast<double>(lost);
    if (const UsageSeries* seen = usage_.stop(); seen != nullptr) {
      const auto cores = static_cast<double>(
          spec_.cores.empty() ? spec_.needs.cores : static_cast<int>(spec_.cores.size()));
      for (const auto& [name, value] : seen->figures(metrics_.steady_window(), cores))
        r[name] = value;
    }
    result_.metrics = metrics_.values();
    result_.points = metrics_.points();
    result_.tail = last_lines(errors_.tail().empty() ? output_.tail() : errors_.tail());
    if (WIFEXITED(status_)) result_.exit_code = WEXITSTATUS(status_);
    if (WIFSIGNALED(status_)) result_.signal = WTERMSIG(status_);
    name_cause();
  }

  void set(TrialState state, std::string cause, std::string reason) {
    result_.state = state;
    result_.cause = std::move(cause);
    result_.reason = std::move(reason);
  }

  void name_cause() {
    const bool well = result_.exit_code == 0;
    // A loop that looks at what stoker.report returns may have left before the next tick.
    if (well && !stop_asked_at_) read_stop();
    if (ending_ == "stopped" || (well && ending_.empty() && stop_asked_at_))
      return set(TrialState::kDone, "stopped", stop_reason_);
    if (well && ending_.empty()) return judge_metrics();
    if (ending_ == "time_limit")
      return set(
          TrialState::kTimedOut, "time_limit",
          "reached its time limit" + (spec_.needs.seconds > 0
                                          ? " of " + human_time(Nanos(spec_.needs.seconds * 1e9))
                                          : std::string()));
    if (ending_ == "memory_limit")
      return set(TrialState::kOutOfMemory, "memory_limit",
                 "used " + human_bytes(Bytes(over_by_)) + " of its " +
                     human_bytes(Bytes(spec_.needs.memory_bytes)));
    if (ending_ == "cancelled") return set(TrialState::kCancelled, "cancelled", "was cancelled");
    auto memory = out_of_memory_in(errors_.tail());
    if (!memory) memory = out_of_memory_in(output_.tail());
    if (memory) {
      for (const auto& [name, value] : memory->figures) result_.resources[name] = value;
      return set(TrialState::kOutOfMemory, memory->cause, memory->reason);
    }
    const bool killed = result_.signal == SIGKILL || result_.exit_code == 128 + SIGKILL;
    if (killed && kernel_kills() > kills_before_)
      return set(TrialState::kOutOfMemory, "host_out_of_memory",
                 "the kernel ended it: the memory of this machine or container was full");
    auto full = disk_full_in(errors_.tail());
    if (!full) full = disk_full_in(output_.tail());
    if (full) return set(TrialState::kFailed, "disk_full", *full);
    const std::string line = error_line(errors_.tail().empty() ? output_.tail() : errors_.tail());
    if (result_.signal)
      return set(TrialState::kFailed, "signal",
                 "ended by " + signal_words(static_cast<int>(*result_.signal)));
    set(TrialState::kFailed, "exit_code",
        "exit code " + std::to_string(*result_.exit_code) + (line.empty() ? "" : ": " + line) +
            std::string(cure_of(line)));
  }

  void judge_metrics() {
    result_.state = TrialState::kDone;
    const auto problem = metrics_.problem();
    if (!problem) return;
    if (problem->cause == "metric_absent" && disk_was_full_)
      return set(TrialState::kFailed, "disk_full",
                 "the disk of its folder was full: what it reported may be lost");
    // A loss that diverged is what the trial found out; one that never came is a mistake.
    const bool failed = problem->cause != "metric_not_finite";
    set(failed ? TrialState::kFailed : TrialState::kDone, problem->cause, problem->reason);
  }

  Status write() {
    if (result_.ended == 0) result_.ended = clock_now(CLOCK_REALTIME);
    // A full disk or a shared folder that is gone for a while need not cost the result.
    Status done = result_file_.write(result_);
    for (int i = 0; i < 30 && !done; ++i) {
      usleep(100'000);
      done = result_file_.write(result_);
    }
    return done;
  }

  const TrialFiles& files_;
  TrialSpec spec_;
  const Claim& claim_;
  ResultFile result_file_;
  BoundedOutput output_, errors_;
  LineSplitter output_lines_, error_lines_;
  ReportTail reports_;
  MetricReader metrics_;
  UsageWatch usage_;
  TrialResult result_;
  Child child_;
  double started_ = 0, kill_at_ = 0;
  int signals_ = -1, status_ = 0;
  bool ended_ = false;
  std::string ending_;
  std::int64_t resident_ = 0, peak_ = 0, over_by_ = 0, kills_before_ = 0;
  std::int64_t reports_read_ = 0, reports_at_stop_ = 0;
  bool disk_was_full_ = false;  ///< where the trial's folder lies: reports may be missing
  std::optional<double> stop_asked_at_;
  std::string stop_reason_;
  std::size_t left_behind_ = 0;
};

}  // namespace

Result<TrialRun> run_trial(const TrialFiles& files, Echo echo) {
  const std::string text = TRY(read_file(files.spec(), kLargestSpec));
  TrialSpec spec = TRY(parse_spec(text, files.spec().string()));
  const auto claim = TRY(Claim::take(files));
  if (!claim) return TrialRun::kClaimed;
  Runner runner(files, std::move(spec), *claim, echo);
  TRY(runner.run());
  return TrialRun::kEnded;
}

}  // namespace stoker::study
