#include "study/executor/local.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

#include "base/files.h"
#include "base/text.h"
#include "study/executor/outcome.h"
#include "system/clocks.h"
#include "system/system_files.h"

extern char** environ;

namespace stoker::study {
namespace fs = std::filesystem;
namespace {

constexpr double kLookSeconds = 0.2;  // how often claims of adopted trials are looked at

class LocalExecutor final : public Executor {
 public:
  LocalExecutor(Capacity capacity, Launch launch)
      : slots_(std::move(capacity)), launch_(std::move(launch)) {}

  [[nodiscard]] std::optional<std::string> impossible(const Needs& needs) const override {
    return slots_.impossible(needs);
  }
  [[nodiscard]] bool has_room(const Needs& needs) const override { return slots_.has_room(needs); }

  Result<std::string> start(std::int64_t trial, const TrialFiles& files,
                            const TrialSpec& spec) override {
    auto slot = slots_.take(spec.needs);
    if (!slot) return fail(ErrorCode::kIo, "there is no room for another trial");
    TrialSpec full = spec;
    full.cores = slot->cores;
    if (!slots_.capacity().gpus.empty() || !slot->gpus.empty()) {
      std::string visible;
      for (const std::string& gpu : slot->gpus) visible += (visible.empty() ? "" : ",") + gpu;
      full.environment.emplace_back("CUDA_VISIBLE_DEVICES", visible);
    }
    auto written = write_spec(files, full);
    auto process = written ? launch_(files) : Result<pid_t>(tl::unexpected(written.error()));
    if (!process) {
      slots_.give_back(*slot);
      return tl::unexpected(process.error());
    }
    trials_[trial] = {files, std::move(*slot), *process};
    return std::to_string(*process);
  }

  void adopt(const TrialRow& row, const TrialFiles& files, const Needs& needs) override {
    Slot slot;
    // What it was given stands in its spec.
    if (const auto text = read_file(files.spec(), Bytes(16LL << 20))) {
      if (const auto spec = parse_spec(*text, files.spec().string())) {
        slot.cores = spec->cores;
        for (const auto& [name, value] : spec->environment) {
          if (name == "CUDA_VISIBLE_DEVICES" && !value.empty()) slot.gpus = split(value, ',');
        }
      }
    }
    slot.memory_bytes = needs.memory_bytes;
    slots_.take_again(slot);
    trials_[row.id] = {files, std::move(slot), 0};
    next_look_ = 0;
  }

  Result<std::vector<TrialNews>> news(double wait_seconds) override {
    std::vector<TrialNews> all = collect();
    if (!all.empty()) return all;
    const double until = seconds(wall_time()) + wait_seconds;
    do {
      const double wait = std::clamp(until - seconds(wall_time()), 0.0, kLookSeconds);
      wait_for_child(wait);
      all = collect();
    } while (all.empty() && seconds(wall_time()) < until && !interrupted());
    return all;
  }

  void cancel_all() override {
    for (const auto& [id, trial] : trials_) {
      const int runner = trial.process > 0 ? trial.process : Claim::owner(trial.files).process;
      if (runner > 0) kill(runner, SIGTERM);
    }
  }

 private:
  struct Trial {
    TrialFiles files;
    Slot slot;
    pid_t process = 0;  ///< of the runner; 0: another controller's child
  };

  static sigset_t watched() {
    sigset_t set;
    sigemptyset(&set);
    for (const int number : {SIGCHLD, SIGINT, SIGTERM}) sigaddset(&set, number);
    return set;
  }

  /// SIGCHLD is blocked by the controller, and so waits here.
  static void wait_for_child(double seconds) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    timespec time{};
    time.tv_sec = static_cast<time_t>(seconds);
    time.tv_nsec = static_cast<long>((seconds - static_cast<double>(time.tv_sec)) * 1e9);
    sigtimedwait(&set, nullptr, &time);
  }

  static bool interrupted() {
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1;
  }

  std::vector<TrialNews> collect() {
    std::vector<TrialNews> all;
    int status = 0;
    pid_t process = 0;
    while ((process = waitpid(-1, &status, WNOHANG)) > 0) {
      const auto found = std::ranges::find_if(
          trials_, [&](const auto& entry) { return entry.second.process == process; });
      if (found != trials_.end()) settle(found->first, all);
    }
    if (seconds(wall_time()) < next_look_) return all;
    next_look_ = seconds(wall_time()) + kLookSeconds;
    std::vector<std::int64_t> adopted;
    for (const auto& [id, trial] : trials_) {
      if (trial.process == 0) adopted.push_back(id);
    }
    for (const std::int64_t id : adopted) look(id, all);
    return all;
  }

  /// An adopted trial: its claim tells whether its runner lives.
  void look(std::int64_t id, std::vector<TrialNews>& all) {
    const Claim::Found found = Claim::look(trials_.at(id).files);
    if (found == Claim::Found::kHeld || found == Claim::Found::kUnknown) return;
    settle(id, all);
  }

  /// Its runner is gone, or never was.
  void settle(std::int64_t id, std::vector<TrialNews>& all) {
    Trial& trial = trials_.at(id);
    auto news = settle_trial(id, trial.files, trial.process != 0);
    if (!news) {  // the folder cannot be read at present: looked at again
      trial.process = 0;
      return;
    }
    if (news->result.cause == "lost") end_left_behind(trial.files);
    slots_.give_back(trial.slot);
    all.push_back(std::move(*news));
    trials_.erase(id);
  }

  Slots slots_;
  Launch launch_;
  std::map<std::int64_t, Trial> trials_;
  double next_look_ = 0;
};

}  // namespace

std::unique_ptr<Executor> local_executor(Capacity capacity, Launch launch) {
  return std::make_unique<LocalExecutor>(std::move(capacity), std::move(launch));
}

Launch own_runner() {
  return [](const TrialFiles& files) -> Result<pid_t> {
    const std::string folder = files.folder.string(), log = (files.folder / "runner.log").string();
    const pid_t process = fork();
    if (process < 0)
      return fail(ErrorCode::kIo, std::string("no process can be made: ") + std::strerror(errno));
    if (process > 0) return process;
    setsid();
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    const int nothing = open("/dev/null", O_RDWR);
    const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, S_IRUSR | S_IWUSR);
    dup2(nothing, STDIN_FILENO);
    dup2(file >= 0 ? file : nothing, STDOUT_FILENO);
    dup2(file >= 0 ? file : nothing, STDERR_FILENO);
    execl("/proc/self/exe", "stoker", "run-trial", folder.c_str(), nullptr);
    _exit(127);
  };
}

int end_left_behind(const TrialFiles& files) {
  std::error_code error;
  const std::string mark = "STOKER_TRIAL_FOLDER=" + files.folder.string();
  int count = 0;
  for (const std::string& name : system_folders()("/proc")) {
    const auto process = whole_number(name);
    if (!process || *process == getpid()) continue;
    const auto text = system_files()("/proc/" + name + "/environ");
    if (!text) continue;
    const auto at = text->find(mark);
    if (at == std::string::npos || (at > 0 && (*text)[at - 1] != '\0')) continue;
    if (at + mark.size() < text->size() && (*text)[at + mark.size()] != '\0') continue;
    if (kill(static_cast<pid_t>(*process), SIGKILL) == 0) ++count;
  }
  return count;
}

}  // namespace stoker::study
