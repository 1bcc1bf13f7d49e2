#include "study/runner/run_trial.h"

#include <cstdio>
#include <memory>

#include "cli/verbs/verbs.h"

namespace stoker::cli {
namespace {

Result<int> run(const std::string& folder) {
  const study::TrialFiles files{std::filesystem::absolute(folder).lexically_normal()};
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
          [folder] { return run(*folder); }};
}

}  // namespace stoker::cli
