#include "input/probe/probe.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <set>

#include "input/data/test_pictures.h"
#include "input/probe/probe_io.h"
#include "system/contention.h"

namespace stoker {
namespace {

const ProbeOptions kQuick{.budget = 1.0 * kSecond, .image_size = 32, .threads = 2};

void fill(const ScratchFolder& folder, int pictures) {
  for (int i = 0; i < pictures; ++i) {
    folder.write("class" + std::to_string(i % 3) + "/" + std::to_string(i) + ".jpg",
                 make_jpeg({.width = 60 + i * 5, .height = 50 + i % 4 * 20}));
  }
}

TEST(Probe, MeasuresAFolder) {
  const ScratchFolder folder;
  fill(folder, 20);
  folder.write("progressive.jpg", make_jpeg({.flags = TJFLAG_PROGRESSIVE}));
  std::set<std::string> phases;
  double last = 0;
  const Result<Probe> probe =
      probe_folder(folder.path(), kQuick, [&](std::string_view phase, double share) {
        phases.emplace(phase);
        EXPECT_GE(share, 0);
        EXPECT_LE(share, 1);
        last = share;
      });
  ASSERT_TRUE(probe) << probe.error().text();
  EXPECT_EQ(probe->dataset.files, 21);
  EXPECT_TRUE(probe->dataset.files_exact && probe->dataset.bytes_exact);
  EXPECT_EQ(probe->samples.size(), 21U);
  EXPECT_EQ(probe->parallel.threads, 2);
  EXPECT_GT(probe->sample_ms.mean, 0);
  EXPECT_LE(probe->sample_ms.median, probe->sample_ms.p95);
  EXPECT_GE(probe->contention.wall_per_cpu, 1);
  EXPECT_NEAR(probe->decode.progressive_share, 1.0 / 21, 1e-9);
  EXPECT_EQ(probe->diagnostics.count("progressive_pictures"), 1);
  EXPECT_EQ(probe->provenance.folder_hash.size(), 16U);
  EXPECT_EQ(phases,
            (std::set<std::string>{"listing", "cold read", "storage", "one core", "all cores"}));
  EXPECT_EQ(last, 1);
}

TEST(Probe, DoesNotSayWhereTheFolderLies) {
  const ScratchFolder folder;
  fill(folder, 2);
  const Result<Probe> probe = probe_folder(folder.path(), kQuick);
  ASSERT_TRUE(probe) << probe.error().text();
  EXPECT_EQ(probe_to_json(*probe).find(folder.path().parent_path().string()), std::string::npos);
}

TEST(Probe, OnePictureIsEnough) {
  const ScratchFolder folder;
  fill(folder, 1);
  const Result<Probe> probe = probe_folder(folder.path(), kQuick);
  ASSERT_TRUE(probe) << probe.error().text();
  EXPECT_EQ(probe->samples.size(), 1U);
  EXPECT_EQ(probe->sample_ms.sd, 0);
  EXPECT_TRUE(parse_probe(probe_to_json(*probe)));
}

TEST(Probe, CountsBrokenPicturesAndUsesTheRest) {
  const ScratchFolder folder;
  fill(folder, 6);
  const std::string jpeg = make_jpeg();
  folder.write("text.jpg", "not a picture");
  folder.write("half.jpg", jpeg.substr(0, jpeg.size() / 2));
  folder.write("bomb.jpg", make_bomb());
  folder.write("empty.jpg", "");
  const Result<Probe> probe = probe_folder(folder.path(), kQuick);
  ASSERT_TRUE(probe) << probe.error().text();
  EXPECT_EQ(probe->samples.size(), 6U);
  EXPECT_EQ(probe->diagnostics.count("not_a_picture"), 1);
  EXPECT_EQ(probe->diagnostics.count("truncated_picture"), 1);
  EXPECT_EQ(probe->diagnostics.count("decompression_bomb"), 1);
  EXPECT_EQ(probe->diagnostics.count("empty_picture"), 1);
}

TEST(Probe, RefusesAFolderOfBrokenPictures) {
  const ScratchFolder folder;
  folder.write("a.jpg", "text");
  folder.write("b.jpg", "text");
  const Result<Probe> probe = probe_folder(folder.path(), kQuick);
  ASSERT_FALSE(probe);
  EXPECT_EQ(probe.error().code, ErrorCode::kBadInput);
  EXPECT_NE(
      probe.error().message.find("none of the 2 pictures tried could be decoded (2 not_a_picture)"),
      std::string::npos)
      << probe.error().message;
}

TEST(Probe, KeepsToItsReadLimit) {
  const ScratchFolder folder;
  fill(folder, 10);
  ProbeOptions options = kQuick;
  options.max_read =
      Bytes(static_cast<std::int64_t>(make_jpeg({.width = 60, .height = 50}).size()) * 3);
  const Result<Probe> probe = probe_folder(folder.path(), options);
  ASSERT_TRUE(probe) << probe.error().text();
  EXPECT_LT(probe->samples.size(), 4U);
  options.max_read = Bytes(10);
  const Result<Probe> none = probe_folder(folder.path(), options);
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("--max-read"), std::string::npos);
}

TEST(Probe, SamplesNoMoreThanAsked) {
  const ScratchFolder folder;
  fill(folder, 12);
  ProbeOptions options = kQuick;
  options.sample = 5;
  const Result<Probe> probe = probe_folder(folder.path(), options);
  ASSERT_TRUE(probe) << probe.error().text();
  EXPECT_EQ(probe->samples.size(), 5U);
  EXPECT_EQ(probe->dataset.files, 12);
}

TEST(Probe, LeavesNothingBehind) {
  const ScratchFolder folder;
  fill(folder, 3);
  ASSERT_TRUE(probe_folder(folder.path(), kQuick));
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path()))
    files += entry.is_regular_file();
  EXPECT_EQ(files, 3);
}

