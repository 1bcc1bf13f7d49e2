#include "observe/record/facts_json.h"

#include <gtest/gtest.h>

namespace stoker::record {
namespace {

TEST(FactsJson, FactsComeBackAsTheyWere) {
  WatchFacts f;
  f.unix_ns = 1'700'000'000'123'456'789;
  f.sample_ns = 250'000'000;
  f.cores = 7.5;
  f.processors = 16;
  f.quota = 7.5;
  f.memory = 64LL << 30;
  f.processor = "AMD EPYC";
  f.kernel = "6.1.0";
  f.gpus = {"NVIDIA T4", "NVIDIA A10"};
  f.hidden = {"io of process 9"};
  f.started_here = true;
  const auto again = facts_from_json(to_json(f));
  ASSERT_TRUE(again);
  EXPECT_EQ(to_json(*again), to_json(f));
  EXPECT_EQ(again->unix_ns, f.unix_ns) << "nanoseconds survive: no double holds them";
  EXPECT_EQ(again->gpus, f.gpus);
  EXPECT_TRUE(again->started_here);
}

TEST(FactsJson, ProcessesComeBackWithTheirRoles) {
  std::vector<ProcessFacts> all;
  for (const ProcessRole role : {ProcessRole::kTraining, ProcessRole::kWorker,
                                 ProcessRole::kLauncher, ProcessRole::kHelper}) {
    ProcessFacts p;
    p.serial = static_cast<std::uint32_t>(all.size()) + 1;
    p.pid = 4'000'000'000 + p.serial;
    p.parent = p.owner = p.serial - 1;
    p.rank = p.serial == 1 ? 3 : -1;
    p.started_ns = -5;
    p.role = role;
    p.python = p.serial % 2 == 0;
    p.name = "python";
    p.command = "python train.py --x \"1\"";
    all.push_back(p);
  }
  const auto again = processes_from_json(to_json(all));
  ASSERT_TRUE(again);
  EXPECT_EQ(to_json(*again), to_json(all));
  EXPECT_EQ((*again)[2].role, ProcessRole::kLauncher);
  EXPECT_EQ((*again)[0].rank, 3);
}

TEST(FactsJson, WhatIsMissingIsItsDefaultAndWhatIsUnknownIsPassedOver) {
  const auto facts = facts_from_json(R"({"later": [1]})");
  ASSERT_TRUE(facts);
  EXPECT_EQ(to_json(*facts), to_json(WatchFacts{}));
  const auto processes = processes_from_json(R"([{"pid": 4, "role": "conductor"}])");
  ASSERT_TRUE(processes);
  EXPECT_EQ(processes->at(0).pid, 4);
  EXPECT_EQ(processes->at(0).rank, -1) << "no launcher said one";
  EXPECT_EQ(processes->at(0).role, ProcessRole::kHelper);
}

TEST(FactsJson, AForeignFileNeitherDrivesATerminalNorMakesAMachineOfAMillionCores) {
  const auto facts = facts_from_json(
      R"({"cores": 1e300, "processors": -4, "quota": -1, "kernel": "\u001b[2J",
          "gpus": ["T4\u0007", 3]})");
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->cores, 1e6);
  EXPECT_EQ(facts->processors, 0);
  EXPECT_EQ(facts->quota, 0);
  EXPECT_EQ(facts->kernel, "?[2J");
  EXPECT_EQ(facts->gpus, (std::vector<std::string>{"T4?", ""}));
}

TEST(FactsJson, WhatIsNoJsonIsNone) {
  EXPECT_FALSE(facts_from_json("{"));
  EXPECT_FALSE(processes_from_json("{}")) << "a list is needed";
  EXPECT_FALSE(processes_from_json(std::string(9, '[') + std::string(9, ']')))
      << "too deep to be ours";
}

}  // namespace
}  // namespace stoker::record
