// Many micro-batches: the program has a few of them and repeats a pair. Its answers are those of
// the program that has them all.

#include "base/files.h"
#include "forecast/test_scenario.h"
#include "lower/loop/lower.h"
#include "memory/replay/replay.h"
#include "timing/step/predict_step.h"

namespace stoker {
namespace {

class AccumulationTest : public testing_support::ScenarioTest {
 protected:
  void take(const char* zoo) {
    step_ = read_step_file(*data_folder() / "zoo" / (std::string(zoo) + ".step.gz")).value();
  }
  Program program(int accumulate) {
    scenario_.job.accumulate = accumulate;
    auto lowered = lower(step_, scenario_.job, scenario_.machine);
    EXPECT_TRUE(lowered) << lowered.error().text();
    return std::move(*lowered);
  }
};

/// Every repetition in full.
Program written_out(const Program& program) {
  Program all = program;
  all.repeated = {};
  const auto at = [&](std::size_t i) {
    return program.iteration.begin() + static_cast<std::ptrdiff_t>(i);
  };
  const std::vector<Instruction> pair(at(program.repeated.from), at(program.repeated.to));
  for (std::int64_t i = 1; i < program.repeated.times; ++i)
    all.iteration.insert(all.iteration.begin() + static_cast<std::ptrdiff_t>(program.repeated.from),
                         pair.begin(), pair.end());
  return all;
}

void expect_same_memory(const Program& few, const Program& all, const ReplayOptions& options) {
  const MemoryOutcome a = replay(few, options), b = replay(all, options);
  EXPECT_EQ(a.fits(), b.fits());
  // Blocks differ in their slack from one iteration to the next.
  const auto allocated = static_cast<double>(b.allocated_peak.count());
  EXPECT_NEAR(static_cast<double>(a.allocated_peak.count()), allocated, 2e-3 * allocated);
  EXPECT_EQ(a.reserved_peak, b.reserved_peak);
  EXPECT_EQ(a.requested_peak, b.requested_peak);
  for (std::size_t r = 0; r < kBufferRoles; ++r)
    EXPECT_NEAR(static_cast<double>((a.live.by_role[r] - b.live.by_role[r]).count()), 0,
                2e-3 * allocated);
  EXPECT_EQ(a.retries, b.retries);
  EXPECT_EQ(a.malformed, 0);
  EXPECT_EQ(a.peak.phase, b.peak.phase);
  ASSERT_EQ(a.iterations.size(), b.iterations.size());
  for (std::size_t i = 0; i < a.iterations.size(); ++i) {
    EXPECT_EQ(a.iterations[i].reserved_end, b.iterations[i].reserved_end) << i;
    EXPECT_EQ(a.iterations[i].fresh, b.iterations[i].fresh) << i;
    EXPECT_EQ(a.iterations[i].retries, b.iterations[i].retries) << i;
    EXPECT_EQ(a.iterations[i].device_mallocs, b.iterations[i].device_mallocs) << i;
    EXPECT_EQ(a.iterations[i].device_frees, b.iterations[i].device_frees) << i;
  }
}

void expect_near(Nanos a, Nanos b, const char* what) {
  EXPECT_NEAR(a.count(), b.count(), 1e-7 * b.count() + 1) << what;
}

void expect_same_time(const Program& few, const Program& all, const Scenario& s,
                      const Knowledge& knowledge) {
  const auto coefficients = knowledge.timing.for_device(s.machine.device).value();
  const StepTimeOptions options{.copy = s.job.copy, .gpus = s.job.gpus};
  const StepTime a = predict_step(few, s.machine, coefficients, options);
  const StepTime b = predict_step(all, s.machine, coefficients, options);
  expect_near(a.total, b.total, "total");
  expect_near(a.device, b.device, "device");
  expect_near(a.host, b.host, "host");
  expect_near(a.exposed_host, b.exposed_host, "exposed host");
  expect_near(a.copy, b.copy, "copy");
  expect_near(a.exposed_copy, b.exposed_copy, "exposed copy");
  expect_near(a.communication, b.communication, "communication");
  expect_near(a.exposed_communication, b.exposed_communication, "exposed communication");
  for (std::size_t p = 0; p < kStepPhases; ++p) {
    expect_near(a.phase_device[p], b.phase_device[p], "a phase on the device");
    expect_near(a.phase_elapsed[p], b.phase_elapsed[p], "a phase");
    expect_near(a.phase_host[p], b.phase_host[p], "a phase on the host");
  }
  for (std::size_t i = 0; i < a.bound_device.size(); ++i)
    expect_near(a.bound_device[i], b.bound_device[i], "a bound");
  EXPECT_NEAR(a.band.below, b.band.below, 1e-7);
  EXPECT_NEAR(a.band.above, b.band.above, 1e-7);
  EXPECT_NEAR(a.mfu, b.mfu, 1e-7);
  EXPECT_NEAR(a.busy, b.busy, 1e-7);
}

TEST_F(AccumulationTest, OfManyMicroBatchesAFewAreWrittenOut) {
  take("resnet18.fp32");
  const Program ten = program(10), most = program(4096);
  EXPECT_EQ(program(8).repeated.times, 1);
  EXPECT_EQ(ten.repeated.times, 2);
  EXPECT_EQ(most.repeated.times, 2045);
  EXPECT_EQ(most.iteration.size(), ten.iteration.size());
  EXPECT_EQ(most.kernels.size(), ten.kernels.size());
}

TEST_F(AccumulationTest, AnswersAreThoseOfAllMicroBatches) {
  for (const char* zoo : {"resnet18.fp32", "gpt2.amp-fp16"}) {
    take(zoo);
    // The host limits, both by turns, the device.
    for (const std::int64_t batch : {1, 6, 24}) {
      for (const int accumulate : {9, 10, 41, 130}) {
        SCOPED_TRACE(std::string(zoo) + ", " + std::to_string(batch) + " x " +
                     std::to_string(accumulate));
        scenario_.job = {};
        scenario_.job.batch = batch;
        scenario_.job.precision = *parse_precision(step_.precision);
        scenario_.job.gpus = accumulate % 2 == 0 ? 4 : 1;
        scenario_.machine.gpu_count = scenario_.job.gpus;
        scenario_.job.copy = batch == 6 ? CopyWay::kOverlapped : CopyWay::kPageable;
        const Program few = program(accumulate), all = written_out(few);
        ASSERT_GT(all.iteration.size(), few.iteration.size());
        expect_same_memory(few, all, {});
        expect_same_time(few, all, scenario_, *knowledge_);
      }
    }
  }
}

TEST_F(AccumulationTest, UnderACapacityAsWell) {
  take("resnet18.fp32");
  const Program few = program(60), all = written_out(few);
  ReplayOptions options;
  options.capacity = smallest_capacity(few);
  EXPECT_EQ(*options.capacity, smallest_capacity(all));
  expect_same_memory(few, all, options);
  options.capacity = *options.capacity - 2 * kMiB;
  expect_same_memory(few, all, options);
}

TEST_F(AccumulationTest, OnACpu) {
  take("resnet18.fp32");
  scenario_.machine.device = Cpu{};
  scenario_.machine.device.cpu()->cores = 4;
  const Program few = program(33), all = written_out(few);
  ReplayOptions options;
  options.heap.emplace();
  expect_same_memory(few, all, options);
  expect_same_time(few, all, scenario_, *knowledge_);
}

}  // namespace
}  // namespace stoker
