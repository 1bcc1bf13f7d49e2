#include "lower/loop/known_cliffs.h"

#include <gtest/gtest.h>

#include "lower/common/test_jobs.h"
#include "lower/loop/lower.h"
#include "step/step_reader.h"

namespace stoker {
namespace {

/// One 3-D convolution of 3 channels into 8, 3 x 3 x 3, over clips of 16 x 128 x 128.
std::string video_json(const std::string& type, const std::string& torch) {
  return R"({
  "format": "stoker-step", "schema_version": [1, 0], "name": "video", "mode": "inference",
  "precision": "fp32",
  "provenance": {"spec": "test", "capture": "fake-cuda", "torch": ")" +
         torch + R"("},
  "dimensions": [{"name": "batch", "default": 2, "min": 1}],
  "diagnostics": {},
  "strings": {"operators": ["aten::convolution"], "modules": [""]},
  "types": [[")" +
         type + R"(", [8, 3, 3, 3, 3]], [")" + type + R"(", [{"batch": 1}, 3, 16, 128, 128]], [")" +
         type + R"(", [{"batch": 1}, 8, 16, 128, 128]]],
  "storages": [[1296, "parameter"], [{"batch": 1572864}, "input"], [{"batch": 4194304}, "output"]],
  "parameters": [{"name": "w", "type": 0, "storage": 0, "requires_grad": false}],
  "buffers": [], "inputs": [{"name": "x", "type": 1, "storage": 1}],
  "events": [["p", "forward"], ["a", 2],
             ["o", 0, 0, 0, [1, 1, 0, 0], [2, 2], {"stride": [1, 1, 1], "padding": [1, 1, 1]}],
             ["p", "end"]]})";
}

Diagnostics notes(const std::string& type, const std::string& torch, std::int64_t batch) {
  const auto step = parse_step(video_json(type, torch), "test");
  EXPECT_TRUE(step) << step.error().text();
  Job job = testing_support::plain_job();
  job.batch = batch;
  const auto program = lower(*step, job, testing_support::ampere());
  EXPECT_TRUE(program) << program.error().text();
  return program->diagnostics;
}

TEST(KnownCliffs, ManyElementsInHalfPrecisionFallOffCudnn) {
  // 8 x 16 x 128 x 128 elements a clip: 1,024 clips are 2^31.
  EXPECT_EQ(notes("bf16", "2.10.0", 1024).count("convolution_beyond_cudnn"), 0);
  EXPECT_EQ(notes("bf16", "2.10.0", 1025).count("convolution_beyond_cudnn"), 1);
  EXPECT_EQ(notes("f32", "2.10.0", 1025).count("convolution_beyond_cudnn"), 0);
}

TEST(KnownCliffs, AVersionThatRunsThemWithoutCudnnIsNamedWithTheColumns) {
  EXPECT_EQ(notes("bf16", "2.8.0", 2).count("convolution_without_cudnn"), 0);
  EXPECT_EQ(notes("f32", "2.9.1", 2).count("convolution_without_cudnn"), 0);
  const Diagnostics found = notes("bf16", "2.9.1+cu128", 2);
  ASSERT_EQ(found.count("convolution_without_cudnn"), 1);
  for (const Diagnostic& d : found.all()) {
    if (d.name != "convolution_without_cudnn") continue;
    // 27 values of 3 channels at each of 16 x 128 x 128 places, of 2 bytes.
    EXPECT_NE(d.advice.find("40.5 MiB a sample (27 x"), std::string::npos) << d.advice;
    EXPECT_NE(d.advice.find("9.15"), std::string::npos);
  }
}

}  // namespace
}  // namespace stoker
