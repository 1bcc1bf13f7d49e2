#include "study/store/store.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "base/sqlite.h"
#include "study/store/controller_lock.h"
#include "study/store/schema.h"
#include "study/trial/test_folder.h"

namespace stoker::study {
namespace {

Study study() {
  Study s;
  s.command = {"true", "{batch}"};
  s.axes = {Axis{{"batch"}, {{"1"}, {"2"}, {"4"}}}};
  return s;
}

Store made(const TestFolder& folder) {
  auto store = Store::create(folder.path / "study.db", study(), trials_of(study()).value());
  EXPECT_TRUE(store.has_value()) << store.error().text();
  return std::move(*store);
}

TrialResult ended_well() {
  TrialResult r;
  r.state = TrialState::kDone;
  r.started = 100, r.ended = 110, r.wall_s = 10, r.exit_code = 0, r.host = "here";
  r.metrics = {{"accuracy", 0.5}};
  r.resources = {{"peak_bytes", 1e6}};
  r.points = {{"accuracy", 1, 5, 0.25}, {"accuracy", 2, 10, 0.5}};
  r.tail = "done";
  return r;
}

TEST(Store, KeepsTheStudyAndItsTrials) {
  const TestFolder folder;
  made(folder);
  const Store store = Store::open(folder.path / "study.db", Store::Access::kRead).value();
  EXPECT_EQ(store.study(), study());
  const auto trials = store.trials().value();
  ASSERT_EQ(trials.size(), 3u);
  EXPECT_EQ(trials[2].id, 3);
  EXPECT_EQ(trials[2].trial.values, std::vector<std::string>{"4"});
  EXPECT_EQ(store.counts().value().at(TrialState::kWaiting), 3);
}

TEST(Store, ATrialGoesThroughItsStates) {
  const TestFolder folder;
  Store store = made(folder);
  ASSERT_TRUE(store.submitted(2, "job 7").has_value());
  ASSERT_TRUE(store.running(2, "node1").has_value());
  ASSERT_TRUE(store.ended(2, ended_well()).has_value());
  const TrialRow row = store.full_trials().value()[1];
  EXPECT_EQ(row.state, TrialState::kDone);
  EXPECT_EQ(row.job, "job 7");
  EXPECT_EQ(row.wall_s, 10);
  EXPECT_EQ(row.metrics.at("accuracy"), 0.5);
  EXPECT_EQ(row.resources.at("peak_bytes"), 1e6);
  EXPECT_EQ(store.points(2).value()[1].value, 0.5);
  ASSERT_TRUE(store.forecast(1, {{"samples_per_s", 100}}).has_value());
  EXPECT_FALSE(store.forecast(1, {{"samples_per_s", 200}}).has_value());
  ASSERT_TRUE(store.corrected(1, {{"samples_per_s", 80}}).has_value());
  ASSERT_TRUE(store.corrected(1, {{"samples_per_s", 90}}).has_value());
  const auto rows = store.full_trials().value();
  EXPECT_EQ(rows[0].forecast.at("samples_per_s"), 100);
  EXPECT_EQ(rows[0].corrected.at("samples_per_s"), 90);
  EXPECT_EQ(store.events().value()[2].what, "done");
}

TEST(Store, FinalStatesNeverChange) {
  const TestFolder folder;
  Store store = made(folder);
  ASSERT_TRUE(store.not_run(1, "does not fit").has_value());
  EXPECT_EQ(store.submitted(1, "").error().message, "trial 1 cannot become submitted");
  EXPECT_EQ(store.ended(1, ended_well()).error().message, "trial 1 has ended already");
  EXPECT_EQ(store.trial(1)->reason, "does not fit");
  const auto database =
      Database::open(folder.path / "study.db", Database::Access::kWrite, kStoreKind).value();
  EXPECT_NE(database->execute("UPDATE trials SET state = 'done' WHERE id = 1")
                .error()
                .message.find("a final state never changes"),
            std::string::npos);
  EXPECT_FALSE(database->execute("DELETE FROM trials").has_value());
}

TEST(Store, ARetryIsATrialOfItsOwn) {
  const TestFolder folder;
  Store store = made(folder);
  EXPECT_FALSE(store.retry(1).has_value());
  TrialResult lost;
  lost.cause = "lost";
  ASSERT_TRUE(store.submitted(1, "").has_value());
  ASSERT_TRUE(store.ended(1, lost).has_value());
  EXPECT_EQ(store.retry(1).value(), 4);
  EXPECT_EQ(store.trial(4)->retry_of, 1);
  EXPECT_EQ(store.trial(4)->trial.values, store.trial(1)->trial.values);
  EXPECT_EQ(store.trial(1)->state, TrialState::kFailed);
}

TEST(Store, WhatNobodyRanWaitsAgain) {
  const TestFolder folder;
  Store store = made(folder);
  ASSERT_TRUE(store.submitted(1, "7").has_value());
  ASSERT_TRUE(store.withdrawn(1, "its runner never began").has_value());
  EXPECT_EQ(store.trial(1)->state, TrialState::kWaiting);
  EXPECT_EQ(store.trial(1)->submitted, std::nullopt);
  EXPECT_EQ(store.events().value()[1].what, "waiting again: its runner never began");
}

TEST(Store, IsReadWhileItIsWritten) {
  const TestFolder folder;
  Store store = made(folder);
  const Store reader = Store::open(folder.path / "study.db", Store::Access::kRead).value();
  ASSERT_TRUE(store.not_run(1, "x").has_value());
  EXPECT_EQ(reader.counts().value().at(TrialState::kNotRun), 1);
}

TEST(Store, OtherFilesAreRefused) {
  const TestFolder folder;
  const auto path = folder.path / "study.db";
  EXPECT_EQ(Store::open(path, Store::Access::kRead).error().message, "there is no such study");
  std::ofstream(path) << std::string(5000, 'x');
  EXPECT_NE(Store::open(path, Store::Access::kRead).error().message.find("is damaged"),
            std::string::npos);
  std::ofstream(path, std::ios::trunc) << "";
  EXPECT_NE(Store::open(path, Store::Access::kRead).error().message.find("is no study"),
            std::string::npos);
  EXPECT_FALSE(*Store::exists(path));  // as one leaves it who dies at once
  std::filesystem::remove(path);
  made(folder);
  EXPECT_TRUE(*Store::exists(path));
  EXPECT_EQ(Store::create(path, study(), {}).error().message, "holds a study already");
  const auto database = Database::open(path, Database::Access::kWrite, kStoreKind).value();
  ASSERT_TRUE(database->set_schema(99).has_value());
  EXPECT_EQ(Store::open(path, Store::Access::kRead).error().message,
            "is of schema 99, newer than this stoker knows (1); update stoker");
}

TEST(ControllerLock, TwoControllersRefuseEachOther) {
  const TestFolder folder;
  const auto path = folder.path / "study.db";
  EXPECT_EQ(ControllerLock::holder(path), "");
  {
    const auto first = ControllerLock::take(path);
    ASSERT_TRUE(first.has_value());
    const auto second = ControllerLock::take(path);
    ASSERT_FALSE(second.has_value());
    EXPECT_EQ(second.error().message,
              "is being run by process " + std::to_string(getpid()) + " on " +
                  ControllerLock::holder(path).substr(ControllerLock::holder(path).rfind(' ') + 1) +
                  "; `stoker study` shows how far it is");
  }
  EXPECT_EQ(ControllerLock::holder(path), "");
  EXPECT_TRUE(ControllerLock::take(path).has_value());
}

/// A child shares the lock of the controller that forked it until it runs another program. One that
/// outlives its controller by that moment must not keep the study from being gone on with.
TEST(ControllerLock, AChildThatOutlivesItsControllerIsWaitedFor) {
  const TestFolder folder;
  const auto path = folder.path / "study.db";
  const pid_t controller = fork();
  if (controller == 0) {
    const auto lock = ControllerLock::take(path);
    if (fork() == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
      _exit(0);
    }
    _exit(lock ? 0 : 1);  // without giving the lock back, as one that is killed
  }
  int status = 0;
  waitpid(controller, &status, 0);
  ASSERT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(ControllerLock::holder(path).starts_with("process " + std::to_string(controller)));
  EXPECT_TRUE(ControllerLock::take(path).has_value());
}

}  // namespace
}  // namespace stoker::study
