#include "study/controller/controller.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <set>

#include "base/files.h"
#include "study/executor/local.h"
#include "study/runner/run_trial.h"
#include "study/trial/test_folder.h"

namespace stoker::study {
namespace {

/// Runs trials by a copy of this process, as `stoker run-trial` would.
Launch forked() {
  return [](const TrialFiles& files) -> Result<pid_t> {
    const pid_t process = fork();
    if (process == 0) {
      setsid();
      _exit(run_trial(files) ? 0 : 9);
    }
    return process;
  };
}

Capacity machine(int at_most = 2) {
  Capacity c;
  c.cores = {0, 1};
  c.at_most = at_most;
  return c;
}

Study study(const std::string& line, std::vector<std::string> values) {
  Study s;
  s.command = {"/bin/sh", "-c", line};
  Axis axis{{"n"}, {}};
  for (std::string& value : values) axis.rows.push_back({std::move(value)});
  s.axes = {axis};
  return s;
}

Store made(const TestFolder& folder, const Study& s) {
  return std::move(*Store::create(folder.path / "study.db", s, trials_of(s).value()));
}

RunSummary run(Store& store, const ControllerOptions& options = {}, Capacity capacity = machine()) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  const auto executor = local_executor(std::move(capacity), forked());
  auto summary = run_study(store, *executor, options);
  EXPECT_TRUE(summary.has_value()) << summary.error().text();
  return summary.value_or(RunSummary{});
}

TEST(Controller, RunsAllTrials) {
  const TestFolder folder;
  Study s = study("echo got {n}; exit {n*0}", {"1", "2", "3", "4"});
  s.metrics = {{"got", "got ([0-9]+)"}};
  Store store = made(folder, s);
  const RunSummary summary = run(store);
  EXPECT_TRUE(summary.complete);
  EXPECT_EQ(summary.ended, 4);
  const auto rows = store.full_trials().value();
  for (const TrialRow& row : rows) {
    EXPECT_EQ(row.state, TrialState::kDone) << row.reason;
    EXPECT_EQ(row.metrics.at("got"), std::stod(row.trial.values[0]));
  }
}

TEST(Controller, TrialsThatCannotRunAreLeftOutWithTheReason) {
  const TestFolder folder;
  Study s = study("true", {"1", "9"});
  s.resources.cores = "{n}";
  Store store = made(folder, s);
  EXPECT_TRUE(run(store, {}, machine(0)).complete);
  const auto rows = store.trials().value();
  EXPECT_EQ(rows[0].state, TrialState::kDone);
  EXPECT_EQ(rows[1].state, TrialState::kNotRun);
  EXPECT_EQ(rows[1].reason, "needs 9 cores, and this machine has 2");
}

TEST(Controller, EachTrialSeesItsOwnGpu) {
  const TestFolder folder;
  Study s = study("echo gpu $CUDA_VISIBLE_DEVICES; sleep 0.2", {"1", "2"});
  s.resources.gpus = "1";
  s.metrics = {{"gpu", "gpu ([0-9]+)"}};
  Store store = made(folder, s);
  Capacity c = machine(0);
  c.gpus = {"4", "7"};
  EXPECT_TRUE(run(store, {}, c).complete);
  std::set<double> seen;
  const auto rows = store.full_trials().value();
  for (const TrialRow& row : rows) seen.insert(row.metrics.at("gpu"));
  EXPECT_EQ(seen, (std::set<double>{4, 7}));
}

TEST(Controller, StopsAfterFailuresInARow) {
  const TestFolder folder;
  Study s = study("exit 1", {"1", "2", "3", "4", "5"});
  s.budget.failures = 2;
  Store store = made(folder, s);
  const RunSummary summary = run(store, {}, machine(1));
  EXPECT_FALSE(summary.complete);
  EXPECT_EQ(summary.stopped, "2 trials in a row failed");
  EXPECT_EQ(store.counts().value().at(TrialState::kWaiting), 3);
}

TEST(Controller, AFinishedStudyStaysAsItIs) {
  const TestFolder folder;
  Store store = made(folder, study("echo {n} >> " + (folder.path / "ran").string(), {"1", "2"}));
  run(store, {}, machine(1));
  const RunSummary again = run(store, {}, machine(1));
  EXPECT_TRUE(again.complete);
  EXPECT_EQ(again.ended, 0);
  EXPECT_EQ(read_file(folder.path / "ran", Bytes(100)).value(), "1\n2\n");
}

TEST(Controller, LeavesTrialsRunningAndAnotherTakesThemOver) {
  const TestFolder folder;
  const std::string go = (folder.path / "go").string();
  Store store = made(folder, study("echo {n} >> " + (folder.path / "ran").string() +
                                       "; while [ ! -e " + go + " ]; do sleep 0.01; done",
                                   {"1", "2", "3"}));
  ControllerOptions leave;
  int asked = 0;
  leave.wish = [&] { return ++asked > 6 ? Wish::kLeave : Wish::kGoOn; };
  EXPECT_FALSE(run(store, leave).complete);
  EXPECT_EQ(store.counts().value().at(TrialState::kSubmitted), 2);
  std::ofstream(go) << "x";
  EXPECT_TRUE(run(store).complete);
  EXPECT_EQ(store.counts().value().at(TrialState::kDone), 3);
  EXPECT_EQ(read_file(folder.path / "ran", Bytes(100))->size(), 6u);
}

TEST(Controller, CancelsWhatRuns) {
  const TestFolder folder;
  Store store = made(folder, study("sleep 1000", {"1", "2", "3"}));
  ControllerOptions cancel;
  int asked = 0;
  cancel.wish = [&] { return ++asked > 8 ? Wish::kCancel : Wish::kGoOn; };
  EXPECT_FALSE(run(store, cancel).complete);
  const auto counts = store.counts().value();
  EXPECT_EQ(counts.at(TrialState::kCancelled) +
                (counts.contains(TrialState::kFailed) ? counts.at(TrialState::kFailed) : 0),
            2);
  EXPECT_EQ(counts.at(TrialState::kWaiting), 1);
}

TEST(Controller, WhatWasSubmittedButNeverBegunIsRunOnce) {
  const TestFolder folder;
  Store store = made(folder, study("echo {n} >> " + (folder.path / "ran").string(), {"1"}));
  // A controller that died between writing down and starting.
  ASSERT_TRUE(store.submitted(1, "").has_value());
  const TrialFiles first = files_of(store.path(), 1);
  std::filesystem::create_directories(first.folder);
  EXPECT_TRUE(run(store).complete);
  EXPECT_EQ(store.trial(1)->state, TrialState::kDone);
  EXPECT_EQ(read_file(folder.path / "ran", Bytes(100)).value(), "1\n");
  EXPECT_EQ(Claim::look(first), Claim::Found::kWithdrawn);
  // A runner that comes late finds that it may not.
  std::ofstream(first.spec()) << spec_text({1, {"/bin/sh", "-c", "echo late >> ran"}});
  EXPECT_EQ(run_trial(first).value(), TrialRun::kClaimed);
}

TEST(Controller, ALostTrialIsFoundAndItsProcessesEnded) {
  const TestFolder folder;
  const std::string pid = (folder.path / "pid").string();
  Store store = made(folder, study("sh -c 'echo $$ > " + pid + "; exec sleep 1000'; true", {"1"}));
  ControllerOptions leave;
  leave.wish = [&] { return std::filesystem::exists(pid) ? Wish::kLeave : Wish::kGoOn; };
  EXPECT_FALSE(run(store, leave).complete);
  const int runner = Claim::owner(files_of(store.path(), 1)).process;
  kill(runner, SIGKILL);
  waitpid(runner, nullptr, 0);
  EXPECT_TRUE(run(store).complete);
  const TrialRow row = store.trial(1).value();
  EXPECT_EQ(row.state, TrialState::kFailed);
  EXPECT_EQ(row.cause, "lost");
  const int grandchild = std::stoi(read_file(pid, Bytes(100)).value());
  for (int i = 0; i < 3000 && kill(grandchild, 0) == 0; ++i) {
    waitpid(grandchild, nullptr, WNOHANG);
    usleep(1000);
  }
  EXPECT_NE(kill(grandchild, 0), 0);
}

TEST(Controller, WhatLostItsPlaceIsRunAgainWhereThatIsAskedFor) {
  const TestFolder folder;
  // The first attempt keeps something and dies with its runner; the second finds it.
  Store store = made(
      folder, study("test -e $STOKER_CHECKPOINT_DIR/kept && exit 0; mkdir -p "
                    "$STOKER_CHECKPOINT_DIR; touch $STOKER_CHECKPOINT_DIR/kept; kill -9 $PPID; "
                    "sleep 1000",
                    {"1"}));
  ControllerOptions options;
  options.again = [](const TrialRow& row) { return row.cause == "lost" && !row.retry_of; };
  EXPECT_TRUE(run(store, options, machine(1)).complete);
  const auto rows = store.trials().value();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].cause, "lost");
  EXPECT_EQ(rows[1].state, TrialState::kDone);
  EXPECT_EQ(rows[1].retry_of, 1);
  EXPECT_TRUE(std::filesystem::exists(folder.path / "study.db.trials/000001-checkpoints/kept"));
}

TEST(Controller, ARunnerThatCannotWriteFailsItsTrialOnce) {
  const TestFolder folder;
  Store store = made(folder, study("true", {"1"}));
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  const auto executor = local_executor(machine(), [](const TrialFiles&) -> Result<pid_t> {
    const pid_t process = fork();
    if (process == 0) _exit(9);
    return process;
  });
  EXPECT_TRUE(run_study(store, *executor, {})->complete);
  EXPECT_EQ(store.trial(1)->cause, "lost");
  EXPECT_EQ(store.trial(1)->reason, "its runner ended before the command began");
}

}  // namespace
}  // namespace stoker::study
