#include <gtest/gtest.h>

#include "evidence/training/test_rows.h"
#include "json/text.h"
#include "report/model/calibration_report.h"
#include "report/text/test_text.h"

namespace stoker {
namespace {

using testing_support::on_one_line;

CalibrationRuns runs() {
  return parse_calibration_runs(test_rows::kCpuCalibration, "cal.json").value();
}

CalibratedMachine made_of(const CalibrationRuns& runs) {
  static const GpuCatalogue kCatalogue = GpuCatalogue::load().value();
  CalibrationContext context;
  context.catalogue = &kCatalogue;
  context.here.cores = 2;
  context.here.memory = kGiB * 24;
  context.version = "0.1.0";
  return calibrated_machine(runs, std::nullopt, context);
}

/// The line that holds `words`, without what stands before them; empty: there is none.
std::string from(const std::string& text, const std::string& words) {
  const auto at = text.find(words);
  return at == std::string::npos ? "" : text.substr(at, text.find('\n', at) - at);
}

TEST(CalibrationText, SaysWhatTheDeviceSustainsBesideItsDataSheet) {
  const CalibrationRuns measured = runs();
  const std::string text = calibration_text(made_of(measured), measured, {"lab.toml", "0.1.0"});
  EXPECT_EQ(from(text, "CALIBRATED"),
            "CALIBRATED: Xeon, 2 cores, 512-bit vectors: 2 operators and 6 figures measured");
  // 186 of 2 cores x 2.3 GHz x 16 lanes x 4 FLOP = 294.4 GFLOP/s.
  const std::string products = from(text.substr(text.find("GFLOP/s") + 7), "matrix products, fp32");
  EXPECT_NE(products.find("186 GFLOP/s"), std::string::npos) << text;
  EXPECT_NE(products.find("63 %"), std::string::npos) << text;
  EXPECT_NE(products.find("1.0 %"), std::string::npos) << "spread; " << text;
  EXPECT_NE(text.find("25.3 GB/s"), std::string::npos) << text;
  EXPECT_NE(text.find("an operator in the forward pass 5.1"), std::string::npos) << text;
  EXPECT_NE(text.find("others used 0.4 % of the cores' time; the hypervisor 0.1 %"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("3.0 % at most (forward_us)"), std::string::npos) << text;
  EXPECT_NE(text.find("1. a larger --budget"), std::string::npos) << "not all was measured";
  EXPECT_NE(text.find("2. stoker predict MODEL --gpu lab.toml"), std::string::npos) << text;
}

TEST(CalibrationText, JsonHoldsTheSameFigures) {
  const CalibrationRuns measured = runs();
  const CalibratedMachine made = made_of(measured);
  const auto json = json::parse(calibration_json(made, measured, {"lab.toml", "0.1.0"}));
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["device"]["kind"].as_string(), "cpu");
  EXPECT_EQ((*json)["device"]["memory_bytes"].as_integer(), 25276317696);
  EXPECT_EQ((*json)["file"].as_string(), "lab.toml");
  EXPECT_FALSE((*json)["complete"].as_bool());
  ASSERT_EQ((*json)["sustained"].size(), 4u);
  const json::Value& two = (*json)["sustained"][1];
  EXPECT_EQ(two["what"].as_string(), "matrix products, fp32");
  EXPECT_EQ(two["threads"].as_integer(), 2);
  EXPECT_EQ(two["unit"].as_string(), "FLOP/s");
  EXPECT_DOUBLE_EQ(two["measured"].as_double(), 186e9);
  EXPECT_DOUBLE_EQ(two["data_sheet"].as_double(), 294.4e9);
  EXPECT_TRUE((*json)["sustained"][3]["data_sheet"].is_null()) << "of memory there is none";
  EXPECT_EQ((*json)["figures"].size(), 6u);
  EXPECT_EQ((*json)["operators"]["measured"].as_integer(), 2);
  EXPECT_DOUBLE_EQ((*json)["load"]["foreign_share"].as_double(), 0.004);
  EXPECT_DOUBLE_EQ((*json)["spread"]["worst"].as_double(), 0.03);
  EXPECT_EQ((*json)["spread"]["worst_at"].as_string(), "forward_us");
}

TEST(CalibrationText, ChangesSinceTheLastAreThoseBeyondTheirNoise) {
  const CalibrationRuns measured = runs();
  CalibratedMachine made = made_of(measured);
  made.updated = true;
  made.changes = {{"copy_gbs", 2, 20, 25}, {"forward_us", 0, 5, 4.5}, {"call_us", 0, 2, 2.05}};
  std::string text = calibration_text(made, measured, {"lab.toml", "0.1.0"});
  EXPECT_EQ(from(text, "copy_gbs"), "copy_gbs (2 threads) +25 %; forward_us -10 %");
  EXPECT_NE(text.find("Updated"), std::string::npos) << text;
  made.changes = {{"call_us", 0, 2, 2.05}, {"forward_us", 0, 5, 4.9}};
  text = calibration_text(made, measured, {"lab.toml", "0.1.0"});
  EXPECT_NE(text.find("all 2 figures within 5 % of the calibration before"), std::string::npos)
      << text;
  made.changes.clear();
  for (int i = 0; i < 6; ++i) made.changes.push_back({"f" + std::to_string(i), 0, 1, 2});
  text = calibration_text(made, measured, {"lab.toml", "0.1.0"});
  EXPECT_NE(text.find("f3 +100 %; 2 more above 5 %"), std::string::npos) << text;
}

TEST(CalibrationText, ADisturbedOneSaysWhyAndWhatToDo) {
  CalibrationRuns measured = runs();
  measured.load.disturbed = true;
  measured.load.why = "others used 31 % of the cores";
  measured.load.others_on_gpu = 1;
  measured.load.clocks_changed = true;
  measured.complete = true;
  std::string text =
      on_one_line(calibration_text(made_of(measured), measured, {"lab.toml", "0.1.0"}));
  EXPECT_TRUE(text.starts_with("DISTURBED: Xeon")) << text;
  EXPECT_NE(text.find("others used 31 % of the cores: bands of forecasts with it are wider"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("1 other process on the GPU; clocks changed meanwhile"), std::string::npos)
      << text;
  EXPECT_NE(text.find("1. calibrate again when the machine is idle"), std::string::npos) << text;
  EXPECT_EQ(text.find("--budget"), std::string::npos) << "all was measured";
  measured.load.others_on_gpu = 2;
  text = calibration_text(made_of(measured), measured, {"", "0.1.0"});
  EXPECT_NE(text.find("2 other processes on the GPU"), std::string::npos) << text;
  EXPECT_EQ(text.find("Written"), std::string::npos) << "nothing was written";
}

}  // namespace
}  // namespace stoker
