#include "evidence/training/observation.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

const std::string kHeader =
    R"({"format": "stoker-observation", "schema_version": [1, 0], )"
    R"("provenance": {"torch": "2.13.0", )"
    R"("device": "cpu", "cpu_model": "Xeon", "cores": 2, "threads": 2}, )"
    R"("model": {"class": "Net"}, )"
    R"("precision": "fp32", "batch": 16, "hooks": true, "timing": "host", )"
    R"("columns": ["step", "kind", )"
    R"("end", "gap_ns", "total_ns", "wait_ns", "h2d_ns", "forward_ns", "loss_ns", "backward_ns", )"
    R"("optimizer_ns", "samples"]})"
    "\n";

/// A step of `total` ns, 100 of which it waited for data.
std::string row(int step, int total, const char* kind = "train", const char* end = "ok") {
  return "[" + std::to_string(step) + ", \"" + kind + "\", \"" + end + "\", 100, " +
         std::to_string(total) + ", 100, 0, 300, 10, 600, 80, 16]\n";
}

std::string rows(int n) {
  std::string text;
  for (int i = 0; i < n; ++i) text += row(i, i < 2 ? 50'000 : 1000 + i);
  return text;
}

TEST(Observation, IsOneRun) {
  const auto o = parse_observation(kHeader + rows(10) +
                                       "{\"memory\": {\"step\": 3, \"rss_peak\": 7000}}\n"
                                       "{\"memory\": {\"step\": 9, \"rss_peak\": 9000}}\n"
                                       "{\"block\": 1}\n{\"end\": {\"steps\": 10}}\n",
                                   "x.obs.jsonl");
  ASSERT_TRUE(o.has_value()) << o.error().text();
  EXPECT_EQ(o->model_class, "Net");
  EXPECT_EQ(o->steps, 8u);  // the first fifth warms up
  const MeasuredRun& run = o->runs.runs.front();
  EXPECT_EQ(run.batch, 16);
  EXPECT_EQ(run.threads, 2);
  const auto fact = fact_of(run);
  ASSERT_TRUE(fact.has_value());
  // 1002 to 1009, less the wait, which the gap holds.
  EXPECT_DOUBLE_EQ(fact->step.count(), 1005.5);
  EXPECT_DOUBLE_EQ(fact->phases.forward->count(), 310);
  EXPECT_DOUBLE_EQ(fact->phases.backward->count(), 600);
  EXPECT_EQ(fact->peaks.resident->count(), 9000);
  EXPECT_TRUE(o->runs.device->cpu);
  EXPECT_TRUE(o->data.empty());
}

TEST(Observation, CountsWhatIsDamaged) {
  const auto o =
      parse_observation(kHeader + rows(10) + "[1, 2]\nnot json\n" + row(20, 900'000, "validation") +
                            row(21, 900'000, "train", "exception") + "[3, \"tr",
                        "x.obs.jsonl");
  ASSERT_TRUE(o.has_value()) << o.error().text();
  EXPECT_EQ(o->data.count("damaged_lines"), 2);
  EXPECT_EQ(o->data.count("steps_left_out"), 1);
  EXPECT_LT(fact_of(o->runs.runs.front())->step.count(), 2000);
}

TEST(Observation, RefusesWhatIsNone) {
  const auto says = [](const std::string& text) {
    const auto o = parse_observation(text, "x.obs.jsonl");
    return o ? std::string("read") : o.error().text();
  };
  EXPECT_NE(says("").find("no file of format stoker-observation"), std::string::npos);
  EXPECT_NE(says("{}\n").find("no file of format"), std::string::npos);
  EXPECT_NE(says(kHeader).find("no training step"), std::string::npos);
  EXPECT_NE(says(kHeader + row(0, -5)).find("no training step"), std::string::npos);
  std::string later = kHeader;
  later.replace(later.find("[1, 0]"), 6, "[2, 0]");
  EXPECT_NE(says(later).find("update the older"), std::string::npos);
  std::string blind = kHeader + rows(10);
  blind.replace(blind.find("\"batch\": 16"), 11, "\"batch\": null");
  EXPECT_EQ(says(blind), "read");  // the steps saw it
}

TEST(Observation, NamesAreThoseOfLines) {
  EXPECT_TRUE(names_an_observation("run.obs.jsonl"));
  EXPECT_FALSE(names_an_observation("rows.json"));
  EXPECT_FALSE(names_an_observation(".jsonl.gz"));
}

TEST(Observation, OfManyStepsTheFirstTenWarmUp) {
  const auto o = parse_observation(kHeader + rows(60), "x.obs.jsonl");
  ASSERT_TRUE(o.has_value()) << o.error().text();
  EXPECT_EQ(o->steps, 50u);
  // Steps 10 to 59 take 1010 to 1059.
  EXPECT_DOUBLE_EQ(fact_of(o->runs.runs.front())->step.count(), 1034.5);
}

TEST(Observation, WithoutABackwardNoPhasesAreTold) {
  std::string text = kHeader + rows(10);
  for (std::size_t at = 0; (at = text.find("600, 80", at)) != std::string::npos;)
    text.replace(at, 7, "0, 80");
  const auto o = parse_observation(text, "x.obs.jsonl");
  ASSERT_TRUE(o.has_value()) << o.error().text();
  const MeasuredRun& run = o->runs.runs.front();
  EXPECT_FALSE(run.repetitions.front().phases.forward);
  EXPECT_FALSE(run.repetitions.front().phases.optimizer);
  EXPECT_EQ(o->runs.rule, "an observation: medians over 8 steps, waiting for data left out");
}

TEST(Observation, KeepsTheHighestOfEachPeak) {
  const auto o = parse_observation(
      kHeader + rows(10) +
          "{\"memory\": {\"rss_peak\": 9, \"allocated_peak\": 5, \"reserved_peak\": -1}}\n"
          "{\"memory\": {\"rss_peak\": 7, \"allocated_peak\": 6, \"reserved_peak\": \"x\"}}\n",
      "x.obs.jsonl");
  ASSERT_TRUE(o.has_value());
  const MeasuredPeaks& peaks = o->runs.runs.front().repetitions.front().peaks;
  EXPECT_EQ(*peaks.resident, Bytes(9));
  EXPECT_EQ(*peaks.allocated, Bytes(6));
  EXPECT_FALSE(peaks.reserved) << "neither a negative size nor a text is one";
}

TEST(Observation, TakesTheDevicesClock) {
  std::string header = kHeader;
  const std::string last = "\"samples\"]";
  header.replace(header.find(last), last.size(),
                 "\"samples\", \"device_gap_ns\", \"device_total_ns\"]");
  std::string text = header;
  for (int i = 0; i < 6; ++i) {
    std::string one = row(i, 1000);
    one.replace(one.find(']'), 1, i == 3 ? ", null, null]" : ", 5, 2000]");
    text += one;
  }
  const auto o = parse_observation(text, "x.obs.jsonl");
  ASSERT_TRUE(o.has_value()) << o.error().text();
  EXPECT_DOUBLE_EQ(fact_of(o->runs.runs.front())->step.count(), 2005);
}

}  // namespace
}  // namespace stoker
