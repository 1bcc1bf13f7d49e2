#include "input/data/image_pipeline.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>

#include "input/data/resample.h"
#include "input/data/test_pictures.h"

namespace stoker {
namespace {

PictureFault fault_of(const std::string& content, SampleRecord* out = nullptr) {
  const ScratchFolder folder;
  ImagePipeline pipeline({.image_size = 32});
  Random random(1);
  SampleRecord record;
  const PictureFault fault = pipeline.run(folder.write("a.jpg", content), random, record);
  if (out != nullptr) *out = record;
  return fault;
}

TEST(ImagePipeline, MeasuresAPicture) {
  const std::string jpeg = make_jpeg({.width = 200, .height = 120});
  SampleRecord record;
  ASSERT_EQ(fault_of(jpeg, &record), PictureFault::kNone);
  EXPECT_EQ(record.bytes.count(), static_cast<std::int64_t>(jpeg.size()));
  EXPECT_EQ(record.width, 200);
  EXPECT_EQ(record.height, 120);
  EXPECT_FALSE(record.progressive || record.grey || record.cmyk);
  Nanos sum;
  for (std::size_t s = 0; s < kStageCount; ++s) {
    EXPECT_GT(record.stage[s].count(), 0) << stage_name(static_cast<Stage>(s));
    sum += record.stage[s];
  }
  EXPECT_DOUBLE_EQ(record.total().count(), sum.count());
}

TEST(ImagePipeline, HandlesEveryKindOfJpeg) {
  SampleRecord record;
  EXPECT_EQ(fault_of(make_jpeg({.format = TJPF_GRAY}), &record), PictureFault::kNone);
  EXPECT_TRUE(record.grey);
  EXPECT_EQ(fault_of(make_jpeg({.format = TJPF_CMYK}), &record), PictureFault::kNone);
  EXPECT_TRUE(record.cmyk);
  EXPECT_EQ(fault_of(make_jpeg({.flags = TJFLAG_PROGRESSIVE}), &record), PictureFault::kNone);
  EXPECT_TRUE(record.progressive);
  EXPECT_EQ(fault_of(make_jpeg({.width = 1, .height = 1}), &record), PictureFault::kNone);
  EXPECT_EQ(fault_of(make_jpeg({.width = 3, .height = 900}), &record), PictureFault::kNone);
}

TEST(ImagePipeline, NamesEveryFault) {
  const std::string jpeg = make_jpeg();
  EXPECT_EQ(fault_of(""), PictureFault::kEmpty);
  EXPECT_EQ(fault_of("not a picture"), PictureFault::kNotPicture);
  EXPECT_EQ(fault_of("\xFF\xD8"), PictureFault::kNotPicture);
  EXPECT_EQ(fault_of("\x89PNG\r\n\x1a\n............."), PictureFault::kCorrupt);
  EXPECT_EQ(fault_of(jpeg.substr(0, jpeg.size() / 2)), PictureFault::kTruncated);
  EXPECT_EQ(fault_of(jpeg.substr(0, 40)), PictureFault::kCorrupt);
  EXPECT_EQ(fault_of("\xFF\xD8\xFF\xFF\xFF\xFF"), PictureFault::kCorrupt);
  EXPECT_EQ(fault_of(make_bomb()), PictureFault::kTooManyPixels);
}

TEST(ImagePipeline, RefusesFilesAboveTheLimit) {
  const ScratchFolder folder;
  ImagePipeline pipeline({.image_size = 8, .max_file = Bytes(100)});
  Random random(1);
  SampleRecord record;
  EXPECT_EQ(pipeline.run(folder.write("big.jpg", make_jpeg()), random, record),
            PictureFault::kFileTooBig);
  EXPECT_EQ(pipeline.run(folder.path() / "absent.jpg", random, record), PictureFault::kVanished);
  EXPECT_EQ(pipeline.run(folder.path(), random, record), PictureFault::kUnreadable);
}

TEST(ImagePipeline, RefusesAFileThatItMayNotRead) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  const ScratchFolder folder;
  const std::filesystem::path file = folder.write("a.jpg", make_jpeg());
  std::filesystem::permissions(file, std::filesystem::perms::none);
  ImagePipeline pipeline({.image_size = 8});
  Random random(1);
  SampleRecord record;
  EXPECT_EQ(pipeline.run(file, random, record), PictureFault::kUnreadable);
}

TEST(ImagePipeline, NormalisesAUniformPicture) {
  // A grey image of value v must come out as (v / 255 - mean) / deviation in each plane.
  std::vector<std::uint8_t> pixels(64 * 64, 128);
  tjhandle encoder = tjInitCompress();
  unsigned char* out = nullptr;
  unsigned long size = 0;
  ASSERT_EQ(
      tjCompress2(encoder, pixels.data(), 64, 0, 64, TJPF_GRAY, &out, &size, TJSAMP_GRAY, 100, 0),
      0);
  const ScratchFolder folder;
  const auto file = folder.write("g.jpg", {reinterpret_cast<char*>(out), size});
  tjFree(out);
  tjDestroy(encoder);
  ImagePipeline pipeline({.image_size = 16});
  Random random(3);
  SampleRecord record;
  ASSERT_EQ(pipeline.run(file, random, record), PictureFault::kNone);
  ASSERT_EQ(pipeline.output().size(), 3U * 16 * 16);
  const double mean[] = {0.485, 0.456, 0.406}, deviation[] = {0.229, 0.224, 0.225};
  for (std::size_t i = 0; i < pipeline.output().size(); ++i) {
    ASSERT_NEAR(pipeline.output()[i], (128.0 / 255 - mean[i / 256]) / deviation[i / 256], 1e-5);
  }
}

/// The definition, in doubles, one output pixel at a time: a triangle as wide as the reduction.
double by_definition(const std::vector<std::uint8_t>& pixels, int width, CropBox box, int size,
                     int x, int y, int c) {
  const double sx = static_cast<double>(box.width) / size,
               sy = static_cast<double>(box.height) / size;
  double sum = 0, weights = 0;
  for (int v = 0; v < box.height; ++v) {
    for (int u = 0; u < box.width; ++u) {
      const double wx = 1 - std::abs((u + 0.5 - (x + 0.5) * sx) / std::max(1.0, sx));
      const double wy = 1 - std::abs((v + 0.5 - (y + 0.5) * sy) / std::max(1.0, sy));
      if (wx <= 0 || wy <= 0) continue;
      sum +=
          wx * wy * pixels[(static_cast<std::size_t>(box.top + v) * width + box.left + u) * 3 + c];
      weights += wx * wy;
    }
  }
  return sum / weights;
}

TEST(Resample, MatchesItsDefinition) {
  const int width = 61, height = 47;
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(width) * height * 3);
  Random random(5);
  for (std::uint8_t& pixel : pixels) pixel = static_cast<std::uint8_t>(random.below(256));
  ResampleBuffers buffers;
  std::vector<std::uint8_t> out;
  for (const CropBox box : {CropBox{0, 0, 61, 47}, CropBox{10, 5, 9, 11}, CropBox{60, 46, 1, 1},
                            CropBox{3, 0, 50, 7}}) {
    const int size = 13;
    resample_bilinear({pixels.data(), width, height}, box, size, buffers, out);
    for (int y = 0; y < size; ++y) {
      for (int x = 0; x < size; ++x) {
        for (int c = 0; c < 3; ++c) {
          ASSERT_NEAR(out[(static_cast<std::size_t>(y) * size + x) * 3 + c],
                      by_definition(pixels, width, box, size, x, y, c), 1.01)
              << box.width << "x" << box.height << " at " << x << "," << y;
        }
      }
    }
  }
}

}  // namespace
}  // namespace stoker
