#include "system/system_files.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace stoker {
namespace {

TEST(CpuList, CountsRanges) {
  EXPECT_EQ(count_cpu_list("0-3,8,10-11\n"), 7);
  EXPECT_EQ(cpu_list("0-2,8\n"), (std::vector<int>{0, 1, 2, 8}));
  EXPECT_EQ(count_cpu_list("5"), 1);
  for (const char* bad : {"", "3-1", "a", "1,,2", "0-99999999999", "-1"}) {
    EXPECT_EQ(count_cpu_list(bad), 0) << bad;
  }
}

TEST(SystemFiles, TakesTheFirstLineOfAKey) {
  constexpr const char* kText =
      "Name:\tx\nmodel name\t: A @ 2 GHz : b\nmodel name\t: B\nflags\t:\n";
  EXPECT_EQ(value_of(kText, "model name"), "A @ 2 GHz : b");
  EXPECT_EQ(value_of(kText, "Name"), "x");
  EXPECT_EQ(value_of(kText, "name"), "");
  EXPECT_EQ(value_of(kText, "flags"), "");
  EXPECT_EQ(value_of("", "flags"), "");
}

TEST(SystemFiles, NumbersAreWholeTextsOrNone) {
  EXPECT_EQ(whole_number(" 42\n"), 42);
  EXPECT_EQ(whole_number("-7"), -7);
  EXPECT_EQ(decimal_number("2.5\n"), 2.5);
  for (const char* bad : {"", "max", "1 2", "4x", "99999999999999999999"}) {
    EXPECT_FALSE(whole_number(bad)) << bad;
  }
  EXPECT_FALSE(decimal_number("nan"));
  EXPECT_FALSE(decimal_number("inf"));
}

TEST(SystemFiles, ReadsWhatTheKernelSaysIsEmpty) {
  const auto status = system_files()("/proc/self/status");
  ASSERT_TRUE(status);
  EXPECT_GT(count_cpu_list(value_of(*status, "Cpus_allowed_list")), 0);
  EXPECT_FALSE(system_files()("/proc/self/no_such_file"));
}

TEST(SystemFolders, ListsNamesInOrder) {
  const auto names = system_folders()("/proc/self");
  EXPECT_NE(std::ranges::find(names, "status"), names.end());
  EXPECT_TRUE(std::ranges::is_sorted(names));
  EXPECT_TRUE(system_folders()("/proc/self/no_such_folder").empty());
}

}  // namespace
}  // namespace stoker
