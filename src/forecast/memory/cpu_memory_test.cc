#include <gtest/gtest.h>

#include "forecast/memory_forecast.h"
#include "forecast/test_scenario.h"
#include "lower/loop/lower.h"

namespace stoker {
namespace {

class CpuMemory : public testing_support::ScenarioTest {
 protected:
  void SetUp() override {
    ScenarioTest::SetUp();
    Cpu cpu;
    cpu.name = "test CPU";
    cpu.cores = 2;
    cpu.peak.fp32 = 100e9;
    cpu.bandwidth = 20e9;
    cpu.memory = cpu.usable_memory = 16 * kGiB;
    cpu.context_memory = 256 * kMiB;
    scenario_.machine.device = cpu;
    step_.provenance.capture = CaptureKind::kFakeCpu;
  }

  Program program_at(std::int64_t batch) {
    Job job = scenario_.job;
    job.batch = batch;
    auto program = lower(step_, job, scenario_.machine);
    EXPECT_TRUE(program);
    return program.value();
  }
  MemoryForecast memory_at(std::int64_t batch) {
    const Program program = program_at(batch);
    return forecast_memory(program, scenario_.machine, {}, *knowledge_,
                           memory_error_case(program, scenario_.job, scenario_.machine));
  }
};

TEST_F(CpuMemory, ThePeakIsTheProcessBeforeAndItsHeap) {
  const MemoryForecast memory = memory_at(1 << 20);
  EXPECT_TRUE(memory.fits);
  const auto mebibytes_of = [](const Figure& f) { return f.value / (1 << 20); };
  const Bytes outside = outside_bytes(program_at(1 << 20));
  EXPECT_GE(outside, 256 * kMiB);
  EXPECT_NEAR(mebibytes_of(memory.device_peak),
              mebibytes(outside) + mebibytes_of(memory.reserved_peak), 1e-6);
  EXPECT_GE(memory.reserved_peak.value + 4096, memory.allocated_peak.value);
  EXPECT_LT(memory.device_peak.low, memory.device_peak.value);
  EXPECT_GT(memory.device_peak.high, memory.device_peak.value);
  EXPECT_EQ(memory.device_peak.basis.find("allocator"), std::string::npos);
}

TEST_F(CpuMemory, ACompiledProcessHoldsTheCompilerAndHasABandOfItsOwn) {
  const MemoryForecast eager = memory_at(1 << 20);
  scenario_.job.compile = true;
  const MemoryForecast compiled = memory_at(1 << 20);
  EXPECT_NEAR(compiled.device_peak.value - eager.device_peak.value, 72 * (1 << 20), 1);
  EXPECT_LT(compiled.device_peak.low / compiled.device_peak.value,
            eager.device_peak.low / eager.device_peak.value);
}

TEST_F(CpuMemory, TheAllocatorOfAGpuHasNoSay) {
  const Program program = program_at(1 << 20);
  AllocatorConfig allocator;
  allocator.memory_fraction = 0.001;
  EXPECT_TRUE(judge_memory(program, scenario_.machine, allocator).fits);
}

TEST_F(CpuMemory, TheLargestBatchFillsTheMachine) {
  scenario_.machine.device->usable_memory = 280 * kMiB;
  const auto limits =
      forecast_batch_limits(step_, scenario_.job, scenario_.machine, {}, *knowledge_);
  ASSERT_TRUE(limits) << limits.error().text();
  EXPECT_LE(limits->low, limits->value);
  EXPECT_LE(limits->value, limits->high);
  EXPECT_TRUE(memory_at(limits->value).fits);
  ASSERT_GT(limits->first_failing, limits->value);
  const MemoryForecast beyond = memory_at(limits->first_failing);
  EXPECT_FALSE(beyond.fits);
  EXPECT_NE(beyond.out_of_memory.find("280"), std::string::npos) << beyond.out_of_memory;
}

TEST_F(CpuMemory, AMachineSmallerThanPythonRunsNothing) {
  scenario_.machine.device->usable_memory = 128 * kMiB;
  const MemoryForecast memory = memory_at(1);
  EXPECT_FALSE(memory.fits);
  EXPECT_NE(memory.out_of_memory.find("Python"), std::string::npos) << memory.out_of_memory;
}

TEST_F(CpuMemory, LargeTensorsComeAnewInEachStep) {
  // 16 bytes a sample: tensors beyond malloc's largest threshold are mapped anew each time.
  EXPECT_LT(fresh_bytes(program_at(64), scenario_.machine), kMiB);
  EXPECT_GT(fresh_bytes(program_at(8 << 20), scenario_.machine), 64 * kMiB);
}

}  // namespace
}  // namespace stoker