SampleRecord sample_of(int width, int height, std::int64_t bytes, double decode_ms,
                       bool progressive = false) {
  SampleRecord sample;
  sample.width = width;
  sample.height = height;
  sample.bytes = Bytes(bytes);
  sample.progressive = progressive;
  sample.stage[static_cast<std::size_t>(Stage::kDecode)] = decode_ms * kMillisecond;
  return sample;
}

TEST(DecodeFit, RecoversKnownCoefficients) {
  std::vector<SampleRecord> samples;
  for (int i = 1; i <= 10; ++i) {
    const int side = 100 * i;
    const std::int64_t bytes = 5000 * (1 + i * i % 7);
    const double expected = 5.0 * 1e-6 * side * side + 12.1 * 1e-6 * static_cast<double>(bytes);
    samples.push_back(sample_of(side, side, bytes, expected));
    if (i > 7) samples.push_back(sample_of(side, side, bytes, 2.5 * expected, true));
  }
  const DecodeFit fit = fit_decode(samples);
  EXPECT_NEAR(fit.per_megapixel, 5.0, 1e-9);
  EXPECT_NEAR(fit.per_megabyte, 12.1, 1e-9);
  EXPECT_NEAR(fit.r2, 1, 1e-9);
  EXPECT_NEAR(fit.progressive_share, 3.0 / 13, 1e-9);
  EXPECT_NEAR(fit.progressive_ratio, 2.5, 1e-9);
}

TEST(DecodeFit, NeverGivesANegativeCost) {
  // Decode time falls with bytes here: the bytes' term is dropped.
  std::vector<SampleRecord> samples = {sample_of(100, 100, 90'000, 0.10),
                                       sample_of(100, 100, 10'000, 0.14),
                                       sample_of(200, 100, 10'000, 0.25)};
  const DecodeFit fit = fit_decode(samples);
  EXPECT_GT(fit.per_megapixel, 0);
  EXPECT_EQ(fit.per_megabyte, 0);
  const DecodeFit alike = fit_decode({sample_of(100, 100, 1000, 1), sample_of(100, 100, 1000, 1)});
  EXPECT_NEAR(alike.per_megapixel, 100, 1e-6);
  EXPECT_EQ(alike.per_megabyte, 0);
  EXPECT_EQ(fit_decode({}).per_megapixel, 0);
}

TEST(Spread, KnowsItsMoments) {
  const Spread spread = spread_of({4, 2, 8, 6});
  EXPECT_EQ(spread.mean, 5);
  EXPECT_EQ(spread.median, 6);
  EXPECT_NEAR(spread.sd, 2.2360679, 1e-6);
  EXPECT_EQ(spread.p95, 8);
  EXPECT_EQ(spread_of({}).mean, 0);
}

TEST(Contention, WarnsOnlyWhenDisturbed) {
  EXPECT_EQ(contention_warning({}), "");
  const std::string text =
      contention_warning({.wall_per_cpu = 1.5, .run_queue_share = 0.3, .disturbed = true});
  EXPECT_NE(text.find("50 % more wall than CPU time"), std::string::npos) << text;
  EXPECT_NE(text.find("repeat the probe"), std::string::npos);
}

TEST(Contention, SleepLooksLikeDisturbance) {
  // The meter is meant for threads that never sleep: time off the core shows, whatever the reason.
  const ContentionMeter meter;
  ::usleep(20'000);
  const Contention load = meter.finish();
  EXPECT_GT(load.wall_per_cpu, kDisturbedWallPerCpu);
  EXPECT_TRUE(load.disturbed);
}

}  // namespace
}  // namespace stoker
