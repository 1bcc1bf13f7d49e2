#include "report/text/measured/pipeline_probe_text.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

PipelineProbe probe_of_pictures() {
  PipelineProbe probe;
  probe.name = "train.py:loader";
  probe.samples = 12345;
  probe.output = "tuple(float32[3, 224, 224], int)";
  LoaderSettings loader;
  loader.batch = 50;
  probe.loader = loader;
  probe.cpu = {Nanos(3e6), Nanos(5e6)};
  probe.stages = {{"decode", Nanos(3e6), 0.75}, {"other", Nanos(1e6), 0.25}};
  probe.batch = {{.batch = 50,
                  .samples = 50,
                  .bytes = Bytes(30'000'000),
                  .tensors = 2,
                  .collate_shared = Nanos(50e6),
                  .collate_private = Nanos(20e6),
                  .pickled = Bytes(43),
                  .pickle = {},
                  .unpickle = {}}};
  probe.parallel = {.threads = 2, .efficiency = 0.95};
  probe.cpu_model = "Xeon";
  return probe;
}

LoaderProfile free_transport() {
  LoaderProfile profile;
  profile.basis = "test";
  return profile;
}

TEST(PipelineProbeText, AnswersFirst) {
  const std::string text = pipeline_probe_text(probe_of_pictures(), free_transport());
  EXPECT_NE(text.find("train.py:loader: 12,345 samples, tuple(float32[3, 224, 224], int)"),
            std::string::npos)
      << text;
  // 4 ms of CPU time and 1 ms of collating.
  EXPECT_NE(text.find("One worker prepares 200 samples/s"), std::string::npos) << text;
  EXPECT_NE(text.find("in batches of 50: 5.00 ms each"), std::string::npos) << text;
  EXPECT_NE(text.find("2 workers at once keep 95 % of that each"), std::string::npos) << text;
}

TEST(PipelineProbeText, SharesAreOfTheWholeSample) {
  const std::string text = pipeline_probe_text(probe_of_pictures(), free_transport());
  EXPECT_NE(text.find("decode                      3.00   60 %\n"), std::string::npos) << text;
  EXPECT_NE(text.find("collating                   1.00   20 %\n"), std::string::npos) << text;
}

TEST(PipelineProbeText, SaysWhatIsOdd) {
  PipelineProbe probe = probe_of_pictures();
  probe.findings.add("sample_raised", Severity::kWarning, "3 of 60 samples raised.", 3);
  probe.gil_wait = Nanos(4.5e6);
  const std::string text = pipeline_probe_text(probe, free_transport());
  EXPECT_NE(text.find("3 of 60 samples raised."), std::string::npos) << text;
  EXPECT_NE(text.find("hold the interpreter's lock"), std::string::npos) << text;
  EXPECT_EQ(text.find("repeat the probe"), std::string::npos) << text;
}

TEST(PipelineProbeText, AProbeThatOthersDisturbedBlamesNoLock) {
  PipelineProbe probe = probe_of_pictures();
  probe.gil_wait = Nanos(4.5e6);
  probe.contention.disturbed = true;
  const std::string text = pipeline_probe_text(probe, free_transport());
  EXPECT_EQ(text.find("hold the interpreter's lock"), std::string::npos) << text;
  EXPECT_NE(text.find("repeat the probe on a quiet machine"), std::string::npos) << text;
}

TEST(PipelineProbeText, OneSampleAndNothingElse) {
  PipelineProbe probe;
  probe.name = "x.py:f";
  probe.iterable = true;
  probe.cpu = {Nanos(2e3)};
  const std::string text = pipeline_probe_text(probe, free_transport());
  EXPECT_NE(text.find("unknown number of samples (iterable)"), std::string::npos) << text;
  EXPECT_NE(text.find("One worker prepares 500,000 samples/s"), std::string::npos) << text;
}

}  // namespace
}  // namespace stoker
