#include "scenario/sources/data_source.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "device/host/storage_kind.h"
#include "forecast/knowledge.h"

namespace stoker {
namespace {

/// A model of pictures of 224 px, and one of sequences.
SampleTaker of_pictures() { return {{Bytes(3 * 224 * 224 * 4), 2}, 224, "resnet50 takes img"}; }
SampleTaker of_text() { return {{Bytes(1024), 2}, 0, "gpt2 takes sequence"}; }

Result<LoadedData> loaded(const DataRequest& request, const SampleTaker& taker) {
  static const LoaderProfile kProfile = load_knowledge().value().loader;
  return load_data_for(request, taker, kProfile, ScenarioTools{});
}

std::string refusal(const DataRequest& request, const SampleTaker& taker) {
  const auto data = loaded(request, taker);
  return data ? "" : data.error().text();
}

TEST(DataSource, WithoutDataNothingIsKnown) {
  const LoadedData data = loaded({}, of_pictures()).value();
  EXPECT_FALSE(data.sample.known);
  EXPECT_EQ(data.samples, 0);
  EXPECT_EQ(loaded({.path = "", .samples = 500}, of_pictures())->samples, 500)
      << "an epoch's size alone";
}

TEST(DataSource, AGivenCostIsTakenAsItIs) {
  const LoadedData data =
      loaded({.path = "", .sample_cost = 3 * kMillisecond, .samples = 1000}, of_pictures()).value();
  EXPECT_TRUE(data.sample.known);
  EXPECT_EQ(data.sample.cpu, std::vector{3 * kMillisecond});
  EXPECT_EQ(data.sample.read_bytes, 0) << "no storage is read";
  EXPECT_EQ(data.samples, 1000);
  EXPECT_EQ(refusal({.path = "imagenet", .sample_cost = kMillisecond}, of_pictures()),
            "{sample-cost}: give either {data} or {sample-cost}");
}

TEST(DataSource, CostsThatWereSeenTakeTheModelsBytes) {
  SampleCost seen;
  seen.known = true;
  seen.cpu = {7 * kMillisecond};
  const LoadedData data = loaded({.path = "", .observed = seen}, of_pictures()).value();
  EXPECT_EQ(data.sample.cpu, std::vector{7 * kMillisecond});
  EXPECT_EQ(data.sample.output, of_pictures().shape.bytes_per_sample);
}

TEST(DataSource, WellKnownDataByAnyOfItsNames) {
  const LoadedData data = loaded({.path = "imagenet"}, of_pictures()).value();
  EXPECT_TRUE(data.well_known);
  EXPECT_EQ(data.samples, 1'281'167);
  EXPECT_FALSE(data.probe || data.pipeline);
  EXPECT_EQ(loaded({.path = "ImageNet-1k"}, of_pictures())->samples, data.samples);
}

/// A part of a data set, or a larger one like it: the mean size stays, and the bytes follow.
TEST(DataSource, AnEpochOfAnotherSizeTakesItsBytesWithIt) {
  const LoadedData whole = loaded({.path = "imagenet"}, of_pictures()).value();
  const LoadedData half =
      loaded({.path = "imagenet", .samples = whole.samples / 2}, of_pictures()).value();
  EXPECT_EQ(half.samples, whole.samples / 2);
  EXPECT_EQ(half.sample.dataset_samples, half.samples);
  EXPECT_EQ(half.sample.read_bytes, whole.sample.read_bytes);
  EXPECT_NEAR(static_cast<double>(half.sample.dataset_bytes.count()),
              half.sample.read_bytes * static_cast<double>(half.samples), 1);
  EXPECT_NE(half.sample.basis.find("; taken for 640,583 samples of that mean size, "),
            std::string::npos)
      << half.sample.basis;
  EXPECT_EQ(loaded({.path = "imagenet", .samples = whole.samples}, of_pictures())->sample.basis,
            whole.sample.basis);
}

TEST(DataSource, DataOfAnotherKindThanTheModelTakes) {
  EXPECT_EQ(
      refusal({.path = "imagenet"}, of_text()),
      "imagenet: holds pictures, but gpt2 takes sequence; name other data, or give the cost of "
      "a sample with {sample-cost} and their number with {samples}");
  EXPECT_TRUE(refusal({.path = "openwebtext-tokens"}, of_pictures())
                  .starts_with("openwebtext-tokens: holds text, but resnet50 takes img;"));
  EXPECT_TRUE(refusal({.path = "librispeech"}, of_text())
                  .starts_with("librispeech: holds recordings, but gpt2 takes sequence;"));
  EXPECT_TRUE(refusal({.path = "librispeech"}, of_pictures())
                  .starts_with("librispeech: holds recordings, but resnet50 takes img;"));
  SampleTaker anything = of_pictures();
  anything.who = "";
  EXPECT_EQ(refusal({.path = "openwebtext-tokens"}, anything), "") << "no model says what it takes";
}

TEST(DataSource, ANameThatIsNothingLeadsToWhatIsNear) {
  const std::string said = refusal({.path = "imagenett"}, of_pictures());
  EXPECT_TRUE(
      said.starts_with("imagenett: is neither a folder nor a file here, nor a well-known data "
                       "set; did you mean imagenet"))
      << said;
  EXPECT_NE(said.find("(known by name: "), std::string::npos);
  EXPECT_EQ(refusal({.path = "no/such/folder"}, of_pictures()).find("known by name"),
            std::string::npos)
      << "a path is no name";
}

/// A text file of this test, told apart by its kind from a probe file.
class DataFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::temp_directory_path() / ("data_source." + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  std::filesystem::path folder_;
};

TEST_F(DataFile, WhatIsDataAndWhatMayBeAProbe) {
  EXPECT_TRUE(is_data_file(write("lines.txt", "a\nb\n")));
  EXPECT_TRUE(is_data_file(write("shard.tar", "")));
  EXPECT_FALSE(is_data_file(write("probe.json", "{}")));
  EXPECT_FALSE(is_data_file(folder_.string())) << "a folder";
  EXPECT_FALSE(is_data_file((folder_ / "none.tar").string()));
}

TEST_F(DataFile, TextForAModelOfPicturesIsRefusedBeforeItIsProbed) {
  const std::string path = write("lines.txt", "a line of text\n");
  EXPECT_EQ(
      refusal({.path = path}, of_pictures()),
      path +
          ": holds text, but resnet50 takes img; give the cost of a sample with {sample-cost} "
          "and their number with {samples}");
}

TEST_F(DataFile, ADamagedProbeFileIsRefusedByItsName) {
  const std::string path =
      write("probe.json", R"({"format": "stoker-probe", "schema_version": [9, 0]})");
  const std::string said = refusal({.path = path}, of_pictures());
  EXPECT_TRUE(said.starts_with(path + ": ")) << said;
  EXPECT_NE(said.find("probe the folder again"), std::string::npos) << said;
}

TEST(TakeStorage, TheKindFillsWhatTheHostDoesNotSay) {
  SampleCost sample;
  sample.known = true;
  sample.read_bytes = 1e5;
  sample.cold_speedup = 3;
  Host host;
  host.disk_iops = 77;
  ASSERT_TRUE(take_storage({.path = "", .storage = "EFS"}, host, sample));
  const StorageFigures& nfs = **storage_kind_named("nfs");
  EXPECT_EQ(host.disk_bandwidth, nfs.bandwidth);
  EXPECT_EQ(host.disk_iops, 77) << "the host's own goes first";
  EXPECT_EQ(sample.cold_seek_ms, nfs.open_ms);
  EXPECT_EQ(sample.cold_bandwidth, nfs.one_reader);
  EXPECT_EQ(sample.cold_speedup, 0) << "the host says how many readers pay";
}

TEST(TakeStorage, WhereNoBytesAreReadNoStorageCounts) {
  SampleCost sample;
  sample.known = true;
  Host host;
  const auto said = [&](const DataRequest& request) {
    const Status status = take_storage(request, host, sample);
    return status ? "" : status.error().text();
  };
  EXPECT_EQ(said({}), "");
  EXPECT_TRUE(
      said({.path = "", .sample_cost = kMillisecond, .storage = "nfs"})
          .starts_with("{storage}: a storage delivers bytes, and {sample-cost} tells of none"));
  EXPECT_EQ(said({.path = "", .storage = "nfs"}),
            "{storage}: the probe saw no sample read from a file, so that storage costs nothing: "
            "leave it out");
  EXPECT_TRUE(said({.path = "", .storage = "nvm"})
                  .starts_with("{storage}: unknown storage \"nvm\"; did you mean "
                               "nvme?"));
}

TEST(TakeProcessor, OnlyPublishedCostsAreScaledToTheHost) {
  LoadedData data;
  data.sample.known = true;
  data.sample.cpu = {4 * kMillisecond};
  Host host;
  host.cpu = "EPYC";
  host.dispatch_speed = 2;
  SampleCost sample = data.sample;
  take_processor(data, host, sample);
  EXPECT_EQ(sample.cpu, data.sample.cpu) << "it was measured where it runs";
  data.well_known = true;
  take_processor(data, host, sample);
  EXPECT_EQ(sample.cpu, std::vector{2 * kMillisecond});
  EXPECT_TRUE(sample.basis.ends_with(", scaled to EPYC"));
  host.dispatch_speed = 0;
  take_processor(data, host, sample);
  EXPECT_EQ(sample.cpu, std::vector{2 * kMillisecond}) << "an unknown processor scales nothing";
}

}  // namespace
}  // namespace stoker
