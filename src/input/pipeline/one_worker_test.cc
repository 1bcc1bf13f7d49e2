#include "input/pipeline/one_worker.h"

#include <gtest/gtest.h>

#include <string>

#include "input/loader/loader_simulation.h"

namespace stoker {
namespace {

/// Samples of 0.01 ms in batches of 4 with these facts, and a real loader that took this.
SampleCost cost_of(const std::string& batch, const std::string& run,
                   const std::string& cpu_ms = "0.01, 0.01") {
  const std::string text = R"({"format": "stoker-pipeline-probe", "schema_version": [1, 1],
    "name": "t.py:loader", "kind": "map", "samples": 4000, "sample": {"cpu_ms": [)" +
                           cpu_ms + R"(]},
    "transport": {"per_batch_main_ms": 0.5, "per_tensor_main_ms": 0.1},
    "batch": [{"batch": 4, "samples": 4, )" +
                           batch + R"(}], "one_worker": {"batch": 4, "batches": 50, )" + run + "}}";
  const auto probe = parse_pipeline_probe(text);
  EXPECT_TRUE(probe) << probe.error().text();
  return sample_cost_from_pipeline(*probe, {});
}

double interval_ms(const SampleCost& cost, int workers = 1) {
  return milliseconds(simulate_loader({.batch = 4, .workers = workers, .pin = false}, cost,
                                      {.cores = 4}, {.consumption = Consumption::kBlocking})
                          .interval);
}

/// Tensors enough that receiving them takes 2.1 ms.
constexpr const char* kManyTensors =
    R"("bytes": 64, "tensors": 16, "collate_shared_ms": 0.01, "pickled_bytes": 64)";

TEST(OneWorker, ObjectsTakeWhatTheFeederTook) {
  // Pickling and the pipe, one after the other: 6 ms as parts.
  const SampleCost cost = cost_of(
      R"("bytes": 0, "tensors": 0, "collate_shared_ms": 0.01, "pickled_bytes": 4000000,
         "pickle_ms": 3, "unpickle_ms": 0.5, "pipe_ms": 3)",
      R"("interval_ms": 8, "make_cpu_ms": 0.05, "dump_ms": 3, "recv_ms": 3, "load_ms": 0.5)");
  EXPECT_NEAR(interval_ms(cost), 8, 0.2);
}

TEST(OneWorker, PartsThatSayTooMuchOfReceivingAreCut) {
  const SampleCost cost = cost_of(kManyTensors, R"("interval_ms": 1.2, "make_cpu_ms": 0.05)");
  EXPECT_NEAR(interval_ms(cost), 1.2, 0.05);
}

/// The feeder thread copies what a collate function leaves in private memory: no part of the
/// loader's making.
TEST(OneWorker, CopyingIsNoPartOfMaking) {
  const std::string facts =
      R"("bytes": 9000000, "tensors": 4, "collate_shared_ms": 6, "pickled_bytes": 64)";
  const std::string run = R"("interval_ms": 9, "make_cpu_ms": 0.84)";
  const SampleCost cost = cost_of(facts + R"(, "share_ms": 5.2)", run);
  EXPECT_NEAR(interval_ms(cost), 9, 0.1);
  EXPECT_NEAR(milliseconds(cost.batches[0].collate_shared), 6, 1e-9) << "the parts agree";
  EXPECT_NEAR(interval_ms(cost_of(facts, run)), 9, 0.1) << "a probe that does not tell them apart";
}

TEST(OneWorker, TheBandHoldsWhoeverLosesTheTime) {
  const SampleCost cost = cost_of(kManyTensors, R"("interval_ms": 4, "make_cpu_ms": 0.05)");
  EXPECT_NEAR(interval_ms(cost), 4, 0.1);
  EXPECT_NEAR(interval_ms(cost, 2), 2.1 + 0.95, 0.15) << "half of what 2.1 ms of receiving miss";
  EXPECT_GT(interval_ms(at_band_end(cost, 1.001), 2), 3.9) << "a second worker gains nothing";
  EXPECT_LT(interval_ms(at_band_end(cost, 0.999), 2), 2.2) << "or everything";
  EXPECT_NE(cost.basis.find("receiver lose"), std::string::npos) << cost.basis;
}

TEST(OneWorker, ThreadsOfSamplesTakeTimeNotCpuTime) {
  const std::string facts =
      R"("bytes": 64, "tensors": 1, "collate_shared_ms": 0.01, "pickled_bytes": 64)";
  const SampleCost cost = cost_of(
      facts, R"("interval_ms": 2.5, "make_cpu_ms": 1.9, "make_wall_ms": 2, "worker_cpu_ms": 4.5)",
      "1, 1");
  EXPECT_NEAR(interval_ms(cost), 2.5, 0.15);
  EXPECT_GE(cost.band.above, 1);
  EXPECT_NE(cost.basis.find("threads of their own"), std::string::npos) << cost.basis;
  const SampleCost plain = cost_of(
      facts, R"("interval_ms": 4.5, "make_cpu_ms": 4, "make_wall_ms": 4, "worker_cpu_ms": 4.4)",
      "1, 1");
  EXPECT_LT(plain.band.above, 0.5);
  EXPECT_EQ(plain.basis.find("threads of their own"), std::string::npos) << plain.basis;
  // Without the time of making nothing tells.
  const SampleCost unknown =
      cost_of(facts, R"("interval_ms": 2.5, "make_cpu_ms": 1.9, "worker_cpu_ms": 4.5)", "1, 1");
  EXPECT_GT(unknown.mean_cpu().count(), 0);
  EXPECT_EQ(unknown.basis.find("threads of their own"), std::string::npos) << unknown.basis;
}

/// Batches of a fraction of a millisecond go as fast as threads wake.
TEST(OneWorker, ShortBatchesHaveAWideBand) {
  const SampleCost cost = cost_of(kManyTensors, R"("interval_ms": 0.6, "make_cpu_ms": 0.05)");
  EXPECT_GT(cost.band.above, 0.8);
  EXPECT_NE(cost.basis.find("waking threads"), std::string::npos) << cost.basis;
}

/// What a slower machine does to samples it does to collating and receiving too.
TEST(OneWorker, TheBandHoldsTheWholeOfABatch) {
  const auto probe =
      parse_pipeline_probe(R"({"format": "stoker-pipeline-probe", "schema_version": [1, 1],
    "name": "t.py:loader", "kind": "map", "samples": 4000, "sample": {"cpu_ms": [0.001, 0.001]},
    "transport": {"per_batch_main_ms": 0.1},
    "batch": [{"batch": 8, "samples": 8, "bytes": 9000000, "tensors": 1, "collate_shared_ms": 6,
               "pickled_bytes": 64}]})");
  ASSERT_TRUE(probe) << probe.error().text();
  const SampleCost cost = sample_cost_from_pipeline(*probe, {});
  const auto interval = [&](double factor) {
    return simulate_loader({.batch = 8, .workers = 1, .pin = false}, at_band_end(cost, factor),
                           {.cores = 2}, {.consumption = Consumption::kBlocking})
        .interval;
  };
  EXPECT_NEAR(interval(1.5) / interval(1), 1.5, 1e-6);
}

}  // namespace
}  // namespace stoker
