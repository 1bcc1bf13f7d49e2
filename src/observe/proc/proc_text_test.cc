#include "observe/proc/proc_text.h"

#include <gtest/gtest.h>

namespace stoker::proc {
namespace {

constexpr const char* kStat =
    "4242 (pt) data (x) S 17 4242 17 0 -1 4194304 6001 7 3 9 812 77 0 0 20 0 5 0 98765 123 45 "
    "18446744073709551615 1 1 0 0 0 0 0 16781312 2 0 0 0 17 1 0 0 0 0 0\n";

TEST(ProcText, ANameMayHoldBracketsAndBlanks) {
  const auto stat = parse_stat(kStat);
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->name, "pt) data (x");
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->parent, 17);
  EXPECT_EQ(stat->minor_faults, 6001);
  EXPECT_EQ(stat->major_faults, 3);
  EXPECT_EQ(stat->user_ticks, 812);
  EXPECT_EQ(stat->system_ticks, 77);
  EXPECT_EQ(stat->threads, 5);
  EXPECT_EQ(stat->start_ticks, 98765);
}

TEST(ProcText, AStatThatIsCutAnywhereIsNone) {
  const std::string text = kStat;
  const std::size_t needed = text.find("98765");
  for (std::size_t i = 0; i < needed; ++i)
    EXPECT_FALSE(parse_stat(std::string_view(text).substr(0, i))) << i;
}

TEST(ProcText, TimesOnACoreAndInTheQueue) {
  const auto times = parse_schedstat("35962440 934348180 114\n");
  ASSERT_TRUE(times);
  EXPECT_EQ(times->cpu_ns, 35962440);
  EXPECT_EQ(times->queued_ns, 934348180);
  EXPECT_FALSE(parse_schedstat(""));
  EXPECT_FALSE(parse_schedstat("12"));
}

TEST(ProcText, ReadingAndWriting) {
  const auto io = parse_io(
      "rchar: 11\nwchar: 12\nsyscr: 13\nsyscw: 14\nread_bytes: 4096\n"
      "write_bytes: 8192\ncancelled_write_bytes: 0\n");
  ASSERT_TRUE(io);
  EXPECT_EQ(io->read_chars, 11);
  EXPECT_EQ(io->written_chars, 12);
  EXPECT_EQ(io->read_calls, 13);
  EXPECT_EQ(io->written_calls, 14);
  EXPECT_EQ(io->read_bytes, 4096);
  EXPECT_EQ(io->written_bytes, 8192);
  EXPECT_FALSE(parse_io("rchar: 11\n"));
}

TEST(ProcText, MemoryPressureAndLimits) {
  const Memory memory = parse_memory("VmRSS:\t  10 kB\nRssAnon:\t 6 kB\nVmSwap:\t 1 kB\n");
  EXPECT_EQ(memory.resident, 10240);
  EXPECT_EQ(memory.anonymous, 6144);
  EXPECT_EQ(memory.swapped, 1024);
  EXPECT_EQ(parse_pressure("some avg10=1.00 avg60=2 avg300=3 total=12\nfull avg10=0 total=9\n"),
            12000);
  EXPECT_EQ(parse_pressure(""), 0);
  EXPECT_EQ(parse_open_files_limit(
                "Limit  Soft Limit\nMax open files            1024        4096 files\n"),
            1024);
  EXPECT_EQ(parse_open_files_limit("Max open files            unlimited  unlimited files\n"), 0);
}

TEST(ProcText, ACommandLineCannotDriveATerminal) {
  using namespace std::string_literals;
  EXPECT_EQ(command_of("python\0train.py\0--x\x1b[2J\0"s), "python train.py --x?[2J");
  EXPECT_EQ(command_of(std::string(10000, 'a')).size(), 512U);
}

TEST(ProcText, ARankIsInTheEnvironment) {
  using namespace std::string_literals;
  EXPECT_EQ(number_in_environment("A=1\0LOCAL_RANK=2\0RANK=7\0"s, "RANK"), 7);
  EXPECT_FALSE(number_in_environment("LOCAL_RANK=2\0"s, "RANK"));
  EXPECT_FALSE(number_in_environment("RANK=x\0"s, "RANK"));
}

}  // namespace
}  // namespace stoker::proc
