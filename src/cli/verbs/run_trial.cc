#include "study/runner/run_trial.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "base/files.h"
#include "cli/outside/output.h"
#include "cli/verbs/verbs.h"
#include "study/executor/kubernetes_job.h"

namespace stoker::cli {
namespace {

constexpr Bytes kLargestResult{256LL << 20};

/// A trial in a container that shares no folder with anybody: its command comes in the environment,
/// its output and its result go into the container's log.
Result<int> run_in_container(const study::TrialFiles& files, const std::string& spec) {
  unsetenv(study::kSpecVariable);
  std::error_code error;
  std::filesystem::create_directories(files.folder, error);
  TRY(write_file(files.spec(), spec));
  const auto run = TRY(study::run_trial(files, {STDOUT_FILENO, STDERR_FILENO}));
  if (run == study::TrialRun::kClaimed)
    return fail(ErrorCode::kAnswerIsNo, "this container has run its trial already",
                files.folder.string());
  print("\n" + std::string(study::kResultMark) + TRY(read_file(files.result(), kLargestResult)));
  return 0;
}

Result<int> run_the_trial(const std::string& folder) {
  const study::TrialFiles files{std::filesystem::absolute(folder).lexically_normal()};
  if (const char* spec = std::getenv(study::kSpecVariable); spec != nullptr)
    return run_in_container(files, spec);
  const auto run = TRY(study::run_trial(files));
  if (run == study::TrialRun::kClaimed)
    return fail(ErrorCode::kAnswerIsNo,
                "somebody else runs this trial, ran it or withdrew it: nothing was done", folder);
  return 0;
}

}  // namespace

Command run_trial_command() {
  auto folder = std::make_shared<std::string>();
  return {"run-trial",
          "one trial of a study, as executors start it: limits, output, metrics, result",
          "",
          {{"folder", folder.get()}},
          [folder] { return run_the_trial(*folder); }};
}

}  // namespace stoker::cli
