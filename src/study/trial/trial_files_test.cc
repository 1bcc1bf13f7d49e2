#include "study/trial/trial_files.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "study/trial/test_folder.h"
#include "study/trial/trial_result.h"
#include "study/trial/trial_spec.h"

namespace stoker::study {
namespace {

using Found = Claim::Found;

TEST(Claim, IsTakenOnce) {
  const TestFolder folder;
  const TrialFiles files{folder.path};
  EXPECT_EQ(Claim::look(files), Found::kNone);
  {
    const auto first = Claim::take(files);
    ASSERT_TRUE(first.has_value() && first->has_value());
    EXPECT_FALSE(Claim::take(files)->has_value());
    EXPECT_FALSE(*Claim::withdraw(files));
    EXPECT_EQ(Claim::look(files), Found::kHeld);
    EXPECT_EQ(Claim::owner(files).process, getpid());
    (*first)->note_group(getpid());
    EXPECT_EQ(Claim::owner(files).group, getpid());
    EXPECT_GT(Claim::owner(files).group_started, 0);
  }
  EXPECT_EQ(Claim::look(files), Found::kLeft);
  EXPECT_FALSE(Claim::take(files)->has_value());
}

TEST(Claim, AWithdrawnTrialCannotBeRun) {
  const TestFolder folder;
  const TrialFiles files{folder.path / "sub"};
  EXPECT_TRUE(*Claim::withdraw(files));
  EXPECT_TRUE(*Claim::withdraw(files));
  EXPECT_EQ(Claim::look(files), Found::kWithdrawn);
  EXPECT_FALSE(Claim::take(files)->has_value());
}

TEST(Claim, OneThatDiesLeavesIt) {
  const TestFolder folder;
  const TrialFiles files{folder.path};
  const pid_t child = fork();
  if (child == 0) {
    const auto claim = Claim::take(files);
    _exit(claim && *claim ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(Claim::look(files), Found::kLeft);
  EXPECT_EQ(Claim::owner(files).process, child);
}

TEST(Claim, AFolderThatVanishedTellsNothing) {
  EXPECT_EQ(Claim::look({"/nonexistent/store.trials/000001"}), Found::kUnknown);
  EXPECT_FALSE(Claim::take({"/nonexistent/store.trials/000001"}).has_value());
}

TEST(TrialFiles, Names) {
  EXPECT_EQ(files_of("/a/study.db", 123).result(), "/a/study.db.trials/000123/result.json");
  EXPECT_EQ(files_of("/a/study.db", 1234567).folder, "/a/study.db.trials/1234567");
}

TEST(TrialResult, ReadsWhatWasWritten) {
  TrialResult r;
  r.state = TrialState::kOutOfMemory;
  r.cause = "cuda_out_of_memory";
  r.reason = "CUDA out of memory";
  r.exit_code = 1;
  r.started = 1e9, r.ended = 1e9 + 5, r.wall_s = 5, r.host = "node1";
  r.metrics = {{"accuracy", 0.5}};
  r.resources = {{"peak_bytes", 1e9}};
  r.points = {{"accuracy", 10, 2.5, 0.25}, {"accuracy", std::nullopt, 3, 0.5}};
  r.tail = "line \"1\"\n\xff";
  const auto back = parse_result(result_text(r), "result.json").value();
  EXPECT_EQ(back.state, r.state);
  EXPECT_EQ(back.exit_code, 1);
  EXPECT_EQ(back.signal, std::nullopt);
  EXPECT_EQ(back.metrics, r.metrics);
  EXPECT_EQ(back.points[0].step, 10);
  EXPECT_EQ(back.points[1].value, 0.5);
  EXPECT_EQ(back.tail, "line \"1\"\n\xef\xbf\xbd");
}

TEST(TrialResult, DamageIsRefused) {
  for (const char* text :
       {"", "{", "[]", R"({"format": "stoker-trial-result", "schema_version": [2, 0]})",
        R"({"format": "stoker-trial-result", "schema_version": [1, 0], "state": "running",
            "started": 1, "ended": 1, "wall_s": 1})"})
    EXPECT_FALSE(parse_result(text, "result.json").has_value()) << text;
}

TEST(TrialSpec, ReadsWhatWasWritten) {
  TrialSpec s;
  s.trial = 7;
  s.words = {"python", "a b"};
  s.environment = {{"A", "1"}};
  s.folder = "/tmp";
  s.needs = {2, 1, 1 << 30, 60, 5};
  s.cores = {0, 3};
  s.metrics = {{"loss", "loss ([0-9.]+)", Goal::kLeast, Take::kBest, false}};
  const auto back = parse_spec(spec_text(s), "trial.json").value();
  EXPECT_EQ(back.words, s.words);
  EXPECT_EQ(back.environment, s.environment);
  EXPECT_EQ(back.needs, s.needs);
  EXPECT_EQ(back.cores, s.cores);
  EXPECT_EQ(back.metrics, s.metrics);
  EXPECT_EQ(parse_spec("{}", "trial.json").has_value(), false);
}

}  // namespace
}  // namespace stoker::study
