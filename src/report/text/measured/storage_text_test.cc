#include "report/text/measured/storage_text.h"

#include <gtest/gtest.h>

#include "report/text/test_text.h"

namespace stoker {
namespace {

using testing_support::has;

DepthFacts depth(int reads_at_once, double reads_per_s, double bytes_per_s, double mean_ms) {
  DepthFacts facts;
  facts.depth = reads_at_once;
  facts.reads_per_s = reads_per_s;
  facts.bytes_per_s = bytes_per_s;
  facts.mean_ms = mean_ms;
  return facts;
}

/// Pictures on a disk that serves four readers best.
Probe pictures() {
  Probe probe;
  probe.dataset.total_bytes = kGiB * 80;
  probe.dataset.samples = 800'000;
  StorageFacts storage;
  storage.method = ColdMethod::kDirect;
  storage.random_4k = {depth(1, 9000, 9000 * 4096.0, 0.11), depth(4, 30000, 30000 * 4096.0, 0.13)};
  storage.whole_files = {depth(1, 200, 20e6, 5), depth(4, 600, 60e6, 6.7),
                         depth(16, 450, 45e6, 35)};
  storage.stat_us = 2.5;
  storage.available = kGiB * 32;
  probe.storage = storage;
  return probe;
}

TEST(StorageText, NothingWhereNothingWasMeasured) {
  EXPECT_EQ(storage_text(Probe()), "");
  EXPECT_EQ(cache_text(Probe(), {}), "");
  EXPECT_EQ(pace_text(Probe(), {}), "");
  EXPECT_TRUE(storage_advice(Probe(), {}).empty());
}

TEST(StorageText, ReadsByTheirNumberAtOnce) {
  const std::string text = storage_text(pictures());
  EXPECT_TRUE(has(text, "cold reads by O_DIRECT")) << text;
  EXPECT_TRUE(has(text, "stat 2.5 us") || has(text, "stat 2.50 us")) << text;
  // Five columns; what was not measured is a dash.
  const auto row = [&](const std::string& name) {
    const auto at = text.find(name);
    std::string line = text.substr(at, text.find('\n', at) - at).substr(name.size());
    std::vector<std::string> cells;
    std::string cell;
    for (const char c : line + " ") {
      if (c != ' ') cell += c;
      else if (!cell.empty()) cells.push_back(std::exchange(cell, ""));
    }
    return cells;
  };
  EXPECT_EQ(row("reads at once"), (std::vector<std::string>{"1", "2", "4", "8", "16"}));
  EXPECT_EQ(row("4 KiB reads/s"), (std::vector<std::string>{"9,000", "-", "30,000", "-", "-"}));
  EXPECT_EQ(row("files/s"), (std::vector<std::string>{"200", "-", "600", "-", "450"}));
  EXPECT_EQ(row("files, MB/s").size(), 5u);
  EXPECT_EQ(row("files, MB/s")[0], "20.0");
}

TEST(StorageText, HowWhatIsColdWasRead) {
  Probe probe = pictures();
  probe.storage->method = ColdMethod::kForget;
  EXPECT_TRUE(has(storage_text(probe), "through an emptied page cache"));
  probe.storage->method = ColdMethod::kNone;
  EXPECT_TRUE(has(storage_text(probe), "no cold reads here"));
  probe.storage->resident.files = 1200;
  probe.storage->resident.share = 0.25;
  probe.storage->resident.method = "mincore";
  probe.storage->sequential_bytes_per_s = 3.0 * 1024 * 1024;
  probe.storage->small_file_warm_us = 12;
  probe.storage->list_entries_per_s = 50000;
  const std::string text = storage_text(probe);
  EXPECT_TRUE(has(text, "25 % of the data was in the page cache (mincore of 1,200 files)")) << text;
  EXPECT_TRUE(has(text, "3.0 MiB/s")) << text;
  EXPECT_TRUE(has(text, "listing 50,000 entries/s")) << text;
}

TEST(StorageText, TooManyReadersAreNamed) {
  const auto advice = storage_advice(pictures(), {});
  ASSERT_EQ(advice.size(), 1u);
  EXPECT_EQ(advice[0],
            "4 reads at once give 600 files/s, 16 give 450: more workers than about 4 make it "
            "worse");
  Probe probe = pictures();
  probe.storage->whole_files.back().reads_per_s = 541;  // nine tenths of 600 are 540
  EXPECT_TRUE(storage_advice(probe, {}).empty());
}

TEST(StorageText, MemoryThatWouldHoldTheDataIsNamed) {
  CacheWhatIf row;
  row.disk_bound = true;
  Probe probe = pictures();
  probe.storage->whole_files.pop_back();  // the best depth is the deepest
  auto advice = storage_advice(probe, {row});
  ASSERT_EQ(advice.size(), 2u);
  // 80 GiB of data, of which memory gives eight tenths to the page cache.
  EXPECT_TRUE(has(advice[0], "100.0 GiB of memory would hold the data")) << advice[0];
  EXPECT_TRUE(has(advice[1], "tar shards")) << advice[1];
  probe.storage->sequential_bytes_per_s = 1e9;
  EXPECT_EQ(storage_advice(probe, {row}).size(), 1u) << "there are large files already";
  row.disk_bound = false;
  EXPECT_TRUE(storage_advice(probe, {row}).empty());
}

TEST(StorageText, AContainersLimitThatKeepsTheDataOut) {
  Probe probe = pictures();
  probe.storage->whole_files.pop_back();
  probe.dataset.total_bytes = kGiB * 20;
  probe.storage->limit = kGiB * 8;
  const auto advice = storage_advice(probe, {});
  ASSERT_EQ(advice.size(), 1u);
  EXPECT_TRUE(has(advice[0], "(8.0 GiB)") && has(advice[0], "32.0 GiB free")) << advice[0];
  probe.storage->limit = kGiB * 24;  // the data fits within it
  EXPECT_TRUE(storage_advice(probe, {}).empty());
  probe.storage->limit = kGiB * 8;
  probe.dataset.total_bytes = kGiB * 40;  // nor would the host hold it
  EXPECT_TRUE(storage_advice(probe, {}).empty());
}

TEST(StorageText, WhatSetsThePace) {
  const Probe probe = pictures();  // 600 files/s at best
  CacheWhatIf row;
  row.first_per_s = 500;
  EXPECT_EQ(pace_text(probe, {row}),
            "Storage delivers 600 pictures/s cold: the cores set the pace\n");
  row.first_per_s = 600;
  EXPECT_TRUE(has(pace_text(probe, {row}), "of the first epoch, the cores later"));
  row.disk_bound = true;
  EXPECT_TRUE(has(pace_text(probe, {row}), "storage sets the pace of every epoch"));
}

TEST(StorageText, EpochsBesideMemories) {
  CacheWhatIf here{.memory = kGiB * 32,
                   .this_host = true,
                   .cached = 0.25,
                   .first_per_s = 600,
                   .later_per_s = 800,
                   .first_seconds = 1200,
                   .later_seconds = 900,
                   .disk_bound = true};
  const std::string text = cache_text(pictures(), {here});
  EXPECT_TRUE(has(text, "Page cache: 80.0 GiB of data")) << text;
  EXPECT_TRUE(has(text, "32.0 GiB (free here)") && has(text, "25 %") && has(text, "storage"));
  here.this_host = here.disk_bound = false;
  const std::string other = cache_text(pictures(), {here});
  EXPECT_FALSE(has(other, "free here"));
  EXPECT_TRUE(has(other, "cores"));
}

}  // namespace
}  // namespace stoker
