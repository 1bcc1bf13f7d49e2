#include "input/probe/probe_io.h"

#include <gtest/gtest.h>

#include "input/data/test_pictures.h"
#include "json/test_pointer.h"
#include "json/text.h"

namespace stoker {
namespace {

using Json = json::Value;

Probe example() {
  Probe probe;
  probe.dataset = {.name = "pets",
                   .files = 100,
                   .files_estimate = 100,
                   .samples = 100,
                   .total_bytes = Bytes(900'000),
                   .mean_bytes = 9000,
                   .mean_pixels = 40'000};
  for (std::size_t s = 0; s < kStageCount; ++s)
    probe.stage_ms[s] = {1.0 + static_cast<double>(s), 1, 0.5, 3};
  probe.sample_ms = {21, 20, 3, 30};
  probe.decode = {5, 12, 0.9, 0.25, 2};
  probe.read = {.cold_measured = true,
                .cold_ms = 1,
                .cold_seek_ms = 0.5,
                .cold_bandwidth = 1e9,
                .cold_speedup = 5,
                .warm_ms = 0.1};
  probe.parallel = {
      .threads = 4, .samples_per_s_one = 47, .samples_per_s_all = 180, .efficiency = 0.95};
  for (int i = 0; i < 3; ++i) {
    SampleRecord sample;
    sample.bytes = Bytes(9000 + i);
    sample.width = 200 + i;
    sample.height = 100;
    sample.progressive = i == 1;
    sample.cmyk = i == 2;
    for (std::size_t s = 0; s < kStageCount; ++s)
      sample.stage[s] = Nanos(1e6 * static_cast<double>(s + 1) + i);
    probe.samples.push_back(sample);
  }
  probe.provenance = {"0.1.0", "2026-11-28", "Some CPU", 4, "0123456789abcdef", "libjpeg-turbo"};
  StorageFacts& storage = probe.storage.emplace();
  storage.file_system = {
      .name = "overlay", .kind = FileSystemKind::kOverlay, .layers = 3, .upper = true};
  storage.method = ColdMethod::kDirect;
  storage.random_4k = {{.depth = 1,
                        .reads = 100,
                        .reads_per_s = 5000,
                        .bytes_per_s = 2e7,
                        .mean_ms = 0.2,
                        .p95_ms = 0.3},
                       {.depth = 8,
                        .reads = 900,
                        .reads_per_s = 30'000,
                        .bytes_per_s = 1.2e8,
                        .mean_ms = 0.25,
                        .p95_ms = 0.5}};
  storage.whole_files = storage.random_4k;
  storage.sequential_bytes_per_s = 2e9;
  storage.small_file_warm_us = 9.5;
  storage.stat_us = 1.5;
  storage.list_entries_per_s = 1e6;
  storage.resident = {.share = 0.5, .files = 100, .method = "cachestat"};
  storage.available = 20 * kGiB;
  storage.limit = 8 * kGiB;
  storage.read = 500 * kMiB;
  probe.decode_png = {4, 10, 0.8, 0, 1};
  probe.png_share = 0.25;
  probe.diagnostics.add("not_a_picture", Severity::kWarning, "Left out.", 2);
  return probe;
}

TEST(ProbeFile, ComesBackAsItWas) {
  const Probe before = example();
  const Result<Probe> after = parse_probe(probe_to_json(before));
  ASSERT_TRUE(after) << after.error().text();
  EXPECT_EQ(probe_to_json(*after), probe_to_json(before));
  EXPECT_EQ(after->samples[1].bytes.count(), 9001);
  EXPECT_TRUE(after->samples[1].progressive);
  EXPECT_TRUE(after->samples[2].cmyk);
  EXPECT_DOUBLE_EQ(after->samples[2].stage[3].count(), 4e6 + 2);
  EXPECT_EQ(after->diagnostics.count("not_a_picture"), 2);
}

TEST(ProbeFile, KeepsStorageAndKind) {
  const Result<Probe> after = parse_probe(probe_to_json(example()));
  ASSERT_TRUE(after) << after.error().text();
  ASSERT_TRUE(after->storage);
  EXPECT_EQ(after->storage->file_system.kind, FileSystemKind::kOverlay);
  EXPECT_EQ(after->storage->whole_files.at(1).depth, 8);
  EXPECT_EQ(after->storage->usable_memory(), 8 * kGiB);
  EXPECT_EQ(after->decode_png.per_megapixel, 4);
  Probe text = example();
  text.kind = DataKind::kText;
  text.dataset.mean_pixels = 0;
  text.samples[0].width = text.samples[0].height = 0;
  text.samples[0].stage[0] = Nanos(12.345);
  const Result<Probe> lines = parse_probe(probe_to_json(text));
  ASSERT_TRUE(lines) << lines.error().text();
  EXPECT_DOUBLE_EQ(lines->samples[0].stage[0].count(), 12.345);
  text.kind = DataKind::kPictures;
  EXPECT_FALSE(parse_probe(probe_to_json(text))) << "pictures have pixels";
}

TEST(ProbeFile, OfTheFirstMinorVersionIsStillRead) {
  Json json = json::parse(probe_to_json(example())).value();
  json["schema_version"] = {1, 0};
  for (const char* key : {"kind", "file_format", "png_share", "decode_fit_png", "storage"})
    json.erase(key);
  for (const char* key : {"files_estimate", "samples", "samples_exact"}) json["dataset"].erase(key);
  const Result<Probe> probe = parse_probe(json.dump());
  ASSERT_TRUE(probe) << probe.error().text();
  EXPECT_EQ(probe->kind, DataKind::kPictures);
  EXPECT_EQ(probe->dataset.samples, 100);
  EXPECT_FALSE(probe->storage);
}

TEST(ProbeFile, ShowsWhatIfsThatItsReaderIgnores) {
  const std::vector<CacheWhatIf> rows{{.memory = 20 * kGiB, .cached = 0.5, .later_per_s = 900}};
  const std::string text = probe_to_json(example(), rows);
  EXPECT_EQ(json::parse(text).value()["what_if"][0]["later_per_s"], 900);
  EXPECT_TRUE(parse_probe(text));
}

TEST(ProbeFile, GoesThroughADisk) {
  const ScratchFolder folder;
  const std::filesystem::path file = folder.path() / "pets.probe";
  ASSERT_TRUE(write_probe(file, example()));
  const Result<Probe> probe = read_probe(file);
  ASSERT_TRUE(probe) << probe.error().text();
  EXPECT_EQ(probe->dataset.name, "pets");
  const Result<Probe> missing = read_probe(folder.path() / "none.probe");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().text().find("none.probe"), std::string::npos);
}

TEST(ProbeFile, IgnoresWhatALaterMinorAdds) {
  Json json = json::parse(probe_to_json(example())).value();
  json["schema_version"] = {1, 9};
  json["something_new"] = {1, 2, 3};
  json["dataset"]["colour"] = "blue";
  EXPECT_TRUE(parse_probe(json.dump()));
}

struct Damage {
  const char* what;
  const char* pointer;  ///< JSON pointer
  Json value;           ///< null: remove
  const char* says;     ///< part of the message
};

class ProbeFileDamage : public testing::TestWithParam<Damage> {};

TEST_P(ProbeFileDamage, IsRefusedInOneSentence) {
  const Damage& damage = GetParam();
  Json json = json::parse(probe_to_json(example())).value();
  if (damage.value.is_null()) {
    json::erase_pointer(json, damage.pointer);
  } else {
    json::at_pointer(json, damage.pointer) = damage.value;
  }
  const Result<Probe> probe = parse_probe(json.dump(), "x.probe");
  ASSERT_FALSE(probe) << damage.what;
  const std::string text = probe.error().text();
  EXPECT_TRUE(text.starts_with("x.probe: ")) << text;
  EXPECT_NE(text.find(damage.says), std::string::npos) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    Table, ProbeFileDamage,
    testing::Values(
        Damage{"other format", "/format", "stoker-step", "is not a probe file"},
        Damage{"no format", "/format", nullptr, "is not a probe file"},
        Damage{
            "newer major", "/schema_version", {2, 0}, "is of probe format 2, this program reads 1"},
        Damage{"version as text", "/schema_version", "1.0", "is not [major, minor]"},
        Damage{"no dataset", "/dataset", nullptr, "\"dataset\" is missing"},
        Damage{"dataset a number", "/dataset", 5, "\"dataset\" is not an object"},
        Damage{"no files", "/dataset/files", 0, "\"dataset.files\" is too small"},
        Damage{"negative files", "/dataset/files", -5, "\"dataset.files\" is negative"},
        Damage{"huge files", "/dataset/files", 1e300, "\"dataset.files\" is impossibly large"},
        Damage{"bytes as text", "/dataset/total_bytes", "many",
               "\"dataset.total_bytes\" is not a number"},
        Damage{"contradictory bytes", "/dataset/total_bytes", 90'000'000, "contradicts"},
        Damage{"flag as number", "/dataset/files_exact", 1, "is not true or false"},
        Damage{"image size", "/image_size", 0, "\"image_size\" is too small"},
        Damage{"no stage", "/stage_ms/decode", nullptr, "\"stage_ms.decode\" is missing"},
        Damage{"negative time", "/stage_ms/decode/mean", -1.5,
               "\"stage_ms.decode.mean\" is negative"},
        Damage{"median above p95", "/stage_ms/read/median", 50, "its median exceeds its p95"},
        Damage{"stages and sum", "/sample_ms/mean", 5, "contradicts the sum of the stages"},
        Damage{"r2 above 1", "/decode_fit/r2", 1.5, "\"decode_fit.r2\" is impossibly large"},
        Damage{"no threads", "/parallel/threads", 0, "\"parallel.threads\" is too small"},
        Damage{"efficiency 0", "/parallel/efficiency", 0, "\"parallel.efficiency\" is too small"},
        Damage{"wall below CPU", "/foreign_load/wall_per_cpu", 0.5,
               "\"foreign_load.wall_per_cpu\" is too small"},
        Damage{"no samples", "/samples", Json::array(), "at least one sample"},
        Damage{"samples an object", "/samples", Json::object(), "at least one sample"},
        Damage{"short row", "/samples/1", {1, 2, 3}, "\"samples[1]\" is not a row of 10 numbers"},
        Damage{"negative stage", "/samples/2/5", -1, "\"samples[2]\" is negative"},
        Damage{"width of a million", "/samples/0/1", 1'000'000,
               "\"samples[0]\" is impossibly large"},
        Damage{"diagnostics a text", "/diagnostics", "none", "\"diagnostics\" is not a list"},
        Damage{"diagnostic a number", "/diagnostics/0", 5, "not an object"},
        Damage{"unknown kind", "/kind", "films", "\"kind\" is none that this program knows"},
        Damage{"no samples in all", "/dataset/samples", 0, "\"dataset.samples\" is too small"},
        Damage{"fewer than listed", "/dataset/files_estimate", 5,
               "\"dataset.files_estimate\" is too small"},
        Damage{"png share", "/png_share", 2, "\"png_share\" is impossibly large"},
        Damage{"storage a list", "/storage", Json::array(), "\"storage\" is not an object"},
        Damage{"storage kind", "/storage/file_system_kind", "floppy",
               "\"storage.file_system_kind\" is none that"},
        Damage{"storage method", "/storage/method", "guess", "\"storage.method\" is none that"},
        Damage{"depths fall", "/storage/random_4k/1/depth", 1, "depth\" does not rise"},
        Damage{"depth row a number", "/storage/whole_files/0", 7, "is not an object"},
        Damage{"rows a text", "/storage/whole_files", "none",
               "\"storage.whole_files\" is not a list"},
        Damage{"negative rate", "/storage/whole_files/0/reads_per_s", -1, "is negative"},
        Damage{"residency", "/storage/resident/share", 1.5,
               "\"storage.resident.share\" is impossibly large"},
        Damage{"negative memory", "/storage/memory_available", -1,
               "\"storage.memory_available\" is negative"},
        Damage{"no provenance", "/provenance", nullptr, "\"provenance\" is missing"}));

TEST(ProbeFile, CutShortAnywhereIsRefused) {
  const std::string whole = probe_to_json(example());
  for (std::size_t length = 0; length + 2 < whole.size(); length += 7) {
    const Result<Probe> probe = parse_probe(std::string_view(whole).substr(0, length), "x.probe");
    ASSERT_FALSE(probe) << length;
    ASSERT_NE(probe.error().message.find("cut short"), std::string::npos) << probe.error().message;
  }
}

TEST(ProbeFile, DeepNestingIsRefused) {
  EXPECT_FALSE(parse_probe(std::string(1'000'000, '[')));
  EXPECT_FALSE(parse_probe(std::string(5000, '[') + std::string(5000, ']')));
}

}  // namespace
}  // namespace stoker
