#include "observe/proc/roles.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

constexpr std::int64_t kLater = 100'000'000'000;

ProcessFacts process(std::uint32_t serial, std::uint32_t parent, std::string name,
                     std::string command) {
  ProcessFacts p;
  p.serial = serial;
  p.parent = parent;
  p.pid = 1000 + serial;
  p.python = name.starts_with("python") || name.starts_with("pt_");
  p.name = std::move(name);
  p.command = std::move(command);
  return p;
}

std::vector<ProcessRole> roles_of(std::vector<ProcessFacts>& all) {
  assign_roles(all, kLater);
  std::vector<ProcessRole> roles;
  for (const ProcessFacts& p : all) roles.push_back(p.role);
  return roles;
}

using enum ProcessRole;

TEST(Roles, WorkersThatPyTorchNames) {
  std::vector<ProcessFacts> all{process(1, 0, "bash", "bash run.sh"),
                                process(2, 1, "python", "python train.py"),
                                process(3, 2, "pt_data_worker", "python train.py"),
                                process(4, 2, "pt_data_worker", "python train.py"),
                                process(5, 2, "python", "python train.py")};
  EXPECT_EQ(roles_of(all), (std::vector{kLauncher, kTraining, kWorker, kWorker, kHelper}));
  EXPECT_EQ(all[2].owner, 2U);
  EXPECT_EQ(all[3].owner, 2U);
}

TEST(Roles, WorkersOfAnOlderPyTorchLookAsTheirParent) {
  std::vector<ProcessFacts> all{process(1, 0, "python3", "python3 train.py"),
                                process(2, 1, "python3", "python3 train.py")};
  EXPECT_EQ(roles_of(all), (std::vector{kTraining, kWorker}));
  EXPECT_EQ(all[1].owner, 1U);
}

TEST(Roles, SpawnedRanksAreKnownByTheirWorkersAtOnce) {
  const std::string spawned = "python -c from multiprocessing.spawn import spawn_main(3)";
  std::vector<ProcessFacts> all{process(1, 0, "python", "python train.py"),
                                process(2, 1, "python", spawned), process(3, 1, "python", spawned),
                                process(4, 2, "pt_data_worker", spawned),
                                process(5, 3, "pt_data_worker", spawned)};
  assign_roles(all, 2'000'000'000);
  std::vector<ProcessRole> roles;
  for (const ProcessFacts& p : all) roles.push_back(p.role);
  EXPECT_EQ(roles, (std::vector{kLauncher, kTraining, kTraining, kWorker, kWorker}));
  EXPECT_EQ(all[3].owner, 2U);
  EXPECT_EQ(all[4].owner, 3U);
  // Between two epochs they have none.
  all.resize(3);
  assign_roles(all, 3'000'000'000);
  EXPECT_EQ(all[0].role, kLauncher);
  EXPECT_EQ(all[1].role, kTraining);
  EXPECT_EQ(all[2].role, kTraining);
}

TEST(Roles, RanksOfTorchrunOwnTheirWorkers) {
  std::vector<ProcessFacts> all{process(1, 0, "python", "python /usr/bin/torchrun train.py"),
                                process(2, 1, "python", "python -u train.py"),
                                process(3, 1, "python", "python -u train.py"),
                                process(4, 2, "pt_data_worker", "python -u train.py"),
                                process(5, 3, "pt_data_worker", "python -u train.py")};
  all[1].rank = 0;
  all[2].rank = 1;
  EXPECT_EQ(roles_of(all), (std::vector{kLauncher, kTraining, kTraining, kWorker, kWorker}));
  EXPECT_EQ(all[3].owner, 2U);
  EXPECT_EQ(all[4].owner, 3U);
}

TEST(Roles, WorkersOfAForkServerBelongToWhoAsked) {
  std::vector<ProcessFacts> all{
      process(1, 0, "python", "python train.py"),
      process(2, 1, "python", "python -c from multiprocessing.resource_tracker import main"),
      process(3, 1, "python", "python -c from multiprocessing.forkserver import main"),
      process(4, 3, "pt_data_worker", "python -c from multiprocessing.forkserver import main")};
  EXPECT_EQ(roles_of(all), (std::vector{kTraining, kHelper, kHelper, kWorker}));
  EXPECT_EQ(all[3].owner, 1U);
}

TEST(Roles, ASpawnedProcessIsAHelperUntilItHadTimeToTellItsName) {
  std::vector<ProcessFacts> all{
      process(1, 0, "python", "python train.py"),
      process(2, 1, "python", "python -c from multiprocessing.spawn import spawn_main")};
  all[1].started_ns = kLater - 1'000'000'000;
  EXPECT_EQ(roles_of(all), (std::vector{kTraining, kHelper}));
  all[1].name = "pt_data_worker";
  EXPECT_EQ(roles_of(all), (std::vector{kTraining, kWorker}));
  all[1].name = "python";
  all[1].started_ns = 0;  // a rank of torch.multiprocessing.spawn
  EXPECT_EQ(roles_of(all), (std::vector{kLauncher, kTraining}));
}

TEST(Roles, WithoutPythonTheInnermostProcessIsTheJob) {
  std::vector<ProcessFacts> all{process(1, 0, "bash", "bash"), process(2, 1, "sleep", "sleep 9")};
  EXPECT_EQ(roles_of(all), (std::vector{kHelper, kTraining}));
}

}  // namespace
}  // namespace stoker
