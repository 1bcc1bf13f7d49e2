#include "study/executor/slurm.h"

#include <gtest/gtest.h>

#include "study/executor/program.h"

namespace stoker::study {
namespace {

TEST(Slurm, ItsAnswersAreRead) {
  const auto jobs = parse_squeue("12_1|RUNNING|None|node[1-2]\n12_2|PENDING|Resources|\nodd\n");
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs.at("12_1").state, "RUNNING");
  EXPECT_EQ(jobs.at("12_1").nodes, "node[1-2]");
  EXPECT_EQ(jobs.at("12_2").reason, "Resources");
  EXPECT_EQ(parse_job_end("JobId=12 ArrayJobId=12 JobState=NODE_FAIL Reason=None\n").state,
            "NODE_FAIL");
  EXPECT_EQ(parse_job_end("CANCELLED by 1000\n").state, "CANCELLED");
  EXPECT_EQ(parse_job_end("CANCELLED+\n").state, "CANCELLED");
  EXPECT_EQ(parse_job_end("").state, "");
}

TEST(Slurm, AJobThatGaveWayIsToldFromOneWhoseTimeWasOver) {
  // As Slurm 22.05 shows jobs of a partition with a grace time: both end as TIMEOUT.
  const auto gave_way = parse_job_end(
      "JobId=2 JobState=TIMEOUT Reason=TimeLimit Requeue=0 Restarts=0 ExitCode=0:0 "
      "PreemptEligibleTime=2026-11-29T07:43:35 PreemptTime=2026-11-29T07:43:59 SuspendTime=None\n");
  EXPECT_TRUE(gave_way.preempted);
  const auto timed_out = parse_job_end(
      "JobId=3 JobState=TIMEOUT Reason=TimeLimit Requeue=0 Restarts=0 ExitCode=0:0 "
      "PreemptEligibleTime=2026-11-29T07:43:35 PreemptTime=None SuspendTime=None\n");
  EXPECT_EQ(timed_out.state, "TIMEOUT");
  EXPECT_FALSE(timed_out.preempted);
  EXPECT_EQ(parse_job_end("JobId=4 JobState=PENDING Requeue=1 Restarts=2 ExitCode=0:0\n").restarts,
            2);
}

TEST(Slurm, NeedsBecomeItsWords) {
  SlurmOptions options;
  options.partition = "gpu";
  options.options = {"--exclusive"};
  Needs needs{4, 2, (8LL << 30) + 1, 3600, 30};
  needs.constraint = "a100";
  EXPECT_EQ(sbatch_words(options, needs, "vgg", "/s/a.sh", 12),
            (std::vector<std::string>{"sbatch", "--parsable", "--no-requeue", "--job-name=vgg",
                                      "--array=1-12", "--output=/s/slurm-%A_%a.out",
                                      "--partition=gpu", "--constraint=a100", "--cpus-per-task=4",
                                      "--gres=gpu:2", "--mem=8193M", "--time=1:01:30",
                                      "--signal=B:USR1@60", "--exclusive", "/s/a.sh"}));
}

TEST(Program, AnswersAreTakenWhole) {
  const auto answer =
      run_program({"/bin/sh", "-c", "head -c 300000 /dev/zero; echo no >&2; exit 3"}).value();
  EXPECT_EQ(answer.code, 3);
  EXPECT_EQ(answer.output.size(), 300000u);
  EXPECT_EQ(answer.errors, "no\n");
  EXPECT_FALSE(run_program({"/no/such/program"}).has_value());
}

}  // namespace
}  // namespace stoker::study
