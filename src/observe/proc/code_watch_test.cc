#include "observe/proc/code_watch.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <numeric>

namespace stoker {
namespace {

TEST(CodeMap, FindsWhoseCodeAnAddressIs) {
  const CodeMap map(
      "7f0000001000-7f0000002000 r-xp 00000000 08:01 12 /opt/pillow.libs/libjpeg.so.62\n"
      "55d000000000-55d000001000 r--p 00000000 08:01 13 /usr/bin/python3.11\n"
      "55d000001000-55d000003000 r-xp 00001000 08:01 13 /usr/bin/python3.11\n"
      "7f0000003000-7f0000004000 r-xp 00000000 00:00 0 \n"
      "damaged-line\n7f\n7f0000009000-7f000000a000\n");
  EXPECT_EQ(map.find(0x7f0000001000), CodeKind::kData);
  EXPECT_EQ(map.find(0x55d000002fff), CodeKind::kInterpreter);
  EXPECT_EQ(map.find(0x7f0000003001), CodeKind::kOther);
  EXPECT_FALSE(map.find(0x7f0000002000)) << "the end lies outside";
  EXPECT_FALSE(map.find(0x55d000000001)) << "what is not mapped to run";
  EXPECT_FALSE(map.find(0));
  EXPECT_FALSE(CodeMap("").find(1));
}

TEST(CodeWatch, CountsWhereAThreadIsOnACore) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    volatile unsigned turns = 0;
    for (;;) turns = turns + 1;
  }
  auto watch = CodeWatch::open(pid, "/proc/" + std::to_string(pid));
  CodeCounts counts{};
  // Until it has been on a core for some hundredths of a second.
  for (int i = 0; watch && i < 1000 && counts == CodeCounts{}; ++i) {
    ::usleep(10'000);
    watch->read(i, counts);
  }
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  if (!watch) GTEST_SKIP() << watch.error().text();
  EXPECT_GT(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}), 0);
  EXPECT_EQ(counts[static_cast<std::size_t>(CodeKind::kDevice)], 0);
  const CodeCounts before = counts;
  watch->read(1, counts);
  watch->read(1, counts);
  EXPECT_GE(counts, before);
}

TEST(CodeWatch, AThreadThatIsGoneIsRefused) {
  const auto watch = CodeWatch::open(4194304, "/proc/4194304");
  ASSERT_FALSE(watch);
  EXPECT_NE(watch.error().message.find("perf_event_open"), std::string::npos);
}

}  // namespace
}  // namespace stoker
