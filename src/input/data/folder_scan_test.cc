#include "input/data/folder_scan.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "input/data/test_pictures.h"

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
  folder.write("shard-000.tar", "x");
  folder.write("array.npy", "x");
  const Result<FolderListing> listing = scan_folder(folder.path());
  ASSERT_TRUE(listing) << listing.error().text();
  EXPECT_EQ(listing->of(FileKind::kPicture).count, 8);
  EXPECT_EQ(listing->of(FileKind::kTar).count, 1);
  EXPECT_EQ(listing->of(FileKind::kText).count, 1);
  EXPECT_EQ(listing->of(FileKind::kOther).count, 1);
  EXPECT_EQ(listing->endings.at("npy"), 1);
  EXPECT_EQ(listing->folders, 4);
  EXPECT_TRUE(listing->complete);
  EXPECT_TRUE(listing->of(FileKind::kPicture).sizes_exact);
  EXPECT_EQ(listing->of(FileKind::kPicture).total_bytes.count(),
            100 + 101 + 102 + 103 + 104 + 500 + 2);
  EXPECT_EQ(listing->name, folder.path().filename().string());
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
  EXPECT_EQ(listing->of(FileKind::kPicture).count, 1);
  EXPECT_EQ(listing->diagnostics.count("broken_link"), 2);
}

TEST(FolderScan, FollowsLinksToFilesAndFolders) {
  const ScratchFolder elsewhere, folder;
  elsewhere.write("real/one.jpg", "xy");
  std::filesystem::create_directory_symlink(elsewhere.path() / "real", folder.path() / "linked");
  std::filesystem::create_symlink(elsewhere.path() / "real" / "one.jpg", folder.path() / "two.jpg");
  const Result<FolderListing> listing = scan_folder(folder.path());
  ASSERT_TRUE(listing) << listing.error().text();
  EXPECT_EQ(listing->of(FileKind::kPicture).count, 2);
}

TEST(FolderScan, ExtrapolatesFromASample) {
  const ScratchFolder folder;
  for (int i = 0; i < 300; ++i)
    folder.write(std::to_string(i) + ".jpg", std::string(1000 + i % 10, 'x'));
  const Result<FolderListing> listing = scan_folder(folder.path(), {.sample = 50});
  ASSERT_TRUE(listing) << listing.error().text();
  EXPECT_EQ(listing->of(FileKind::kPicture).count, 300);
  EXPECT_EQ(listing->of(FileKind::kPicture).sample.size(), 50U);
  EXPECT_FALSE(listing->of(FileKind::kPicture).sizes_exact);
  EXPECT_NEAR(static_cast<double>(listing->of(FileKind::kPicture).total_bytes.count()),
              300 * 1004.5, 300 * 4.5);
}

TEST(FolderScan, SampleIsUniformAndFixedByItsSeed) {
  const ScratchFolder folder;
  for (int i = 0; i < 200; ++i)
    folder.write((i < 100 ? "a/" : "b/") + std::to_string(i) + ".jpg", "x");
  const auto sample = [&](std::uint64_t seed) {
    return scan_folder(folder.path(), {.sample = 40, .seed = seed})->of(FileKind::kPicture).sample;
  };
  const std::vector<DataFile> first = sample(7), again = sample(7), other = sample(8);
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
  EXPECT_FALSE(listing->of(FileKind::kPicture).sizes_exact);
  EXPECT_EQ(listing->of(FileKind::kPicture).count, 30);
  EXPECT_EQ(listing->diagnostics.count("listing_cut_off"), 1);
}

TEST(FolderScan, LeavesEmptyFilesOut) {
  const ScratchFolder folder;
  folder.write("full.jpg", "x");
  folder.write("empty.jpg", "");
  const Result<FolderListing> listing = scan_folder(folder.path());
  ASSERT_TRUE(listing) << listing.error().text();
  EXPECT_EQ(listing->of(FileKind::kPicture).count, 2);
  EXPECT_EQ(listing->of(FileKind::kPicture).sample.size(), 1U);
  EXPECT_EQ(listing->diagnostics.count("empty_picture"), 1);
}

