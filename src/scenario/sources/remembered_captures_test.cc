#include "scenario/sources/remembered_captures.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "base/files.h"

namespace stoker {
namespace {
namespace fs = std::filesystem;

class ChangedSince : public testing::Test {
 protected:
  ChangedSince() : folder_(fs::path(testing::TempDir()) / "changed_since") {
    fs::create_directories(folder_);
  }
  ~ChangedSince() override { fs::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name) << content;
    return (folder_ / name).string();
  }
  static CaptureSource source(const std::string& path, const std::string& content) {
    return {path, static_cast<std::int64_t>(content.size()), crc32_of(content)};
  }

  fs::path folder_;
};

TEST_F(ChangedSince, NothingWhereAllFilesAreAsTheyWere) {
  Provenance p;
  p.sources = {source(write("net.py", "width = 8"), "width = 8")};
  EXPECT_TRUE(changed_since(p).empty());
}

TEST_F(ChangedSince, NamesEachFileThatIsAnotherOrGone) {
  Provenance p;
  p.sources = {source(write("net.py", "width = 9"), "width = 8"),
               source(write("same.py", "x"), "x"), source((folder_ / "gone.py").string(), "y"),
               source(write("longer.py", "xyz"), "x")};
  EXPECT_EQ(changed_since(p), (std::vector<std::string>{"net.py", "gone.py", "longer.py"}));
}

TEST_F(ChangedSince, OfALargeFileTheSizeAloneCounts) {
  Provenance p;
  p.sources = {{write("weights.pt", "abc"), 3, std::nullopt}};
  EXPECT_TRUE(changed_since(p).empty());
  p.sources[0].bytes = 4;
  EXPECT_EQ(changed_since(p).size(), 1);
}

TEST_F(ChangedSince, NamesWhatWasLookedForInVainAndIsThere) {
  Provenance p;
  const std::string fast = (folder_ / "fast_net.py").string();
  p.sources = {{fast, 0, std::nullopt, SourceKind::kAbsent}};
  EXPECT_TRUE(changed_since(p).empty());
  write("fast_net.py", "");
  EXPECT_EQ(changed_since(p), std::vector<std::string>{"fast_net.py"});
}

TEST_F(ChangedSince, NamesAFolderThatHasOtherEntries) {
  const fs::path classes = folder_ / "classes";
  fs::create_directories(classes / "dog");
  fs::create_directories(classes / "cat");
  fs::create_directories(classes / "__pycache__");
  Provenance p;
  p.sources = {{classes.string(), 2, crc32_of("cat\ndog\n"), SourceKind::kFolder}};
  EXPECT_TRUE(changed_since(p).empty());
  fs::create_directories(classes / "emu");
  EXPECT_EQ(changed_since(p), std::vector<std::string>{"classes"});
  fs::remove(classes / "dog");
  EXPECT_EQ(changed_since(p).size(), 1) << "as many names, and others";
  fs::remove_all(classes);
  EXPECT_EQ(changed_since(p).size(), 1);
}

TEST_F(ChangedSince, VariablesThatTheCodeReadCountToo) {
  Provenance p;
  p.environment = {{"STOKER_TEST_WIDTH", crc32_of("64")}, {"STOKER_TEST_UNSET", std::nullopt}};
  setenv("STOKER_TEST_WIDTH", "64", 1);
  EXPECT_TRUE(changed_since(p).empty());
  setenv("STOKER_TEST_WIDTH", "128", 1);
  EXPECT_EQ(changed_since(p), std::vector<std::string>{"$STOKER_TEST_WIDTH"});
  unsetenv("STOKER_TEST_WIDTH");
  EXPECT_EQ(changed_since(p).size(), 1);
}

TEST(RememberedCapture, OrdersThatDifferHaveFilesOfTheirOwn) {
  const CaptureOrder order{.spec = "train.py:net", .mode = {}, .assumptions = {}, .into = {}};
  CaptureOrder assuming = order, half = order;
  assuming.assumptions = {"net.py:3=false"};
  half.precision = Precision::kAmpFp16;
  const auto path = remembered_capture(order, "/usr/bin/python3|");
  EXPECT_EQ(path, remembered_capture(order, "/usr/bin/python3|"));
  EXPECT_NE(path, remembered_capture(assuming, "/usr/bin/python3|"));
  EXPECT_NE(path, remembered_capture(half, "/usr/bin/python3|"));
  EXPECT_NE(path, remembered_capture(order, "/opt/conda/bin/python3|"));
}

}  // namespace
}  // namespace stoker
