#include "evidence/calibration/calibration_runs.h"

#include <gtest/gtest.h>

#include "evidence/training/test_rows.h"

namespace stoker {
namespace {

TEST(CalibrationRuns, AreRead) {
  const auto runs = parse_calibration_runs(test_rows::kCpuCalibration, "cal.json");
  ASSERT_TRUE(runs.has_value()) << runs.error().text();
  EXPECT_TRUE(runs->device.cpu);
  EXPECT_EQ(runs->device.name, "Xeon");
  EXPECT_EQ(runs->device.cores, 2);
  EXPECT_EQ(runs->device.l3, kMiB * 260);
  EXPECT_EQ(runs->provenance.at("torch"), "2.13.0+cpu");
  EXPECT_EQ(runs->provenance.count("driver"), 0u);
  EXPECT_DOUBLE_EQ(runs->load.foreign_share, 0.004);
  EXPECT_FALSE(runs->calibration.disturbed);
  EXPECT_FALSE(runs->complete);
  ASSERT_EQ(runs->calibration.operators.size(), 2u);
  const MeasuredOperator& conv = runs->calibration.operators[1];
  EXPECT_EQ(conv.function, "convolution_backward");
  EXPECT_EQ(conv.pass, "backward_weight");
  EXPECT_EQ(conv.threads, 2);
  EXPECT_EQ(conv.sizes.at("kernel"), 3);
  EXPECT_EQ(conv.where, "cal.json: operators[1]");
  ASSERT_NE(find_figure(runs->calibration, "copy_gbs", 2), nullptr);
  EXPECT_DOUBLE_EQ(find_figure(runs->calibration, "copy_gbs", 2)->value, 25.3);
}

/// A newer measuring may know more figures; a GPU's are keys of [calibration] itself.
TEST(CalibrationRuns, UnknownFiguresAreCountedAndLeftOut) {
  std::string text = test_rows::kCpuCalibration;
  const std::string before = "{\"name\": \"call_us\"";
  text.replace(text.find(before), before.size(), "{\"name\": \"later_us\"");
  auto runs = parse_calibration_runs(text, "cal.json");
  ASSERT_TRUE(runs.has_value());
  EXPECT_EQ(runs->data.count("unknown_figure"), 1);
  EXPECT_EQ(find_figure(runs->calibration, "later_us", 0), nullptr);
  text.replace(text.find("later_us"), 8, "launch_floor_us");
  runs = parse_calibration_runs(text, "cal.json");
  ASSERT_TRUE(runs.has_value());
  EXPECT_DOUBLE_EQ(runs->calibration.launch_floor_us, 1.9);
}

TEST(CalibrationRuns, RefuseDamageWithFieldAndCure) {
  const auto with = [](const std::string& what, const std::string& by) {
    std::string text = test_rows::kCpuCalibration;
    const auto at = text.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    text.replace(at, what.size(), by);
    const auto runs = parse_calibration_runs(text, "cal.json");
    return runs ? std::string("read") : runs.error().text();
  };
  const std::vector<std::tuple<std::string, std::string, std::string>> damages{
      {"\"stoker-calibration\"", "\"other\"", "no file of format stoker-calibration"},
      {"[1, 0]", "[2, 0]", "update the older"},
      {"[1, 0]", "\"1\"", "schema_version"},
      {"\"kind\": \"cpu\"", "\"kind\": \"tpu\"", "device.kind\" is neither cpu nor cuda"},
      {"\"cores\": 2", "\"cores\": -2", "device.cores\" is negative"},
      {"\"cores\": 2", "\"cores\": 1e9", "device.cores\" is impossibly large"},
      {"\"value\": 1.9", "\"value\": 0", "figures[0].value\" of call_us"},
      {"\"value\": 1.9", "\"value\": null", "figures[0].value\" is not a number"},
      {"\"time_us\": 720.0", "\"time_us\": -1", "operators[0].time_us\" is negative"},
      {"\"time_us\": 720.0", "\"time_us\": 0", "operators[0].time_us\" is too small"},
      {"\"time_us\": 720.0", "\"time_us\": 1e308", "impossibly large"},
      {"\"m\": 256", "\"m\": 2.5", "sizes.m\" is not a whole number"},
      {"\"m\": 256", "\"m\": \"x\"", "sizes.m\" is not a number"},
      {"\"figures\": [", "\"figures\": 3, \"x\": [", "figures\" is not a list"},
      {"\"operators\": [", "\"operatorz\": [", "operators\" is missing"},
      {"\"disturbed\": false", "\"disturbed\": 1", "load.disturbed\" is not true or false"},
  };
  for (const auto& [what, by, says] : damages) {
    const std::string text = with(what, by);
    EXPECT_NE(text.find(says), std::string::npos) << by << ": " << text;
    EXPECT_NE(text.find("cal.json"), std::string::npos);
  }
}

TEST(CalibrationRuns, EveryCutIsRefused) {
  const std::string whole = test_rows::kCpuCalibration;
  const std::size_t end = whole.find_last_of('}');
  for (std::size_t length = 0; length < end; length += 7) {
    EXPECT_FALSE(parse_calibration_runs(whole.substr(0, length), "cal.json").has_value()) << length;
  }
  EXPECT_FALSE(parse_calibration_runs(std::string(100'000, '['), "cal.json").has_value());
}

}  // namespace
}  // namespace stoker
