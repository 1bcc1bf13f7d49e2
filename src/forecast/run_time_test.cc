#include "forecast/run_time.h"

#include "forecast/settings.h"
#include "forecast/test_scenario.h"

namespace stoker {
namespace {

class RunTimeTest : public testing_support::ScenarioTest {
 protected:
  void SetUp() override {
    ScenarioTest::SetUp();
    scenario_.epochs = 10;
  }
  static double part(const RunTime& run, const std::string& name) {
    for (const RunPart& p : run.start_up) {
      if (p.name == name) return p.seconds.value;
    }
    return 0;
  }
};

TEST_F(RunTimeTest, NobodyAskedOrTheSizeIsUnknown) {
  scenario_.epochs = 0;
  EXPECT_EQ(forecast_now().run.epochs, 0);
  scenario_.epochs = 5;
  scenario_.dataset_samples = 0;
  EXPECT_EQ(forecast_now().run.epochs, 0);
}

TEST_F(RunTimeTest, AddsUp) {
  const Forecast f = forecast_now();
  const RunTime& run = f.run;
  ASSERT_EQ(run.epochs, 10);
  double parts = 0;
  for (const RunPart& p : run.start_up) {
    parts += p.seconds.value;
    EXPECT_LE(p.seconds.low, p.seconds.value) << p.name;
    EXPECT_GE(p.seconds.high, p.seconds.value) << p.name;
    EXPECT_FALSE(p.seconds.basis.empty()) << p.name;
  }
  EXPECT_GT(parts, 1);  // nothing starts in less
  EXPECT_NEAR(run.seconds_start_up.value, parts, 1e-9);
  EXPECT_NEAR(run.seconds_epoch.value, f.epoch_s.value, 1e-9);
  EXPECT_NEAR(run.seconds_first_epoch.value, run.seconds_epoch.value + parts, 1e-9);
  EXPECT_NEAR(run.seconds_total.value, 10 * run.seconds_epoch.value + parts, 1e-9);
  EXPECT_LT(run.seconds_total.low, run.seconds_total.value);
  EXPECT_GT(run.seconds_total.high, run.seconds_total.value);
}

TEST_F(RunTimeTest, ValidationCostsItsBatches) {
  scenario_.job.validation_batch = 16;
  Forecast f = forecast_now();
  ASSERT_EQ(f.passes.size(), 1U);
  EXPECT_GT(f.passes[0].total.count(), 0);
  EXPECT_EQ(f.run.seconds_validation.value, 0);  // of how many samples?
  scenario_.validation_samples = 1001;           // 63 batches
  f = forecast_now();
  EXPECT_NEAR(f.run.seconds_validation.value, 63 * seconds(f.passes[0].total), 1e-9);
  EXPECT_NEAR(f.run.seconds_epoch.value, f.epoch_s.value + f.run.seconds_validation.value, 1e-9);
  give_samples(50);  // 50 ms of CPU a sample and no worker: the loader holds the validation back
  f = forecast_now();
  EXPECT_GT(f.run.seconds_validation.value, 1001 * 0.050);
}

TEST_F(RunTimeTest, ASmallerLastBatchCostsMoreThanItsShare) {
  const double without = forecast_now().run.seconds_epoch.value;
  scenario_.job.last_batch = 1;
  const Forecast f = forecast_now();
  ASSERT_EQ(f.passes.size(), 1U);
  EXPECT_GT(f.run.seconds_epoch.value, without);
  EXPECT_LT(f.run.seconds_epoch.value, without + seconds(f.passes[0].total));
}

TEST_F(RunTimeTest, TheBatchThatADataSetLeavesOverIsCountedOnce) {
  scenario_.dataset_samples = 10 * scenario_.job.batch + 1;
  scenario_.last_batch.samples = scenario_.dataset_samples;
  set_batch(scenario_, scenario_.job.batch);
  ASSERT_EQ(scenario_.job.last_batch, 1);
  const Forecast f = forecast_now();
  EXPECT_NEAR(f.run.seconds_epoch.value, f.epoch_s.value, 1e-9);
}

TEST_F(RunTimeTest, StartUpNamesWhatTheJobAdds) {
  RunTime run = forecast_now().run;
  EXPECT_EQ(part(run, "process group"), 0);
  EXPECT_EQ(part(run, "cuDNN's algorithm trials"), 0);
  EXPECT_EQ(part(run, "warm-up and capture of CUDA graphs"), 0);
  scenario_.job.gpus = scenario_.machine.gpu_count = 2;
  scenario_.job.cuda_graphs = true;
  run = forecast_now().run;
  EXPECT_GT(part(run, "process group"), 0);
  EXPECT_GT(part(run, "warm-up and capture of CUDA graphs"), 0);
}

TEST_F(RunTimeTest, EveryNewConvolutionIsTriedOnce) {
  Program program;
  Kernel kernel;
  kernel.kernel_class = KernelClass::kConvolution;
  kernel.shape = ConvolutionShape{};
  program.kernels = {kernel, kernel};
  std::get<ConvolutionShape>(kernel.shape).batch += 1;  // the last batch's
  program.kernels.push_back(kernel);
  scenario_.job.cudnn = CudnnProfile::kBenchmark;
  Forecast f;
  f.job = scenario_.job;
  f.epoch_s = {1, 1, 1, ""};
  f.time.kernel_times = {Nanos(1e6), Nanos(1e6), Nanos(2e6)};
  const RunTime run = run_time_of(scenario_, program, f);
  // Two shapes of 1 and 2 ms: 20 plans built in 5 ms each, 10 plans run twice at a third of the
  // speed.
  EXPECT_NEAR(part(run, "cuDNN's algorithm trials"), 20 * 5e-3 + 10 * 2 * 3 * 3e-3, 1e-9);
}

}  // namespace
}  // namespace stoker
