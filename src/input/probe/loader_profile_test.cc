#include "input/probe/loader_profile.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "input/data/test_pictures.h"
#include "input/probe/sample_cost.h"

namespace stoker {
namespace {

Probe two_pictures() {
  Probe probe;
  probe.dataset = {
      .name = "pets", .files = 1000, .total_bytes = Bytes(5'000'000), .mean_bytes = 5000};
  probe.image_size = 100;
  for (const double decode : {1.0, 3.0}) {
    SampleRecord sample;
    sample.width = 1000;
    sample.height = 500;
    sample.stage[static_cast<std::size_t>(Stage::kDecode)] = decode * kMillisecond;
    probe.samples.push_back(sample);
  }
  probe.stage_ms[static_cast<std::size_t>(Stage::kToTensor)].mean = 0.01;
  probe.stage_ms[static_cast<std::size_t>(Stage::kNormalize)].mean = 0.03;
  return probe;
}

LoaderProfile simple_profile() {
  LoaderProfile profile;
  for (StageCoefficients& stage : profile.stage) stage = {0, 0, 0};
  profile.stage[static_cast<std::size_t>(Stage::kDecode)] = {0.5, 2, 4};
  profile.native_ns_per_pixel = 2;  // the probe's machine measures 4: twice as slow
  profile.transport.per_tensor_main = 1.0 * kMillisecond;
  profile.transport.collate_shared_ns = 0.5;
  profile.held_out_mape = 7;
  profile.basis = "a test";
  return profile;
}

TEST(LoaderProfile, TurnsNativeCostsIntoLoaderCosts) {
  const LoaderProfile profile = simple_profile();
  const Probe probe = two_pictures();
  EXPECT_DOUBLE_EQ(milliseconds(loader_cost(profile, probe.samples[0], 1)), 0.5 + 2 * 1 + 4 * 0.5);
  EXPECT_DOUBLE_EQ(milliseconds(loader_cost(profile, probe.samples[1], 3)),
                   3 * 0.5 + 2 * 3 + 3 * 4 * 0.5);
  EXPECT_NEAR(core_slowness(profile, probe), 2, 1e-12);
  EXPECT_EQ(core_slowness({}, probe), 1);
}

TEST(SampleCost, FromAProbe) {
  Probe probe = two_pictures();
  probe.parallel = {.threads = 4, .efficiency = 0.8};
  LoaderProfile profile = simple_profile();
  profile.held_out_mape = 15;
  const SampleCost cost = sample_cost_from_probe(probe, profile);
  EXPECT_TRUE(cost.known);
  ASSERT_EQ(cost.cpu.size(), 2U);
  EXPECT_NEAR(milliseconds(cost.mean_cpu()), 2 * 0.5 + 2 * 2 + 2 * 2, 1e-9);
  EXPECT_EQ(cost.output.count(), 3 * 100 * 100 * 4 + 8);
  EXPECT_EQ(cost.dataset_samples, 1000);
  EXPECT_NEAR(cost.slowdown_per_core, 0.25 / 3, 1e-12);
  EXPECT_NEAR(milliseconds(cost.transport.per_tensor_main), 2, 1e-12);
  EXPECT_NEAR(cost.transport.collate_shared_ns, 1, 1e-12);
  EXPECT_NEAR(cost.band.above, 0.30, 1e-12) << "twice the held-out error";
  EXPECT_NE(cost.basis.find("pets"), std::string::npos);
}

TEST(SampleCost, ADisturbedProbeWidensTheBand) {
  Probe probe = two_pictures();
  const double calm = sample_cost_from_probe(probe, simple_profile()).band.above;
  probe.contention.disturbed = true;
  EXPECT_GT(sample_cost_from_probe(probe, simple_profile()).band.above, calm);
}

TEST(LoaderProfile, TheShippedOneIsSound) {
  const Result<LoaderProfile> profile = read_loader_profile(
      std::filesystem::path(STOKER_SOURCE_DIR) / "data" / "coefficients" / "input.json");
  ASSERT_TRUE(profile) << profile.error().text();
  EXPECT_FALSE(profile->basis.empty());
  EXPECT_GT(profile->held_out_mape, 0);
  EXPECT_LT(profile->held_out_mape, 10);
  EXPECT_GT(profile->native_ns_per_pixel, 0);
  EXPECT_GT(profile->transport.collate_shared_ns, 0);
  EXPECT_GT(profile->transport.per_tensor_main.count(), 0);
}

TEST(LoaderProfile, DamageIsNamed) {
  std::ifstream file(std::filesystem::path(STOKER_SOURCE_DIR) / "data" / "coefficients" /
                     "input.json");
  std::stringstream whole;
  whole << file.rdbuf();
  const ScratchFolder folder;
  const auto text_of = [&](const std::string& content) {
    const Result<LoaderProfile> profile = read_loader_profile(folder.write("p.json", content));
    return profile ? std::string("no error") : profile.error().text();
  };
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string out = whole.str();
    const std::size_t at = out.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return out.replace(at, from.size(), to);
  };
  EXPECT_EQ(text_of(whole.str()), "no error");
  EXPECT_NE(text_of(whole.str().substr(0, 300)).find("is not a loader profile"), std::string::npos);
  EXPECT_NE(text_of("{}").find("is not a loader profile"), std::string::npos);
  EXPECT_NE(text_of(replaced("\"fork_per_worker_ms\"", "\"fork\""))
                .find("\"transport.fork_per_worker_ms\" is missing"),
            std::string::npos);
  EXPECT_NE(
      text_of(replaced("\"collate_shared_ns_per_byte\": ", "\"collate_shared_ns_per_byte\": -"))
          .find("negative"),
      std::string::npos);
  EXPECT_NE(text_of(replaced("\"basis\"", "\"base\"")).find("\"basis\" is missing"),
            std::string::npos);
  const Result<LoaderProfile> missing = read_loader_profile(folder.path() / "none.json");
  ASSERT_FALSE(missing);
}

}  // namespace
}  // namespace stoker
