#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "input/data/data_set.h"
#include "input/data/test_data.h"
#include "input/data/test_pictures.h"
#include "input/probe/probe.h"

namespace stoker {
namespace {

const ProbeOptions kQuick{.budget = 0.4 * kSecond, .image_size = 32, .threads = 2};

TEST(BadFolder, OfManyFilesIsListedInBoundedTimeAndMemory) {
  // Hard links: a directory of many entries costs one file. A file may have 65,000 (ext4).
  const ScratchFolder folder;
  constexpr int kOriginals = 4, kLinks = 50'000;
  for (int o = 0; o < kOriginals; ++o) {
    const auto original = folder.write(std::to_string(o) + ".jpg", make_jpeg());
    for (int i = 0; i < kLinks; ++i) {
      const auto link = folder.path() / (std::to_string(o) + "-" + std::to_string(i) + ".jpg");
      if (::link(original.c_str(), link.c_str()) != 0) GTEST_SKIP() << "no hard links here";
    }
  }
  rusage before{}, after{};
  ::getrusage(RUSAGE_SELF, &before);
  const Result<FolderListing> all = scan_folder(folder.path());
  ::getrusage(RUSAGE_SELF, &after);
  ASSERT_TRUE(all) << all.error().text();
  EXPECT_EQ(all->of(FileKind::kPicture).count, kOriginals * (kLinks + 1));
  EXPECT_EQ(all->of(FileKind::kPicture).sample.size(), 4096U);
  EXPECT_FALSE(all->of(FileKind::kPicture).sizes_exact);
#ifndef __SANITIZE_ADDRESS__  // whose allocator keeps what was freed for a while
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 16 * 1024)
      << "KiB: the listing keeps a sample only";
#endif
  // The survey cut off: by a limit of entries, and by time (none at all).
  const Result<FolderListing> some = scan_folder(folder.path(), {.max_entries = 10'000});
  ASSERT_TRUE(some);
  EXPECT_EQ(some->of(FileKind::kPicture).count, 10'000);
  EXPECT_FALSE(some->complete);
  const Result<FolderListing> hasty = scan_folder(folder.path(), {.max_time = Nanos(1)});
  ASSERT_TRUE(hasty);
  EXPECT_LT(hasty->of(FileKind::kPicture).count, 2000);
  EXPECT_EQ(hasty->diagnostics.count("listing_cut_off"), 1);
}

TEST(BadFolder, ALimitedListingStillGivesAProbe) {
  const ScratchFolder folder;
  for (int c = 0; c < 10; ++c) {
    for (int i = 0; i < 10; ++i)
      folder.write(std::to_string(c) + "/" + std::to_string(i) + ".jpg", make_jpeg());
  }
  ProbeOptions options = kQuick;
  options.max_entries = 60;
  const Result<Probe> probe = probe_folder(folder.path(), options);
  ASSERT_TRUE(probe) << probe.error().text();
  EXPECT_FALSE(probe->dataset.files_exact);
  EXPECT_FALSE(probe->dataset.samples_exact);
  EXPECT_NEAR(static_cast<double>(probe->dataset.samples), 100, 40);
  EXPECT_GE(probe->dataset.files_estimate, probe->dataset.files);
}

TEST(BadFolder, OfEverythingAtOnceIsMeasuredAllTheSame) {
  const ScratchFolder folder;
  const std::string jpeg = make_jpeg(), png = make_png();
  for (int i = 0; i < 4; ++i) folder.write("good/" + std::to_string(i) + ".jpg", jpeg);
  folder.write("cmyk.jpg", make_jpeg({.format = TJPF_CMYK}));
  folder.write("progressive.jpg", make_jpeg({.flags = TJFLAG_PROGRESSIVE}));
  folder.write("sixteen.png", make_png({.depth = 16}));
  folder.write("empty.png", "");
  folder.write("half.jpg", jpeg.substr(0, jpeg.size() / 2));
  folder.write("half.png", png.substr(0, png.size() / 2));
  folder.write("bomb.jpg", make_bomb());
  folder.write("bomb.png", make_png_bomb());
  folder.write("misnamed.png", jpeg);
  folder.write("text.jpg", "no picture");
  std::filesystem::create_directory_symlink("..", folder.path() / "good" / "up");
  std::filesystem::create_symlink("nowhere.jpg", folder.path() / "dangling.jpg");
  ASSERT_EQ(::mkfifo((folder.path() / "pipe.jpg").c_str(), 0600), 0);
  const Result<Probe> probe = probe_folder(folder.path(), kQuick);
  ASSERT_TRUE(probe) << probe.error().text();
  EXPECT_EQ(probe->samples.size(), 8U);
  const auto count = [&](const char* name) { return probe->diagnostics.count(name); };
  EXPECT_EQ(count("cmyk_pictures"), 1);
  EXPECT_EQ(count("progressive_pictures"), 1);
  EXPECT_EQ(count("sixteen_bit_pictures"), 1);
  EXPECT_EQ(count("empty_picture"), 1);
  EXPECT_EQ(count("truncated_picture"), 2);
  EXPECT_EQ(count("decompression_bomb"), 2);
  EXPECT_EQ(count("misnamed_pictures"), 1);
  EXPECT_EQ(count("not_a_picture"), 1);
  EXPECT_EQ(count("broken_link"), 1);
  EXPECT_EQ(count("special_file"), 1);
}

TEST(BadFolder, FilesThatVanishOrTurnIntoPipesAreCounted) {
  const ScratchFolder folder;
  DataSet set;
  for (int i = 0; i < 3; ++i) {
    DataSample sample;
    sample.path = folder.write(std::to_string(i) + ".jpg", make_jpeg());
    set.samples.push_back(std::move(sample));
  }
  std::filesystem::remove(set.samples[1].path);
  std::filesystem::remove(set.samples[2].path);
  ASSERT_EQ(::mkfifo(set.samples[2].path.c_str(), 0600), 0);
  ImagePipeline pipeline({.image_size = 32});
  Random random(1);
  SampleRecord record;
  const auto run = [&](int i) {
    return run_sample(set.samples[i], DataKind::kPictures, pipeline, random, record);
  };
  EXPECT_EQ(run(0), PictureFault::kNone);
  EXPECT_EQ(run(1), PictureFault::kVanished);
  EXPECT_EQ(run(2), PictureFault::kUnreadable);
}

}  // namespace
}  // namespace stoker
