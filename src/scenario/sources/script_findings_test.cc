#include "scenario/sources/script_findings.h"

#include <gtest/gtest.h>

#include "base/setting.h"
#include "json/text.h"
#include "scenario/sources/script_model.h"

namespace stoker {
namespace {

ScriptFindings findings() {
  const auto file = json::parse(R"({"script": {"file": "/home/me/train.py", "found": [
      {"setting": "batch", "value": 64, "words": "batch 64", "line": 21},
      {"setting": "workers", "value": 3, "words": "3 workers", "line": 21},
      {"setting": "pin", "value": false, "words": "no page-locked memory", "line": 21},
      {"setting": "accumulate", "value": 4, "words": "4 batches accumulated", "line": 30},
      {"setting": "cudnn-benchmark", "value": true, "words": "cudnn.benchmark", "line": 2},
      {"setting": "validation", "value": 100, "words": "validation of batch 100", "line": 22},
      {"setting": "validation-samples", "value": 900, "words": "900 samples of it", "line": 22},
      {"setting": "parallel", "value": "fsdp", "words": "fully_shard", "line": 9}],
    "reads": [{"operator": "item", "answer": "1.0", "line": 33, "count": 2}]}})");
  return read_findings(*file);
}

TEST(ScriptFindings, FillWhatARequestLeavesOpen) {
  const RunRequest filled = with_findings({}, findings(), false);
  EXPECT_EQ(filled.workers, 3);
  EXPECT_EQ(filled.job.accumulate, 4);
  EXPECT_FALSE(filled.pin);
  EXPECT_EQ(filled.job.validation_batch, 100);
  EXPECT_EQ(filled.job.validation_samples, 900);
  EXPECT_TRUE(filled.job.cudnn_benchmark);
  EXPECT_FALSE(filled.batch.has_value()) << "the step file's own default stands for it";
  EXPECT_FALSE(filled.job.parallel.has_value()) << "one GPU shares nothing";
}

TEST(ScriptFindings, AreNotOverruledByTheirOwnPrecision) {
  const auto file = json::parse(R"({"script": {"file": "train.py", "found": [
      {"setting": "precision", "value": "amp-bf16", "words": "amp-bf16", "line": 7}]}})");
  RunRequest asked;
  asked.precisions = {Precision::kAmpBf16};
  EXPECT_EQ(findings_words(asked, read_findings(*file)), "found in train.py: amp-bf16 (line 7)");
  asked.precisions = {Precision::kAmpFp16};
  EXPECT_EQ(findings_words(asked, read_findings(*file)),
            "found in train.py: amp-bf16 (line 7, overruled)");
}

TEST(ScriptFindings, LeaveDdpItsBucketsOnOneGpu) {
  const auto file = json::parse(R"({"script": {"file": "train.py", "found": [
      {"setting": "parallel", "value": "ddp", "words": "x", "line": 3},
      {"setting": "ddp-buckets", "value": true, "words": "y", "line": 3},
      {"setting": "bucket-view", "value": true, "words": "z", "line": 3}]}})");
  const RunRequest one = with_findings({}, read_findings(*file), false);
  EXPECT_FALSE(one.job.parallel.has_value());
  EXPECT_TRUE(one.job.ddp_alone);
  EXPECT_TRUE(one.job.bucket_view);
  RunRequest asked;
  asked.gpus = 2;
  const RunRequest two = with_findings(asked, read_findings(*file), false);
  EXPECT_EQ(two.job.parallel, Parallel::kDdp);
  EXPECT_FALSE(two.job.ddp_alone);
  EXPECT_TRUE(two.job.bucket_view);
}

TEST(ScriptFindings, AreOverruledByWhatIsAsked) {
  RunRequest asked;
  asked.workers = 8;
  asked.pin_given = true;
  asked.gpus = 2;
  const RunRequest filled = with_findings(asked, findings(), false);
  EXPECT_EQ(filled.workers, 8);
  EXPECT_TRUE(filled.pin);
  EXPECT_EQ(filled.job.parallel, Parallel::kFsdpZero3);
  EXPECT_EQ(findings_words(asked, findings()),
            "found in train.py: batch 64 (line 21), 3 workers (line 21, overruled), no page-locked "
            "memory (line 21, overruled), 4 batches accumulated (line 30), cudnn.benchmark (line "
            "2), validation of batch 100 (line 22), 900 samples of it (line 22), fully_shard (line "
            "9)");
}

TEST(ScriptFindings, TakeOverWhatTheScriptTellsTheAllocator) {
  const auto file = json::parse(R"({"script": {"file": "train.py", "found": [
      {"setting": "alloc-conf", "value": "expandable_segments:True", "words": "x", "line": 3},
      {"setting": "cublas-workspace", "value": ":4096:8", "words": "y", "line": 4},
      {"setting": "memory-fraction", "value": 0.5, "words": "z", "line": 5}]}})");
  RunRequest asked;
  asked.allocator.config = {"max_split_size_mb:128", "PYTORCH_ALLOC_CONF"};
  const AllocatorRequest filled = with_findings(asked, read_findings(*file), false).allocator;
  EXPECT_EQ(filled.config.text, "expandable_segments:True") << "the script replaces the shell's";
  EXPECT_EQ(filled.config.where, "line 3 of the script");
  EXPECT_EQ(filled.cublas_workspace.text, ":4096:8");
  EXPECT_EQ(filled.memory_fraction, 0.5);
  asked.allocator.config.where = mark(Setting::kAllocConf);
  asked.allocator.memory_fraction = 0.8;
  const AllocatorRequest kept = with_findings(asked, read_findings(*file), false).allocator;
  EXPECT_EQ(kept.config.text, "max_split_size_mb:128");
  EXPECT_EQ(kept.memory_fraction, 0.8);
}