TEST(FolderScan, DoesNotOpenPipes) {
  const ScratchFolder folder;
  folder.write("one.jpg", "x");
  ASSERT_EQ(::mkfifo((folder.path() / "pipe.jpg").c_str(), 0600), 0);
  const Result<FolderListing> listing = scan_folder(folder.path());
  ASSERT_TRUE(listing) << listing.error().text();
  EXPECT_EQ(listing->of(FileKind::kPicture).count, 1);
  EXPECT_EQ(listing->diagnostics.count("special_file"), 1);
}

TEST(FolderScan, SaysWhatIsWrongWithAFolder) {
  const ScratchFolder folder;
  const Result<FolderListing> missing = scan_folder(folder.path() / "missing");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().text(),
            (folder.path() / "missing").string() + ": no such file or folder; check the path");
  EXPECT_NE(scan_folder("s3://bucket/images", {}).error().message.find("{storage} s3"),
            std::string::npos);
  ASSERT_EQ(::mkfifo((folder.path() / "pipe").c_str(), 0600), 0);
  const Result<FolderListing> pipe = scan_folder(folder.path() / "pipe");
  ASSERT_FALSE(pipe);
  EXPECT_NE(pipe.error().text().find("neither a folder nor a file"), std::string::npos);
}

TEST(FolderScan, TakesASingleFile) {
  const ScratchFolder folder;
  const auto file = folder.write("shard.tar.gz", "xyz");
  const Result<FolderListing> listing = scan_folder(file);
  ASSERT_TRUE(listing) << listing.error().text();
  EXPECT_EQ(listing->of(FileKind::kTar).count, 1);
  ASSERT_EQ(listing->of(FileKind::kTar).sample.size(), 1U);
  EXPECT_EQ(listing->of(FileKind::kTar).sample[0].path, file);
  EXPECT_EQ(listing->name, "shard.tar.gz");
}

TEST(FolderScan, EstimatesWhatItDidNotList) {
  const ScratchFolder folder;
  for (int c = 0; c < 20; ++c) {
    for (int i = 0; i < 10; ++i)
      folder.write(std::to_string(c) + "/" + std::to_string(i) + ".jpg", "x");
  }
  // The root's 20 entries, then a few folders of 10.
  const Result<FolderListing> listing = scan_folder(folder.path(), {.max_entries = 75});
  ASSERT_TRUE(listing) << listing.error().text();
  EXPECT_FALSE(listing->complete);
  const double estimate =
      static_cast<double>(listing->of(FileKind::kPicture).count) * listing->beyond_listing;
  EXPECT_NEAR(estimate, 200, 50);
}

TEST(FileKind, KnowsFilesByTheirNames) {
  const std::pair<const char*, FileKind> cases[] = {
      {"a.JPEG", FileKind::kPicture},
      {"a.png", FileKind::kPicture},
      {"train-0001.tar", FileKind::kTar},
      {"train.tar.gz", FileKind::kTar},
      {"train.tgz", FileKind::kTar},
      {"data_batch_1.bin", FileKind::kRecords},
      {"data_batch_1", FileKind::kRecords},
      {"train-images-idx3-ubyte", FileKind::kRecords},
      {"train-images-idx3-ubyte.gz", FileKind::kRecords},
      {"t10k-images.idx3-ubyte", FileKind::kRecords},
      {"corpus.txt", FileKind::kText},
      {"corpus.jsonl.gz", FileKind::kText},
      {"batches.meta.txt", FileKind::kOther},
      {"README.txt", FileKind::kOther},
      {"train.parquet", FileKind::kOther},
      {"noending", FileKind::kOther},
      {".hidden", FileKind::kOther},
  };
  for (const auto& [name, kind] : cases) EXPECT_EQ(file_kind(name), kind) << name;
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
