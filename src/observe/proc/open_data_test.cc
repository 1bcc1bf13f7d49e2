#include "observe/proc/open_data.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace stoker {
namespace {

TEST(OpenData, AFileThatWasJustWrittenLiesInMemory) {
  const std::string path = ::testing::TempDir() + "open_data.bin";
  const OpenData before = open_data("/proc/self", 100);
  const int out = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  ASSERT_GE(out, 0);
  const std::string block(1 << 20, 'x');
  for (int i = 0; i < 3; ++i)
    ASSERT_EQ(::write(out, block.data(), block.size()), std::ssize(block));
  // What is written is no data that is read.
  EXPECT_EQ(open_data("/proc/self", 100).files, before.files);
  ::close(out);
  const int in = ::open(path.c_str(), O_RDONLY);
  ASSERT_GE(in, 0);
  const OpenData after = open_data("/proc/self", 100);
  ::close(in);
  ::unlink(path.c_str());
  EXPECT_EQ(after.files, before.files + 1);
  EXPECT_EQ(after.bytes, before.bytes + (3 << 20));
  EXPECT_EQ(after.cached, before.cached + (3 << 20));
  EXPECT_EQ(open_data("/proc/self", 0).files, 0);
}

TEST(OpenData, AProcessThatIsGoneHasNone) { EXPECT_EQ(open_data("/proc/4194304999", 10).files, 0); }

}  // namespace
}  // namespace stoker
