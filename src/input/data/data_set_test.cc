#include "input/data/data_set.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "input/data/records.h"
#include "input/data/tar_shards.h"
#include "input/data/test_data.h"
#include "input/data/test_pictures.h"
#include "input/data/text_lines.h"
#include "input/probe/probe.h"
#include "input/probe/probe_io.h"

namespace stoker {
namespace {

const ProbeOptions kQuick{.budget = 0.4 * kSecond, .image_size = 32, .threads = 2};

std::string shard(int samples, const std::string& prefix = "") {
  std::string out;
  for (int i = 0; i < samples; ++i) {
    const std::string key = prefix + "sample" + std::to_string(i);
    out += tar_member(key + ".jpg", make_jpeg({.width = 50 + i, .height = 40}));
    out += tar_member(key + ".cls", "7");
  }
  return out + tar_end();
}

/// A probe that has to work and to come through its file.
Probe probe_of(const std::filesystem::path& path, const ProbeOptions& options = kQuick) {
  Result<Probe> probe = probe_folder(path, options);
  EXPECT_TRUE(probe) << (probe ? "" : probe.error().text());
  if (!probe) return {};
  const Result<Probe> again = parse_probe(probe_to_json(*probe), "again");
  EXPECT_TRUE(again) << (again ? "" : again.error().text());
  if (again) {
    EXPECT_EQ(probe_to_json(*again), probe_to_json(*probe));
  }
  return std::move(*probe);
}

std::string error_of(const std::filesystem::path& path, const ProbeOptions& options = kQuick) {
  const Result<Probe> probe = probe_folder(path, options);
  return probe ? "no error" : probe.error().text();
}

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(DataSet, MeasuresPngBesideJpeg) {
  const ScratchFolder folder;
  for (int i = 0; i < 6; ++i) {
    folder.write("a/" + std::to_string(i) + ".jpg", make_jpeg());
    folder.write("a/" + std::to_string(i) + ".png", make_png({.width = 50 + i}));
  }
  folder.write("a/interlaced.png", make_png({.interlaced = true}));
  folder.write("a/sixteen.png", make_png({.depth = 16}));
  folder.write("a/really-a-png.jpg", make_png());
  const Probe probe = probe_of(folder.path());
  EXPECT_EQ(probe.kind, DataKind::kPictures);
  EXPECT_EQ(probe.samples.size(), 15U);
  EXPECT_EQ(probe.dataset.samples, 15);
  EXPECT_NEAR(probe.png_share, 9.0 / 15, 1e-9);
  EXPECT_GT(probe.decode.per_megapixel + probe.decode.per_megabyte, 0);
  EXPECT_GT(probe.decode_png.per_megapixel + probe.decode_png.per_megabyte, 0);
  EXPECT_EQ(probe.diagnostics.count("interlaced_pictures"), 1);
  EXPECT_EQ(probe.diagnostics.count("sixteen_bit_pictures"), 1);
  EXPECT_EQ(probe.diagnostics.count("misnamed_pictures"), 1);
}

TEST(TarKey, EndsAtTheFirstDotOfTheName) {
  EXPECT_EQ(tar_key("000001.jpg"), "000001");
  EXPECT_EQ(tar_key("train/a.b/0001.seg.png"), "train/a.b/0001");
  EXPECT_EQ(tar_key("./0001.cls"), "./0001");
  EXPECT_EQ(tar_key("x/.hidden"), "x/.hidden");
  EXPECT_EQ(tar_key("plain"), "plain");
}

TEST(TarShards, CountsSamplesByTheirKeys) {
  const ScratchFolder folder;
  folder.write("train-0.tar", shard(12));
  folder.write("train-1.tar", shard(8, "deep/"));
  const Probe probe = probe_of(folder.path());
  EXPECT_EQ(probe.kind, DataKind::kTarShards);
  EXPECT_EQ(probe.dataset.files, 2);
  EXPECT_EQ(probe.dataset.samples, 20);
  EXPECT_TRUE(probe.dataset.samples_exact);
  EXPECT_EQ(probe.samples.size(), 20U);
  for (const SampleRecord& sample : probe.samples) {
    EXPECT_GE(sample.width, 50);
    EXPECT_EQ(sample.bytes.count() % 512, 0);
    EXPECT_GT(sample.stage[static_cast<std::size_t>(Stage::kRead)].count(), 0);
  }
}

TEST(TarShards, SpreadsItsSampleOverAShard) {
  const ScratchFolder folder;
  folder.write("a.tar", shard(60));
  ProbeOptions options = kQuick;
  options.sample = 6;
  const Probe probe = probe_of(folder.path(), options);
  EXPECT_EQ(probe.dataset.samples, 60);
  ASSERT_EQ(probe.samples.size(), 6U);
  EXPECT_GT(probe.samples.back().width, 50 + 40) << "the last sixth of the shard is represented";
}

TEST(TarShards, ReadsCompressedOnesToo) {
  const ScratchFolder folder;
  folder.write("a.tar.gz", gzipped(shard(5)));
  const Probe probe = probe_of(folder.path() / "a.tar.gz");
  EXPECT_EQ(probe.dataset.samples, 5);
  EXPECT_EQ(probe.samples.size(), 5U);
}

TEST(TarShards, UsesADamagedOneAsFarAsItGoes) {
  const ScratchFolder folder;
  const std::string whole = shard(10);
  folder.write("cut.tar", whole.substr(0, whole.size() / 2));
  const Probe probe = probe_of(folder.path());
  EXPECT_EQ(probe.diagnostics.count("damaged_shard"), 1);
  EXPECT_GE(probe.samples.size(), 3U);
  EXPECT_LE(probe.samples.size(), 6U);
  EXPECT_FALSE(probe.dataset.samples_exact);
}

TEST(TarShards, SaysWhyItCannotBeUsed) {
  const ScratchFolder text, arrays, empty;
  text.write("a.tar", "this is no archive at all");
  EXPECT_SAYS(error_of(text.path()), "empty, damaged or no tar archives");
  arrays.write("a.tar", tar_member("0.npy", "xxxx") + tar_member("1.npy", "xxxx") + tar_end());
  EXPECT_SAYS(error_of(arrays.path()), "hold no JPEG or PNG pictures (found 2 .npy)");
  EXPECT_SAYS(error_of(arrays.path()), "FILE.py:FUNCTION");
  empty.write("a.tar", tar_end());
  EXPECT_SAYS(error_of(empty.path()), "empty, damaged or no tar archives");
}

TEST(Records, JudgesByTheFirstBytes) {
  RecordLayout layout;
  const auto judge = [&](const std::string& content, std::int64_t size) {
    return judge_records({reinterpret_cast<const std::uint8_t*>(content.data()),
                          std::min<std::size_t>(content.size(), 24592)},
                         size, layout);
  };
  EXPECT_EQ(judge(cifar10(3), 3 * 3073), RecordVerdict::kPictures);
  EXPECT_EQ(layout.format, "CIFAR-10 binary");
  EXPECT_EQ(layout.records, 3);
  EXPECT_EQ(judge(cifar10(3), 3 * 3073 + 1), RecordVerdict::kUnknown);
  std::string wrong_label = cifar10(3);
  wrong_label[3073] = 11;
  EXPECT_EQ(judge(wrong_label, 3 * 3073), RecordVerdict::kUnknown);
  std::string hundred;
  for (int r = 0; r < 4; ++r) hundred += std::string("\x05\x40") + std::string(3072, 'x');
  EXPECT_EQ(judge(hundred, 4 * 3074), RecordVerdict::kPictures);
  EXPECT_EQ(layout.format, "CIFAR-100 binary");
  const std::string idx = idx_pictures(4, 20, 10);
  EXPECT_EQ(judge(idx, static_cast<std::int64_t>(idx.size())), RecordVerdict::kPictures);
  EXPECT_EQ(layout.width, 10);
  EXPECT_EQ(layout.height, 20);
  EXPECT_EQ(layout.records, 4);
  EXPECT_EQ(judge(idx, static_cast<std::int64_t>(idx.size()) - 1), RecordVerdict::kTruncated);
  EXPECT_EQ(judge(std::string("\0\0\x08\x01\0\0\0\x02\1\2", 10), 10), RecordVerdict::kLabels);
  EXPECT_EQ(judge("\x80\x02}q\x01", 100), RecordVerdict::kPickle);
  EXPECT_EQ(judge("abc", 3), RecordVerdict::kUnknown);
  EXPECT_EQ(judge("", 0), RecordVerdict::kUnknown);
}

TEST(Records, MeasuresCifarWithoutItsTestSet) {
  const ScratchFolder folder;
  for (int b = 1; b <= 3; ++b)
    folder.write("data_batch_" + std::to_string(b) + ".bin", cifar10(100));
  folder.write("test_batch.bin", cifar10(50));
  folder.write("batches.meta.txt", "airplane\n");
  ProbeOptions options = kQuick;
  options.budget =
      4 * kSecond;  // enough for every wanted sample under a sanitizer on a busy machine
  const Probe probe = probe_of(folder.path(), options);
  EXPECT_EQ(probe.kind, DataKind::kRecords);
  EXPECT_EQ(probe.format, "CIFAR-10 binary");
  EXPECT_EQ(probe.dataset.files, 3);
  EXPECT_EQ(probe.dataset.samples, 300);
  EXPECT_EQ(probe.dataset.total_bytes.count(), 300 * 3073);
  EXPECT_EQ(probe.diagnostics.count("test_records_left_out"), 1);
  EXPECT_EQ(probe.samples.size(), 256U);
  EXPECT_TRUE(probe.samples[0].raw);
  EXPECT_EQ(probe.samples[0].width, 32);
}

TEST(Records, MeasuresCompressedIdx) {
  const ScratchFolder folder;
  folder.write("train-images-idx3-ubyte.gz", gzipped(idx_pictures(500, 28, 28)));
  folder.write("train-labels-idx1-ubyte.gz",
               gzipped(std::string("\0\0\x08\x01\0\0\x01\xF4", 8) + std::string(500, '\1')));
  const Probe probe = probe_of(folder.path());
  EXPECT_EQ(probe.format, "idx");
  EXPECT_EQ(probe.dataset.samples, 500);
  EXPECT_TRUE(probe.samples[0].grey);
}

TEST(Records, KeepsRawPixelsInOrder) {
  ImagePipeline pipeline({.image_size = 32});
  Random random(1);
  SampleRecord record;
  // Planes of one value each: whatever crop is drawn, the planes keep theirs.
  std::string pixels =
      std::string(1024, '\x10') + std::string(1024, '\x80') + std::string(1024, '\xF0');
  const RawPicture raw{
      {reinterpret_cast<const std::uint8_t*>(pixels.data()), pixels.size()}, 32, 32, 3};
  ASSERT_EQ(pipeline.run_raw(raw, {}, random, record), PictureFault::kNone);
  EXPECT_NEAR(pipeline.output()[5], (16.0 / 255 - 0.485) / 0.229, 1e-4);
  EXPECT_NEAR(pipeline.output()[1024 + 5], (128.0 / 255 - 0.456) / 0.224, 1e-4);
  EXPECT_NEAR(pipeline.output()[2048 + 5], (240.0 / 255 - 0.406) / 0.225, 1e-4);
  EXPECT_EQ(pipeline.run_raw({raw.pixels.first(100), 32, 32, 3}, {}, random, record),
            PictureFault::kTruncated);
}

TEST(Records, ExplainsWhatItCannotRead) {
  const ScratchFolder pickles, labels, binary, cut;
  pickles.write("data_batch_1", std::string("\x80\x02}q\x01(U") + std::string(100, 'x'));
  EXPECT_SAYS(error_of(pickles.path()), "pickles of Python");
  EXPECT_SAYS(error_of(pickles.path()), "FILE.py:FUNCTION");
  labels.write("train-labels-idx1-ubyte", std::string("\0\0\x08\x01\0\0\0\x02\1\2", 10));
  EXPECT_SAYS(error_of(labels.path()), "holds labels only");
  binary.write("weights.bin", std::string(1000, 'x'));
  EXPECT_SAYS(error_of(binary.path()), "neither CIFAR's nor idx");
  cut.write("train-images-idx3-ubyte", idx_pictures(10, 28, 28).substr(0, 500));
  EXPECT_SAYS(error_of(cut.path()), "shorter than their header says");
}

TEST(Text, SplitsLinesAndWords) {
  const LineCounts counts = split_lines("one two\n\n  three\tfour \nfive");
  EXPECT_EQ(counts.lines, 4);
  EXPECT_EQ(counts.words, 5);
  EXPECT_EQ(split_lines("").lines, 0);
  EXPECT_EQ(line_lengths("ab\n\nc"), (std::vector<std::int64_t>{3, 1, 1}));
}

TEST(Text, CountsLinesExactlyWhereItReadsAll) {
  const ScratchFolder folder;
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "line number " + std::to_string(i) + "\n";
  folder.write("a.txt", text);
  folder.write("b.jsonl.gz", gzipped(text));
  const Probe probe = probe_of(folder.path());
  EXPECT_EQ(probe.kind, DataKind::kText);
  EXPECT_EQ(probe.dataset.samples, 10'000);
  EXPECT_TRUE(probe.dataset.samples_exact);
  EXPECT_EQ(probe.dataset.files, 2);
  EXPECT_EQ(probe.format, "lines of text, partly gzip");
  EXPECT_EQ(probe.samples[0].width, 0);
  EXPECT_GT(probe.sample_ms.mean, 0);
  EXPECT_LT(probe.sample_ms.mean, 0.1) << "a line, not a block";
}

TEST(Text, ExtrapolatesByBytes) {
  const ScratchFolder folder;
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "exactly twenty bytes\n";
  folder.write("a.txt", text);
  ProbeOptions options = kQuick;
  options.max_read = Bytes(600'000);
  const Probe probe = probe_of(folder.path(), options);
  EXPECT_FALSE(probe.dataset.samples_exact);
  EXPECT_NEAR(static_cast<double>(probe.dataset.samples), 100'000, 1000);
}

TEST(Text, KeepsFilesOfFewLongLines) {  // as of web pages: a file's share ends before 256 lines
  const ScratchFolder folder;
  std::string text;
  for (int i = 0; i < 200; ++i) text += std::string(2999, 'x') + "\n";
  for (int i = 0; i < 8; ++i) folder.write("page" + std::to_string(i) + ".txt", text);
  ProbeOptions options = kQuick;
  options.max_read = Bytes(1'000'000);
  const Probe probe = probe_of(folder.path(), options);
  EXPECT_FALSE(probe.samples.empty());
  EXPECT_NEAR(static_cast<double>(probe.dataset.samples), 1600, 32);
}

TEST(Text, KeepsTheStartOfAFileOfOneLine) {
  const ScratchFolder folder;
  folder.write("a.txt", std::string(3'000'000, 'x'));
  ProbeOptions options = kQuick;
  options.max_read = Bytes(500'000);
  EXPECT_FALSE(probe_of(folder.path(), options).samples.empty());
}

TEST(Text, IsFoundByContentWhereNamesSayNothing) {
  const ScratchFolder folder;
  folder.write("train.en", "a sentence\nanother one\n");
  folder.write("train.fr.gz", gzipped("une phrase\n"));
  const Probe probe = probe_of(folder.path());
  EXPECT_EQ(probe.kind, DataKind::kText);
  EXPECT_EQ(probe.dataset.samples, 3);
}

TEST(Text, LeavesBinariesOut) {
  const ScratchFolder folder;
  folder.write("a.txt", "fine\n");
  folder.write("b.txt", std::string(5000, '\0'));
  EXPECT_EQ(probe_of(folder.path()).diagnostics.count("not_text"), 1);
  const ScratchFolder all;
  all.write("b.txt", std::string(5000, '\0'));
  EXPECT_SAYS(error_of(all.path()), "hold no text");
}

TEST(DataSet, TakesWhatFillsMostBytes) {
  const ScratchFolder folder;
  folder.write("shard.tar", shard(10));
  folder.write("preview.jpg", make_jpeg());
  folder.write("labels.csv", "a,b\n");
  const Probe probe = probe_of(folder.path());
  EXPECT_EQ(probe.kind, DataKind::kTarShards);
  EXPECT_EQ(probe.diagnostics.count("other_data"), 2);
  ProbeOptions options = kQuick;
  options.kind = DataKind::kPictures;
  EXPECT_EQ(probe_of(folder.path(), options).dataset.samples, 1);
  options.kind = DataKind::kRecords;
  EXPECT_SAYS(error_of(folder.path(), options), "no files of the kind records");
}

TEST(DataSet, SaysWhatItFoundInsteadOfData) {
  const ScratchFolder empty, unknown, hollow;
  EXPECT_SAYS(error_of(empty.path()), "holds no data that can be probed (found no files)");
  unknown.write("a.parquet", std::string(100, '\0'));
  unknown.write("b.parquet", std::string(100, '\0'));
  unknown.write("c", std::string(100, '\1'));
  EXPECT_SAYS(error_of(unknown.path()), "(found 2 .parquet files, 1 other file)");
  EXPECT_SAYS(error_of(unknown.path()), "FILE.py:FUNCTION");
  EXPECT_SAYS(error_of(unknown.path() / "c"), "is neither a picture");
  hollow.write("a.jpg", "");
  EXPECT_SAYS(error_of(hollow.path()), "none of its 1 pictures files can be used");
}

TEST(DataSet, ASinglePictureIsADataSet) {
  const ScratchFolder folder;
  const Probe probe = probe_of(folder.write("one.png", make_png()));
  EXPECT_EQ(probe.dataset.samples, 1);
  EXPECT_EQ(probe.dataset.name, "one.png");
}

TEST(DataSet, KindIsToldWithoutReading) {
  const ScratchFolder folder;
  folder.write("a.jpg", "");
  const auto kind = kind_of_data(folder.path());
  ASSERT_TRUE(kind) << kind.error().text();
  EXPECT_EQ(*kind, DataKind::kPictures);
}

}  // namespace
}  // namespace stoker
