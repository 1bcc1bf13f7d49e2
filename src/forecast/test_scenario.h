#pragma once

#include <gtest/gtest.h>

#include "device/catalogue/gpu_catalogue.h"
#include "forecast/forecast.h"
#include "step/step_reader.h"
#include "step/test_step.h"

namespace stoker::testing_support {

/// A small step on a V100 and a host of 8 cores, with the coefficients that ship.
class ScenarioTest : public testing::Test {
 protected:
  void SetUp() override {
    step_ = parse_step(linear_step_json(), "test").value();
    auto knowledge = load_knowledge();
    ASSERT_TRUE(knowledge) << knowledge.error().text();
    knowledge_.emplace(std::move(*knowledge));
    scenario_.step = &step_;
    scenario_.machine.device = find_gpu("V100-SXM2-16GB").value();
    scenario_.machine.host.cores = 8;
    scenario_.machine.host.memory = 64 * kGiB;
    scenario_.machine.host.shared_memory = 32 * kGiB;
    scenario_.job.batch = 32;
    scenario_.sample = sample_cost_unknown({Bytes(16), 1});
    scenario_.dataset_samples = 100'000;
  }

  /// A loader whose samples cost this much CPU time each.
  void give_samples(double milliseconds_each) {
    scenario_.sample =
        sample_cost_given(Nanos(milliseconds_each * 1e6), {Bytes(16), 1}, knowledge_->loader);
  }

  Forecast forecast_now() {
    auto f = forecast(scenario_, *knowledge_);
    EXPECT_TRUE(f) << f.error().text();
    return f.value();
  }

  Step step_;
  std::optional<Knowledge> knowledge_;
  Scenario scenario_;
};

}  // namespace stoker::testing_support
