// What rows of our own scripts say about the job that was measured.

#include "accuracy/common/measured_rows.h"

#include <gtest/gtest.h>

#include "base/csv.h"

namespace stoker::accuracy {
namespace {

CsvRow row_of(const std::string& flags, const std::string& precision) {
  const std::string text =
      "model,spec,precision,optimizer,optimizer_loop,batch,flags\n"
      "bert,scripts/measure_time/models.py:bert," +
      precision + ",adamw,fused,64," + flags + "\n";
  return parse_csv(text, "steps.csv").value().front();
}

TEST(MeasuredRowsTest, FlagsBecomeTheJob) {
  const auto job = measured_job(
      row_of("--channels-last --cudnn-benchmark --weight-decay 0.01 --grad-scaler", "amp-fp16"));
  ASSERT_TRUE(job);
  EXPECT_EQ(job->precision, Precision::kAmpFp16);
  EXPECT_EQ(job->batch, 64);
  EXPECT_EQ(job->optimizer.loop, OptimizerLoop::kFused);
  EXPECT_DOUBLE_EQ(job->optimizer.weight_decay, 0.01);
  EXPECT_TRUE(job->channels_last && job->grad_scaler);
  EXPECT_EQ(job->cudnn, CudnnProfile::kBenchmark);
}

TEST(MeasuredRowsTest, WithoutFlagsTheyAreTheDefaults) {
  const auto job = measured_job(row_of("", "fp32"));
  ASSERT_TRUE(job);
  EXPECT_FALSE(job->channels_last || job->grad_scaler);
  EXPECT_EQ(job->cudnn, CudnnProfile::kDefault);
}

TEST(MeasuredRowsTest, Tf32RunsFromTheCaptureInFp32) {
  EXPECT_EQ(measured_request(row_of("", "tf32")).precision, "fp32");
  EXPECT_EQ(measured_request(row_of("", "amp-bf16")).precision, "amp-bf16");
}

TEST(MeasuredRowsTest, AnUnknownPrecisionIsNoJob) { EXPECT_FALSE(measured_job(row_of("", "fp8"))); }

}  // namespace
}  // namespace stoker::accuracy
