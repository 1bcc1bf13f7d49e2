#include "forecast/lost_compiler.h"

#include <algorithm>

#include "forecast/test_scenario.h"
#include "lower/loop/capture_notes.h"
#include "lower/loop/lower.h"
#include "step/lost_compiler.h"

namespace stoker {
namespace {

class LostCompilerTest : public testing_support::ScenarioTest {};

TEST_F(LostCompilerTest, BandsReachToWhatACompiledStepTakesAndSayWhy) {
  const Forecast eager = forecast_now();
  step_.compiled_graphs = kCompilerLost;
  const Forecast lost = forecast_now();
  EXPECT_EQ(eager.diagnostics.count(kEagerForCompiled), 0);
  EXPECT_EQ(lost.diagnostics.count(kEagerForCompiled), 1);
  EXPECT_DOUBLE_EQ(lost.step_ms.value, eager.step_ms.value);
  EXPECT_DOUBLE_EQ(lost.step_ms.high, eager.step_ms.high);
  EXPECT_LT(lost.step_ms.low, eager.step_ms.low);
  EXPECT_DOUBLE_EQ(lost.memory.device_peak.value, eager.memory.device_peak.value);
  EXPECT_GE(lost.memory.device_peak.high, eager.memory.device_peak.high);
  EXPECT_LT(lost.memory.device_peak.low, eager.memory.device_peak.low);
  for (const Figure& figure : {lost.step_ms, lost.memory.device_peak})
    EXPECT_NE(figure.basis.find("of a script that compiles it"), std::string::npos) << figure.basis;
  const auto& notes = lost.diagnostics.all();
  EXPECT_TRUE(std::any_of(notes.begin(), notes.end(), [](const Diagnostic& note) {
    return note.advice.find("30 % of the time and 90 % to 110 % of the memory") !=
           std::string::npos;
  }));
}

TEST_F(LostCompilerTest, TheNeedReachesAsFarAsTheBand) {
  step_.compiled_graphs = kCompilerLost;
  const auto program = lower(step_, scenario_.job, scenario_.machine);
  ASSERT_TRUE(program) << program.error().text();
  const MemoryErrorCase narrow{
      "x", {0.02, {}, {}}, {0.05, {}, {}}, 1, "", NeedReach{{0.03, {}, {}}, 2}};
  const MemoryErrorCase wide = widened_for_compiler(narrow, *program);
  EXPECT_NEAR(wide.above.share, 0.1, 1e-12);
  EXPECT_NEAR(wide.need_above(Bytes(1000), 0.01), 0.1 + 0.02, 1e-12);
}

TEST_F(LostCompilerTest, AFileSaysSoByGraphsThatAreNone) {
  std::string text = testing_support::linear_step_json();
  text.insert(text.find('{') + 1, R"("compiled": {"by": "nothing", "graphs": 0},)");
  const auto step = parse_step(text, "test");
  ASSERT_TRUE(step) << step.error().text();
  EXPECT_EQ(step->compiled_graphs, kCompilerLost);
}

}  // namespace
}  // namespace stoker
