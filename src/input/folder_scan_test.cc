#include "input/folder_scan.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "input/test_pictures.h"

namespace stoker {
namespace {

TEST(FolderScan, CountsWhatItFinds) {
  const ScratchFolder folder;
  for (int i = 0; i < 5; ++i)
    folder.write("cat/" + std::to_string(i) + ".jpg", std::string(100 + i, 'x'));
  folder.write("dog/deeper/one.JPEG", std::string(500, 'x'));
  folder.write("dog/one.png", "x");
  folder.write("dog/two.PNG", "x");
  folder.write("notes.txt", "x");
  const Result<FolderListing> listing = scan_folder(folder.path());
  ASSERT_TRUE(listing) << listing.error().text();
  EXPECT_EQ(listing->jpeg_files, 6);
  EXPECT_EQ(listing->other_pictures.at("png"), 2);
  EXPECT_EQ(listing->other_files, 1);
  EXPECT_EQ(listing->folders, 4);
  EXPECT_TRUE(listing->complete);
  EXPECT_TRUE(listing->sizes_exact);
  EXPECT_EQ(listing->total_bytes.count(), 100 + 101 + 102 + 103 + 104 + 500);
  EXPECT_EQ(listing->max_bytes, 500);
  EXPECT_EQ(listing->name, folder.path().filename().string());
  EXPECT_EQ(listing->diagnostics.count("pictures_not_probed"), 2);
}

TEST(FolderScan, TrailingSlashKeepsTheName) {
  const ScratchFolder folder;
  folder.write("pets/a.jpg", "x");
  const Result<FolderListing> listing = scan_folder(folder.path().string() + "/pets/");
  ASSERT_TRUE(listing) << listing.error().text();
  EXPECT_EQ(listing->name, "pets");
}

TEST(FolderScan, SurvivesLinksThatLoop) {
  const ScratchFolder folder;
  folder.write("a/one.jpg", "x");
  std::filesystem::create_directory_symlink("..", folder.path() / "a" / "up");
  std::filesystem::create_directory_symlink("self", folder.path() / "self");
  std::filesystem::create_symlink("nowhere.jpg", folder.path() / "dangling.jpg");
  const Result<FolderListing> listing = scan_folder(folder.path());
  ASSERT_TRUE(listing) << listing.error().text();
  EXPECT_EQ(listing->jpeg_files, 1);
  EXPECT_EQ(listing->diagnostics.count("broken_link"), 2);
}

TEST(FolderScan, FollowsLinksToFilesAndFolders) {
  const ScratchFolder elsewhere, folder;
  elsewhere.write("real/one.jpg", "xy");
  std::filesystem::create_directory_symlink(elsewhere.path() / "real", folder.path() / "linked");
  std::filesystem::create_symlink(elsewhere.path() / "real" / "one.jpg", folder.path() / "two.jpg");
  const Result<FolderListing> listing = scan_folder(folder.path());
  ASSERT_TRUE(listing) << listing.error().text();
  EXPECT_EQ(listing->jpeg_files, 2);
}

TEST(FolderScan, ExtrapolatesFromASample) {
  const ScratchFolder folder;
  for (int i = 0; i < 300; ++i)
    folder.write(std::to_string(i) + ".jpg", std::string(1000 + i % 10, 'x'));
  const Result<FolderListing> listing = scan_folder(folder.path(), {.sample = 50});
  ASSERT_TRUE(listing) << listing.error().text();
  EXPECT_EQ(listing->jpeg_files, 300);
  EXPECT_EQ(listing->sample.size(), 50U);
  EXPECT_FALSE(listing->sizes_exact);
  EXPECT_NEAR(static_cast<double>(listing->total_bytes.count()), 300 * 1004.5, 300 * 4.5);
}

TEST(FolderScan, SampleIsUniformAndFixedByItsSeed) {
  const ScratchFolder folder;
  for (int i = 0; i < 200; ++i)
    folder.write((i < 100 ? "a/" : "b/") + std::to_string(i) + ".jpg", "x");
  const auto sample = [&](std::uint64_t seed) {
    return scan_folder(folder.path(), {.sample = 40, .seed = seed})->sample;
  };
  const std::vector<PictureFile> first = sample(7), again = sample(7), other = sample(8);
  int from_a = 0;
  bool same = true, differs = false;
  for (std::size_t i = 0; i < first.size(); ++i) {
    from_a += first[i].path.parent_path().filename() == "a";
    same = same && first[i].path == again[i].path;
    differs = differs || first[i].path != other[i].path;
  }
  EXPECT_TRUE(same);
  EXPECT_TRUE(differs);
  EXPECT_GT(from_a, 8);
  EXPECT_LT(from_a, 32);
}

TEST(FolderScan, StopsAtItsLimit) {
  const ScratchFolder folder;
  for (int i = 0; i < 100; ++i) folder.write(std::to_string(i) + ".jpg", "x");
  const Result<FolderListing> listing = scan_folder(folder.path(), {.max_entries = 30});
  ASSERT_TRUE(listing) << listing.error().text();
  EXPECT_FALSE(listing->complete);
  EXPECT_FALSE(listing->sizes_exact);
  EXPECT_EQ(listing->jpeg_files, 30);
  EXPECT_EQ(listing->diagnostics.count("listing_cut_off"), 1);
}

TEST(FolderScan, LeavesEmptyFilesOut) {
  const ScratchFolder folder;
  folder.write("full.jpg", "x");
  folder.write("empty.jpg", "");
  const Result<FolderListing> listing = scan_folder(folder.path());
  ASSERT_TRUE(listing) << listing.error().text();
  EXPECT_EQ(listing->jpeg_files, 2);
  EXPECT_EQ(listing->sample.size(), 1U);
  EXPECT_EQ(listing->diagnostics.count("empty_picture"), 1);
}

TEST(FolderScan, DoesNotOpenPipes) {
  const ScratchFolder folder;
  folder.write("one.jpg", "x");
  ASSERT_EQ(::mkfifo((folder.path() / "pipe.jpg").c_str(), 0600), 0);
  const Result<FolderListing> listing = scan_folder(folder.path());
  ASSERT_TRUE(listing) << listing.error().text();
  EXPECT_EQ(listing->jpeg_files, 1);
}

TEST(FolderScan, SaysWhatIsWrongWithAFolder) {
  const ScratchFolder folder;
  const auto text_of = [](const std::filesystem::path& path) {
    const Result<FolderListing> listing = scan_folder(path);
    return listing ? std::string("no error") : listing.error().text();
  };
  EXPECT_EQ(text_of(folder.path() / "missing"),
            (folder.path() / "missing").string() + ": no such folder; check the path");
  EXPECT_NE(text_of(folder.write("file.jpg", "x")).find("is not a folder"), std::string::npos);
  const ScratchFolder empty;
  EXPECT_NE(text_of(empty.path()).find("holds no JPEG files (found no files)"), std::string::npos);
  const ScratchFolder others;
  others.write("a.png", "x");
  others.write("b.png", "x");
  others.write("c.txt", "x");
  EXPECT_NE(text_of(others.path()).find("found 2 .png files, 1 other file"), std::string::npos)
      << text_of(others.path());
  const ScratchFolder hollow;
  hollow.write("a.jpg", "");
  EXPECT_NE(text_of(hollow.path()).find("none of its 1 JPEG files can be used"), std::string::npos);
}

TEST(FolderScan, RefusesAFolderThatItMayNotList) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may list everything";
  const ScratchFolder folder;
  folder.write("locked/a.jpg", "x");
  std::filesystem::permissions(folder.path() / "locked", std::filesystem::perms::none);
  const Result<FolderListing> listing = scan_folder(folder.path() / "locked");
  std::filesystem::permissions(folder.path() / "locked", std::filesystem::perms::owner_all);
  ASSERT_FALSE(listing);
  EXPECT_EQ(listing.error().code, ErrorCode::kIo);
}

}  // namespace
}  // namespace stoker
