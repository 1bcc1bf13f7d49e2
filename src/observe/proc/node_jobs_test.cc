#include "observe/proc/node_jobs.h"

#include <gtest/gtest.h>

#include "observe/proc/test_proc.h"

namespace stoker {
namespace {

using testing_support::MadeProc;

TEST(NodeJobs, AreFoundByTheirWorkersAndByPyTorchsLibrary) {
  MadeProc proc;
  proc.add(1, 0, "init").add(10, 1, "bash").add(11, 10, "python", "7f /x/libtorch_cpu.so\n");
  proc.add(12, 11, "pt_data_worker").add(20, 1, "python3").add(30, 1, "python");  // torchrun
  proc.add(31, 30, "python", "libtorch_cuda.so").add(32, 30, "python", "libtorch_cuda.so");
  proc.add(40, 1, "pt_main_thread").add(41, 40, "pt_data_worker");
  EXPECT_EQ(training_jobs(proc.path()), (std::vector<std::int64_t>{11, 30, 40}));
}

TEST(NodeJobs, OfSlurmByGroupOrEnvironment) {
  using namespace std::string_literals;
  MadeProc proc;
  proc.add(5, 1, "slurmstepd", "", "0::/system.slice/job_12/step_0\n");
  proc.add(6, 5, "bash", "", "4:memory:/slurm/uid_0/job_12/step_0\n");
  proc.add(7, 6, "python", "", "4:memory:/slurm/uid_0/job_12/step_0/task_0\n");
  proc.add(8, 1, "python", "", "4:memory:/slurm/uid_0/job_123/step_0\n");
  proc.add(9, 1, "python", "", "0::/\n", "A=1\0SLURM_JOB_ID=12\0"s);
  EXPECT_EQ(slurm_job_roots(proc.path(), "12"), (std::vector<std::int64_t>{6, 9}));
  EXPECT_EQ(slurm_job_roots(proc.path(), "123"), (std::vector<std::int64_t>{8}));
  EXPECT_TRUE(slurm_job_roots(proc.path(), "1").empty());
}

TEST(NodeJobs, AnEmptyNodeHasNone) {
  EXPECT_TRUE(training_jobs("/there-is-no-such-folder").empty());
  EXPECT_TRUE(slurm_job_roots("/there-is-no-such-folder", "7").empty());
}

}  // namespace
}  // namespace stoker
