#include "lower/loop/backend_of.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stoker {
namespace {

std::vector<std::string> names_of(const std::vector<OutsideMemory>& outside) {
  std::vector<std::string> names;
  for (const OutsideMemory& term : outside) names.push_back(term.name);
  return names;
}

TEST(DeviceBackend, AGpuWorksApartFromTheHostAndACpuDoesNot) {
  const Device gpu = Gpu(), cpu = Cpu();
  EXPECT_TRUE(backend_of(gpu)->is_apart());
  EXPECT_FALSE(backend_of(cpu)->is_apart());
  EXPECT_EQ(backend_of(gpu)->default_loop(), OptimizerLoop::kForeach);
  EXPECT_EQ(backend_of(cpu)->default_loop(), OptimizerLoop::kForLoop);
}

TEST(DeviceBackend, RefusesWhatTheDeviceHasNot) {
  const Device gpu = Gpu(), cpu = Cpu();
  Job job;
  job.cuda_graphs = true;
  EXPECT_TRUE(backend_of(gpu)->check(job));
  EXPECT_FALSE(backend_of(cpu)->check(job));
  EXPECT_TRUE(backend_of(cpu)->check(Job()));
}

TEST(DeviceBackend, RunsAJobAsPyTorchDoesThere) {
  const Device gpu = Gpu(), cpu = Cpu();
  Job job;
  job.optimizer.loop = OptimizerLoop::kForeach;
  EXPECT_EQ(backend_of(gpu)->as_run(job).optimizer.loop, OptimizerLoop::kForeach);
  EXPECT_EQ(backend_of(cpu)->as_run(job).optimizer.loop, OptimizerLoop::kForLoop);
  job.optimizer.loop_asked = true;
  EXPECT_EQ(backend_of(cpu)->as_run(job).optimizer.loop, OptimizerLoop::kForeach);
}

TEST(DeviceBackend, NamesWhatLiesOutsideTheAllocator) {
  const Device gpu = Gpu(), cpu = Cpu();
  EXPECT_EQ(names_of(backend_of(gpu)->outside({}, {})), (std::vector<std::string>{"CUDA context"}));
  EXPECT_EQ(names_of(backend_of(cpu)->outside({}, {})),
            (std::vector<std::string>{"Python and PyTorch", "code of the step's operators"}));
}

TEST(DeviceBackend, SaysWhereACaptureIsOfTheOtherKind) {
  const Device gpu = Gpu(), cpu = Cpu();
  const auto counts = [](const Device& device, CaptureKind capture) {
    Step step;
    step.provenance.capture = capture;
    Diagnostics diagnostics;
    backend_of(device)->note(step, diagnostics);
    return std::pair(diagnostics.count("captured_on_cpu"), diagnostics.count("captured_for_cuda"));
  };
  EXPECT_EQ(counts(gpu, CaptureKind::kFakeCpu), std::pair(std::int64_t{1}, std::int64_t{0}));
  EXPECT_EQ(counts(cpu, CaptureKind::kFakeCpu), std::pair(std::int64_t{0}, std::int64_t{0}));
  EXPECT_EQ(counts(cpu, CaptureKind::kFakeCuda), std::pair(std::int64_t{0}, std::int64_t{1}));
  EXPECT_EQ(counts(gpu, CaptureKind::kFakeCuda), std::pair(std::int64_t{0}, std::int64_t{0}));
}

}  // namespace
}  // namespace stoker
