#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/files.h"
#include "study/runner/run_trial.h"
#include "study/trial/test_folder.h"
#include "study/trial/trial_result.h"
#include "study/trial/trial_spec.h"

namespace stoker::study {
namespace {

/// How a trial of this shell script ends whose stop file is there from the beginning. In a process
/// of its own, since a runner blocks signals and reaps all children.
TrialResult stopped(const TestFolder& folder, const std::string& script) {
  const TrialFiles files{folder.path};
  TrialSpec spec;
  spec.trial = 1;
  spec.words = {"/bin/sh", "-c", script};
  spec.needs.grace_seconds = 2;
  spec.metrics = {{"accuracy"}};
  EXPECT_TRUE(write_spec(files, spec));
  EXPECT_TRUE(write_file(files.stop(), "shown enough\n"));
  const pid_t child = fork();
  if (child == 0) _exit(run_trial(files) ? 0 : 1);
  waitpid(child, nullptr, 0);
  const auto result = parse_result(*read_file(files.result(), Bytes(1 << 20)), "result.json");
  EXPECT_TRUE(result);
  return *result;
}

TEST(StopTest, ACommandThatReportsOnIsSignalled) {
  const TestFolder folder;
  const auto result = stopped(
      folder, "while true; do echo '{\"accuracy\": 1}' >> $STOKER_REPORTS; sleep 0.1; done");
  EXPECT_EQ(result.state, TrialState::kDone);
  EXPECT_EQ(result.cause, "stopped");
  EXPECT_EQ(result.reason, "shown enough");
  EXPECT_EQ(result.signal, SIGTERM);
}

TEST(StopTest, ACommandThatLeavesByItselfIsNot) {
  const TestFolder folder;
  const auto result =
      stopped(folder, "echo '{\"accuracy\": 1}' >> $STOKER_REPORTS; sleep 1; exit 0");
  EXPECT_EQ(result.state, TrialState::kDone);
  EXPECT_EQ(result.cause, "stopped");
  EXPECT_EQ(result.exit_code, 0);
}

TEST(StopTest, OneThatNeverReportsIsSignalledAtOnce) {
  const TestFolder folder;
  const auto result = stopped(folder, "sleep 60");
  EXPECT_EQ(result.cause, "stopped");
  EXPECT_EQ(result.signal, SIGTERM);
}

}  // namespace
}  // namespace stoker::study
