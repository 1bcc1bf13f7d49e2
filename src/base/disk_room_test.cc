#include "base/disk_room.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(DiskRoom, IsToldOfAFolderAndNotOfOneThatIsMissing) {
  const std::filesystem::path folder(testing::TempDir());
  const auto room = room_on_disk(folder);
  ASSERT_TRUE(room);
  EXPECT_GE(*room, Bytes(0));
  EXPECT_FALSE(room_on_disk(folder / "stoker-missing" / "folder"));
}

}  // namespace
}  // namespace stoker
