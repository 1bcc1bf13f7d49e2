#include <gtest/gtest.h>

#include "report/model/report.h"
#include "report/model/scaling_report.h"

namespace stoker {
namespace {

Scaling three_counts() {
  Scaling s;
  s.global_batch = 32;
  s.pays_up_to = 8;
  s.stops_at = 64;
  s.why = "waiting for communication, 43 % of the step";
  for (const int gpus : {1, 8, 64}) {
    ScalingPoint p;
    p.gpus = gpus;
    p.batch = 32;
    p.step_ms = {100, 90, 110, ""};
    p.samples_per_s = {320.0 * gpus, 300.0 * gpus, 340.0 * gpus, ""};
    p.efficiency = 1;
    p.marginal = 0.31;
    p.loss = "waiting for communication, 43 % of the step";
    s.points.push_back(p);
  }
  s.points[1].fits = false;
  return s;
}

TEST(ScalingText, TheAnswerComesFirstWithItsReason) {
  ReportContext context;
  context.model_line = "model";
  context.sample_word = "img";
  const std::string text = scaling_text(three_counts(), context);
  EXPECT_EQ(text.find("model\n\nANSWER: more GPUs stop paying after 8 GPUs"), 0u) << text;
  EXPECT_NE(text.find("On the way to 64 each adds 31 %"), std::string::npos) << text;
  EXPECT_NE(text.find("DOES NOT FIT; waiting"), std::string::npos);
}

TEST(ScalingText, ASlowerJobIsSaidToBeSlower) {
  Scaling s = three_counts();
  s.points[2].marginal = -0.25;
  EXPECT_NE(scaling_text(s, {}).find("On the way to 64 the whole job becomes slower"),
            std::string::npos);
}

TEST(ScalingText, WhatCannotRunSaysWhy) {
  Scaling s = three_counts();
  s.points[2].impossible = s.why = "more GPUs than samples in the global batch of 32";
  const std::string text = scaling_text(s, {});
  EXPECT_NE(text.find("64 GPUs: more GPUs than samples"), std::string::npos) << text;
  s.stops_at = 0;
  EXPECT_NE(scaling_text(s, {}).find("more GPUs pay up to 8, the most asked for"),
            std::string::npos);
}

TEST(ScalingJson, NamesEveryPoint) {
  const std::string json = scaling_json(three_counts(), {});
  for (const char* key :
       {"\"pays_up_to\": 8", "\"stops_at\": 64", "\"mode\": \"weak\"", "\"marginal\": 0.31"})
    EXPECT_NE(json.find(key), std::string::npos) << key << json;
}

}  // namespace
}  // namespace stoker