TEST(ScriptFindings, KeepShardsOnTheHostWhereThereAreAny) {
  const auto file = json::parse(R"({"script": {"file": "train.py", "found": [
      {"setting": "parallel", "value": "fsdp", "words": "x", "line": 3},
      {"setting": "fsdp-cpu-offload", "value": true, "words": "y", "line": 3}]}})");
  RunRequest asked;
  EXPECT_FALSE(with_findings(asked, read_findings(*file), false).job.fsdp_offload);
  asked.gpus = 2;
  EXPECT_TRUE(with_findings(asked, read_findings(*file), false).job.fsdp_offload);
  asked.job.parallel = Parallel::kDdp;
  EXPECT_FALSE(with_findings(asked, read_findings(*file), false).job.fsdp_offload);
}

TEST(ScriptFindings, LeaveAValidationOutThatIsNotWanted) {
  RunRequest asked;
  asked.job.validation_batch = 0;
  const RunRequest filled = with_findings(asked, findings(), false);
  EXPECT_EQ(filled.job.validation_batch, 0);
  EXPECT_FALSE(filled.job.validation_samples.has_value()) << "of a pass that is left out";
  EXPECT_NE(findings_words(asked, findings()).find("validation of batch 100 (line 22, overruled)"),
            std::string::npos);
}

TEST(ScriptFindings, TellACompiledStepFromOneThatIsPassedOver) {
  for (const bool taken : {true, false}) {
    const auto file = json::parse(R"({"script": {"file": "train.py", "found": [
        {"setting": "compile", "value": )" +
                                  std::string(taken ? "true" : "false") + R"(,
         "words": "torch.compile", "line": 7}]}})");
    EXPECT_EQ(with_findings({}, read_findings(*file), false).job.compile, taken);
  }
}

TEST(ScriptFindings, TakeWhereGradientsGoAndHowFsdpComputes) {
  const auto file = json::parse(R"({"script": {"file": "train.py", "found": [
      {"setting": "zero-grad-between", "value": true, "words": "between", "line": 4},
      {"setting": "cuda-graphs", "value": true, "words": "CUDA graphs", "line": 5},
      {"setting": "parallel", "value": "fsdp", "words": "FSDP", "line": 9},
      {"setting": "fsdp-mixed-precision", "value": "reduce-fp32", "words": "bf16", "line": 9}]
}
})");
  const ScriptFindings found = read_findings(*file);
  const RunRequest alone = with_findings({}, found, false);
  EXPECT_TRUE(alone.job.zero_grad_between);
  EXPECT_TRUE(alone.job.cuda_graphs);
  EXPECT_FALSE(alone.job.fsdp_precision.has_value()) << "one GPU shares nothing";
  RunRequest asked;
  asked.gpus = 4;
  EXPECT_EQ(with_findings(asked, found, false).job.fsdp_precision, FsdpPrecision::kReduceFp32);
  asked.job.parallel = Parallel::kDdp;
  asked.job.zero_grad_after = true;
  const RunRequest overruled = with_findings(asked, found, false);
  EXPECT_FALSE(overruled.job.fsdp_precision.has_value());
  EXPECT_FALSE(overruled.job.zero_grad_between);
}

TEST(ScriptFindings, OfAGpuMeanNothingForACpu) {
  const RunRequest filled = with_findings({}, findings(), true);
  EXPECT_TRUE(filled.pin);
  EXPECT_FALSE(filled.job.cudnn_benchmark);
  EXPECT_EQ(filled.workers, 3);
}

TEST(ScriptFindings, CountsTheValuesThatWereRead) {
  Diagnostics data;
  note_reads(findings(), data);
  EXPECT_EQ(data.count("script_reads"), 2);
  EXPECT_EQ(data.all().front().advice,
            "train.py read values that a capture does not have: line 33 got 1.0");
}

TEST(ScriptFindings, AStepFileOfAModelHasNone) {
  const ScriptFindings none = read_findings(*json::parse(R"({"name": "resnet50"})"));
  EXPECT_TRUE(none.found.empty());
  EXPECT_EQ(findings_words({}, none), "");
}

TEST(ScriptModel, IsAFileOfPythonWithoutAFunction) {
  EXPECT_TRUE(is_script("train.py"));
  EXPECT_TRUE(is_script("jobs/run.sh"));
  EXPECT_TRUE(is_script("jobs/train.slurm"));
  EXPECT_TRUE(is_script("train.ipynb"));
  EXPECT_FALSE(is_script("train.py:model"));
  EXPECT_FALSE(is_script("resnet50.step.gz"));
}

}  // namespace
}  // namespace stoker
