#include "observe/proc/process_tree.h"

#include <gtest/gtest.h>

#include "observe/proc/test_proc.h"

namespace stoker {
namespace {

using testing_support::MadeProc;
using Pids = std::vector<std::int64_t>;

Pids found(ProcessTree& tree) {
  Pids pids;
  for (const TreeEntry& entry : tree.scan()) pids.push_back(entry.pid);
  return pids;
}

TEST(ProcessTree, HoldsWhatDescendsFromItsRootWhateverTheNumbers) {
  MadeProc proc;
  // 5 was started by 40 after the numbers wrapped; 7 belongs to somebody else.
  proc.add_stat(1, 0, 'S', 0).add_stat(30, 1, 'S', 100).add_stat(40, 30, 'S', 200);
  proc.add_stat(5, 40, 'S', 300).add_stat(7, 1, 'S', 400);
  ProcessTree tree(proc.path());
  tree.add_root(30);
  EXPECT_EQ(found(tree), (Pids{30, 40, 5})) << "parents before their children";
  EXPECT_EQ(tree.seen(), 5U);
  EXPECT_TRUE(found(tree).empty()) << "nobody is new";
  proc.add_stat(41, 5, 'S', 500);
  EXPECT_EQ(found(tree), Pids{41});
}

TEST(ProcessTree, AMemberStaysWhenItsParentEnds) {
  MadeProc proc;
  proc.add_stat(30, 1, 'S', 100).add_stat(40, 30, 'S', 200);
  ProcessTree tree(proc.path());
  tree.add_root(30);
  EXPECT_EQ(found(tree), (Pids{30, 40}));
  proc.end(30);
  proc.add_stat(40, 1, 'S', 200);  // init took it over
  EXPECT_TRUE(found(tree).empty());
  EXPECT_TRUE(tree.members().contains(40));
  tree.remove(40);
  EXPECT_FALSE(tree.members().contains(40));
}

TEST(ProcessTree, AProcessOlderThanItsParentIsOfAnother) {
  MadeProc proc;
  // 30 has a dead one's number: what 40 calls its parent ended before 30 began.
  proc.add_stat(30, 1, 'S', 500).add_stat(40, 30, 'S', 200);
  ProcessTree tree(proc.path());
  tree.add_root(30);
  EXPECT_EQ(found(tree), Pids{30});
}

TEST(ProcessTree, AnEntryThatCannotBeReadIsNone) {
  MadeProc proc;
  proc.add_stat(30, 1, 'S', 500).write(31, "stat", "31 (cut");
  EXPECT_EQ(read_tree_entry(proc.path(), 30)->start_ticks, 500);
  EXPECT_EQ(read_tree_entry(proc.path(), 30)->parent, 1);
  EXPECT_FALSE(read_tree_entry(proc.path(), 31) || read_tree_entry(proc.path(), 32));
}

/// What a user reads who named a number that cannot be watched.
std::string refusal(const MadeProc& proc, std::int64_t pid) {
  const Status status = check_watchable(proc.path(), pid);
  return status ? "" : status.error().text();
}

TEST(CheckWatchable, SaysWhyAndWhatToDo) {
  MadeProc proc;
  proc.add_stat(30, 1, 'S', 1).write(30, "status", "Name:\tpython\nTgid:\t30\nNSpid:\t30\n");
  proc.add_stat(31, 1, 'S', 1).write(31, "status", "Name:\tpython\nTgid:\t30\n");
  proc.add_stat(32, 1, 'Z', 1);
  proc.add_stat(2, 0, 'S', 1).write(2, "status", "Name:\tkthreadd\nTgid:\t2\nKthread:\t1\n");
  EXPECT_EQ(refusal(proc, 30), "");
  EXPECT_EQ(refusal(proc, 31), "31: is a thread of process 30; watch that");
  EXPECT_EQ(refusal(proc, 32), "32: has ended and waits for its parent to notice (a zombie)");
  EXPECT_EQ(refusal(proc, 2), "2: is a thread of the kernel");
  EXPECT_EQ(
      refusal(proc, 99),
      "99: no such process that this user can see; it has ended, it runs in another container "
      "or on another node, or /proc is mounted with hidepid: watch it as its owner or as root");
}

TEST(CheckWatchable, ANumberWithinAContainerLeadsToTheNumbersOutside) {
  MadeProc proc;
  for (const int outside : {1001, 1002, 1003, 1004}) {
    proc.add_stat(outside, 1, 'S', 1);
    proc.write(outside, "status",
               "Name:\tpython\nTgid:\t" + std::to_string(outside) + "\nNSpid:\t" +
                   std::to_string(outside) + "\t99\n");
  }
  const std::string said = refusal(proc, 99);
  EXPECT_NE(said.find("; within a container that number is process "), std::string::npos) << said;
  EXPECT_NE(said.find(" (python), "), std::string::npos) << said;
  EXPECT_TRUE(said.ends_with(", to be watched by this one")) << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '('), 3)
      << "no more than three are named: " << said;
}

}  // namespace
}  // namespace stoker
