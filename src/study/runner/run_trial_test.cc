#include "study/runner/run_trial.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "base/files.h"
#include "study/runner/child_process.h"
#include "study/trial/test_folder.h"
#include "study/trial/trial_result.h"
#include "study/trial/trial_spec.h"

namespace stoker::study {
namespace {

/// A trial of a shell's line, run in a process of its own as `stoker run-trial` runs it.
struct Trial {
  TestFolder folder;
  TrialFiles files{folder.path};
  TrialSpec spec;

  explicit Trial(const std::string& line) {
    spec.trial = 3;
    spec.words = {"/bin/sh", "-c", line};
    spec.needs.grace_seconds = 30;
  }

  pid_t start() const {
    std::ofstream(files.spec()) << spec_text(spec);
    const pid_t runner = fork();
    if (runner == 0) {
      const auto run = run_trial(files);
      _exit(!run ? 9 : *run == TrialRun::kEnded ? 0 : 7);
    }
    return runner;
  }
  static int wait(pid_t runner) {
    int status = 0;
    waitpid(runner, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  [[nodiscard]] TrialResult result() const {
    const auto text = read_file(files.result(), Bytes(1 << 20));
    EXPECT_TRUE(text.has_value());
    const auto result = parse_result(text.value_or(""), "result.json");
    EXPECT_TRUE(result.has_value());
    return result.value_or(TrialResult{});
  }
  TrialResult run() const {
    EXPECT_EQ(wait(start()), 0);
    return result();
  }
  /// Waits until a file is there: the command has come so far.
  void until(const char* name) const {
    for (int i = 0; i < 6000 && !std::filesystem::exists(folder.path / name); ++i) usleep(10'000);
  }
  [[nodiscard]] std::string content(const char* name) const {
    return read_file(folder.path / name, Bytes(1 << 24)).value_or("");
  }
};

TEST(RunTrial, OutputMetricsAndResourcesAreCollected) {
  Trial trial(
      "echo acc: 0.75; echo warn >&2; echo '{\"step\": 1, \"loss\": 0.5}' >> $STOKER_REPORTS;"
      "echo $STOKER_TRIAL $GREETING");
  trial.spec.environment = {{"GREETING", "hello"}};
  trial.spec.metrics = {{"accuracy", "acc: ([0-9.]+)"}, {"loss"}};
  const TrialResult r = trial.run();
  EXPECT_EQ(r.state, TrialState::kDone);
  EXPECT_EQ(r.cause, "");
  EXPECT_EQ(r.exit_code, 0);
  EXPECT_EQ(r.metrics, (std::map<std::string, double>{{"accuracy", 0.75}, {"loss", 0.5}}));
  EXPECT_EQ(trial.content("stdout.txt"), "acc: 0.75\n3 hello\n");
  EXPECT_EQ(trial.content("stderr.txt"), "warn\n");
  EXPECT_EQ(r.tail, "warn");
  EXPECT_GT(r.resources.at("peak_bytes"), 1e5);
  EXPECT_GT(r.ended, r.started - 1);
  EXPECT_FALSE(std::filesystem::exists(trial.files.result().string() + ".tmp"));
}

TEST(RunTrial, ATrialIsRunOnce) {
  const Trial trial("echo run >> ran");
  Trial again("x");
  TrialSpec spec = trial.spec;
  spec.folder = trial.folder.path;
  std::ofstream(trial.files.spec()) << spec_text(spec);
  const pid_t first = fork();
  if (first == 0)
    _exit(run_trial(trial.files).value_or(TrialRun::kClaimed) == TrialRun::kEnded ? 0 : 7);
  EXPECT_EQ(Trial::wait(first), 0);
  const pid_t second = fork();
  if (second == 0)
    _exit(run_trial(trial.files).value_or(TrialRun::kEnded) == TrialRun::kClaimed ? 7 : 0);
  EXPECT_EQ(Trial::wait(second), 7);
  EXPECT_EQ(trial.content("ran"), "run\n");
}

TEST(RunTrial, FailuresHaveNamedCauses) {
  TrialResult r = Trial("echo 'ValueError: bad shape' >&2; exit 3").run();
  EXPECT_EQ(r.state, TrialState::kFailed);
  EXPECT_EQ(r.cause, "exit_code");
  EXPECT_EQ(r.reason, "exit code 3: ValueError: bad shape");
  r = Trial("kill -SEGV $$").run();
  EXPECT_EQ(r.cause, "signal");
  EXPECT_EQ(r.reason, "ended by SIGSEGV (11)");
  EXPECT_EQ(r.signal, SIGSEGV);
  r = Trial(
          "echo 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.'; exit 1")
          .run();
  EXPECT_EQ(r.state, TrialState::kOutOfMemory);
  EXPECT_EQ(r.cause, "cuda_out_of_memory");
  EXPECT_EQ(r.resources.at("gpu_asked_bytes"), 2.0 * (1 << 30));
  Trial absent("true");
  absent.spec.metrics = {{"accuracy"}};
  r = absent.run();
  EXPECT_EQ(r.state, TrialState::kFailed);
  EXPECT_EQ(r.cause, "metric_absent");
  Trial diverged("echo loss nan");
  diverged.spec.metrics = {{"loss", "loss ([a-z0-9.]+)"}};
  r = diverged.run();
  EXPECT_EQ(r.state, TrialState::kDone);
  EXPECT_EQ(r.cause, "metric_not_finite");
  EXPECT_TRUE(r.metrics.empty());
}

TEST(RunTrial, ACommandThatCannotStartSaysWhy) {
  Trial trial("");
  trial.spec.words = {"/no/such/program"};
  TrialResult r = trial.run();
  EXPECT_EQ(r.cause, "no_command");
  EXPECT_EQ(r.reason, "\"/no/such/program\" cannot be started: No such file or directory");
  Trial elsewhere("true");
  elsewhere.spec.folder = "/no/such/folder";
  EXPECT_EQ(elsewhere.run().reason,
            "the folder /no/such/folder cannot be entered: No such file or directory");
}

TEST(RunTrial, TheTimeLimitEndsWhatIgnoresIt) {
  Trial trial("trap '' TERM; echo begun; while :; do sleep 0.05; done");
  trial.spec.needs.seconds = 0.3;
  trial.spec.needs.grace_seconds = 0.2;
  const TrialResult r = trial.run();
  EXPECT_EQ(r.state, TrialState::kTimedOut);
  EXPECT_EQ(r.cause, "time_limit");
  EXPECT_EQ(r.reason, "reached its time limit of 300 ms");
  EXPECT_EQ(r.signal, SIGKILL);
  EXPECT_EQ(trial.content("stdout.txt"), "begun\n");
}

TEST(RunTrial, ACommandMaySaveWhenItsTimeIsUp) {
  Trial trial("trap 'echo saved; exit 0' TERM; while :; do sleep 0.02; done");
  trial.spec.needs.seconds = 0.3;
  const TrialResult r = trial.run();
  EXPECT_EQ(r.state, TrialState::kTimedOut);
  EXPECT_EQ(r.exit_code, 0);
  EXPECT_EQ(trial.content("stdout.txt"), "saved\n");
}

TEST(RunTrial, SignalsArePassedOn) {
  Trial trial("");
  trial.spec.words[2] = "trap 'echo checkpoint' USR2; trap 'echo bye; exit 0' TERM; touch " +
                        (trial.folder.path / "ready").string() + "; while :; do sleep 0.02; done";
  pid_t runner = trial.start();
  trial.until("ready");
  kill(runner, SIGTERM);
  EXPECT_EQ(Trial::wait(runner), 0);
  EXPECT_EQ(trial.result().state, TrialState::kCancelled);
  EXPECT_EQ(trial.content("stdout.txt"), "bye\n");
}

TEST(RunTrial, TheWarningOfABatchSystemIsATimeLimit) {
  Trial trial("");
  trial.spec.words[2] = "trap 'echo saved; exit 0' TERM; touch " +
                        (trial.folder.path / "ready").string() + "; while :; do sleep 0.02; done";
  const pid_t runner = trial.start();
  trial.until("ready");
  kill(runner, SIGUSR1);
  EXPECT_EQ(Trial::wait(runner), 0);
  EXPECT_EQ(trial.result().state, TrialState::kTimedOut);
  EXPECT_EQ(trial.content("stdout.txt"), "saved\n");
}

TEST(RunTrial, MoreMemoryThanAllowedEndsIt) {
  // `tail` keeps the one endless line that it is given.
  Trial trial("head -c 400000000 /dev/zero | tail | sleep 30");
  trial.spec.needs.memory_bytes = 100 << 20;
  const TrialResult r = trial.run();
  EXPECT_EQ(r.state, TrialState::kOutOfMemory);
  EXPECT_EQ(r.cause, "memory_limit");
  EXPECT_NE(r.reason.find("of its 100.0 MiB"), std::string::npos) << r.reason;
}

TEST(RunTrial, WhatForksAwayEndsWithTheTrial) {
  Trial trial("");
  trial.spec.words[2] = "setsid sh -c 'echo $$ > " + (trial.folder.path / "pid").string() +
                        "; exec sleep 1000' & while [ ! -s " +
                        (trial.folder.path / "pid").string() + " ]; do sleep 0.01; done";
  const TrialResult r = trial.run();
  EXPECT_EQ(r.state, TrialState::kDone);
  EXPECT_EQ(r.resources.at("left_behind"), 1);
  const int left = std::stoi(trial.content("pid"));
  EXPECT_NE(kill(left, 0), 0);
}

TEST(RunTrial, ARunnerThatIsKilledTakesItsCommandAlong) {
  Trial trial("");
  trial.spec.words[2] = "echo $$ > " + (trial.folder.path / "pid").string() + "; exec sleep 1000";
  const pid_t runner = trial.start();
  trial.until("pid");
  while (trial.content("pid").empty()) usleep(1000);
  const int command = std::stoi(trial.content("pid"));
  while (Claim::owner(trial.files).group == 0) usleep(1000);
  kill(runner, SIGKILL);
  EXPECT_EQ(Trial::wait(runner), -SIGKILL);
  EXPECT_EQ(Claim::look(trial.files), Claim::Found::kLeft);
  EXPECT_EQ(Claim::owner(trial.files).group, command);
  for (int i = 0; i < 3000 && start_ticks(command) != 0; ++i) {
    waitpid(command, nullptr, WNOHANG);
    usleep(1000);
  }
  EXPECT_FALSE(std::filesystem::exists(trial.files.result()));
}

TEST(RunTrial, GigabytesOfBinaryAreBounded) {
  Trial trial("head -c 30000000 /dev/urandom; printf '\\nacc: 0.5\\n'");
  trial.spec.output_bytes = 1 << 20;
  trial.spec.metrics = {{"accuracy", "acc: ([0-9.]+)"}};
  const TrialResult r = trial.run();
  EXPECT_EQ(r.state, TrialState::kDone);
  EXPECT_EQ(r.metrics.at("accuracy"), 0.5);
  EXPECT_LT(std::filesystem::file_size(trial.files.output()), (1u << 20) + 200);
}

}  // namespace
}  // namespace stoker::study
