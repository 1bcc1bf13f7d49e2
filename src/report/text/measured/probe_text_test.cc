#include <gtest/gtest.h>

#include "report/model/report.h"

namespace stoker {
namespace {

/// 1,000,000 images of 100 KiB; the cores prepare 2 * 0.5 / 10 ms = 100 a second, storage gives
/// up to 50.
Probe example() {
  Probe probe;
  probe.dataset = {.name = "train",
                   .files = 1'000'000,
                   .files_estimate = 1'000'000,
                   .samples = 1'000'000,
                   .total_bytes = 100 * kGiB,
                   .mean_bytes = 107'374};
  probe.parallel = {.threads = 2, .efficiency = 0.5};
  SampleRecord sample;
  sample.bytes = Bytes(107'374);
  sample.width = sample.height = 400;
  sample.stage[static_cast<std::size_t>(Stage::kDecode)] = 10.0 * kMillisecond;
  probe.samples.assign(16, sample);
  StorageFacts& storage = probe.storage.emplace();
  storage.file_system = {.name = "nfs4", .kind = FileSystemKind::kNetwork};
  storage.method = ColdMethod::kDirect;
  storage.resident = {.share = 0.25, .files = 1000, .method = "cachestat"};
  const auto row = [](int depth, double rate) {
    return DepthFacts{.depth = depth,
                      .reads = 99,
                      .reads_per_s = rate,
                      .bytes_per_s = 1e5 * rate,
                      .mean_ms = 1e3 * depth / rate};
  };
  storage.whole_files = {row(1, 20), row(2, 35), row(4, 50), row(8, 48), row(16, 30)};
  storage.available = 10 * kGiB;
  return probe;
}

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(ProbeText, SaysWhatSetsThePace) {
  const std::string text = probe_text(example(), {}, {200 * kGiB});
  EXPECT_SAYS(text, "train: 1,000,000 pictures, 100.0 GiB");
  EXPECT_SAYS(text, "Storage delivers 50.0 pictures/s cold: storage sets the pace of every epoch");
  EXPECT_SAYS(text, "25 % of the data was in the page cache (cachestat of 1,000 files)");
  EXPECT_SAYS(text, "beyond that more workers make it worse");
  EXPECT_SAYS(text, "10.0 GiB (free here)");
  EXPECT_SAYS(text, "more workers than about 4 make it worse");
  EXPECT_SAYS(text, "125.0 GiB of memory would hold the data");
  EXPECT_SAYS(text, "tar shards");
  // 200 GiB hold all of it: the cores remain.
  EXPECT_SAYS(text, "100 %");
}

TEST(ProbeText, IsQuietAboutStorageThatWasNotMeasured) {
  Probe probe = example();
  probe.storage.reset();
  const std::string text = probe_text(probe, {});
  EXPECT_EQ(text.find("Storage"), std::string::npos) << text;
  EXPECT_EQ(text.find("Page cache"), std::string::npos);
  EXPECT_EQ(text.find("next:"), std::string::npos);
}

TEST(ProbeText, CallsSamplesByTheirName) {
  Probe text = example();
  text.kind = DataKind::kText;
  text.format = "lines of text, gzip";
  text.dataset.files = 3;
  text.dataset.samples_exact = false;
  const std::string lines = probe_text(text, {});
  EXPECT_SAYS(lines, "train: about 1,000,000 lines in 3 files (lines of text, gzip)");
  EXPECT_SAYS(lines, "lines/s");
  EXPECT_SAYS(lines, "tokenising comes on top");
  Probe records = example();
  records.kind = DataKind::kRecords;
  EXPECT_SAYS(probe_text(records, {}), "the records stay in memory");
}

TEST(ProbeText, NamesOtherDataThatLiesThere) {
  Probe probe = example();
  probe.diagnostics.add("other_data", Severity::kNote, "The folder holds texts too.");
  EXPECT_SAYS(probe_text(probe, {}), "note: The folder holds texts too.");
}

}  // namespace
}  // namespace stoker
