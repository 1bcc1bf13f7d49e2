#include "input/pipeline/pipeline_probe.h"

#include <gtest/gtest.h>

#include <string>

namespace stoker {
namespace {

// clang-format off
const std::string kWhole = R"json({
 "format": "stoker-pipeline-probe", "schema_version": [1, 0],
 "name": "train.py:dataset", "kind": "map", "samples": 1000,
 "loader": {"batch_size": 32, "num_workers": 4, "prefetch_factor": 3, "pin_memory": true,
            "persistent_workers": true, "drop_last": true, "in_order": false,
            "start_method": "spawn", "shuffle": true, "batch_sampler": false,
            "custom_collate": true},
 "sample": {"cpu_ms": [1.0, 3.0], "wait_ms": [0.5, 0], "file_bytes": [1000, 3000],
            "in_process_ratio": 0.9, "stages_how": "transforms",
            "stages": [{"name": "decode", "ms": 1.5, "share": 0.75}],
            "size_correlation": 1.0, "gil_wait_ms": 4.5,
            "within_batch_correlation": 0.25},
 "batch": [{"batch": 32, "samples": 32, "bytes": 3200, "tensors": 2, "collate_shared_ms": 0.4,
            "collate_private_ms": 0.3, "pickled_bytes": 64},
           {"batch": 8, "samples": 8, "bytes": 400, "tensors": 2, "collate_shared_ms": 0.1,
            "collate_private_ms": 0.1, "pickled_bytes": 16}],
 "output": "dict(image: float32[3, 224, 224])",
 "transport": {"per_batch_main_ms": 0.7, "collate_per_sample_ms": null, "of_the_future": 4},
 "start": {"fork_ms": 20, "spawn_ms": 2500, "forkserver_ms": null, "warm_up_ms": 45,
   "picklable": true,
           "why_not": null, "pickled_bytes": 100000},
 "memory": {"worker_private_bytes": 50000000, "worker_peak_bytes": 60000000, "objects": 10,
            "object_bytes": 7000000, "copied_on_read": true},
 "parallel": {"processes": 2, "efficiency": 0.8, "crowded_efficiency": 0.96},
 "foreign": {"wall_per_cpu": 1.02, "run_queue_share": 0.01, "steal_share": 0, "disturbed": false},
 "provenance": {"stoker_version": "0.1", "date": "2026-11-28", "cpu_model": "Xeon", "cores": 2,
                "python": "3.11.7", "torch": "2.13.0"},
 "findings": [{"name": "sample_raised", "severity": "warning", "count": 3, "advice": "Mend it."}]
})json";
// clang-format on

std::string changed(const std::string& from, const std::string& to) {
  std::string text = kWhole;
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string error_of(const std::string& text) {
  const auto probe = parse_pipeline_probe(text, "p.json");
  return probe ? "" : probe.error().text();
}

TEST(PipelineProbe, ReadsEverything) {
  ASSERT_TRUE(is_pipeline_probe(kWhole));
  const auto probe = parse_pipeline_probe(kWhole, "p.json");
  ASSERT_TRUE(probe) << probe.error().text();
  EXPECT_EQ(probe->name, "train.py:dataset");
  EXPECT_FALSE(probe->iterable);
  EXPECT_EQ(probe->samples, 1000);
  ASSERT_TRUE(probe->loader);
  EXPECT_EQ(probe->loader->batch, 32);
  EXPECT_EQ(probe->loader->workers, 4);
  EXPECT_EQ(probe->loader->prefetch, 3);
  EXPECT_TRUE(probe->loader->pin && probe->loader->persistent && probe->loader->drop_last);
  EXPECT_FALSE(probe->loader->in_order);
  EXPECT_EQ(probe->loader->start_method, StartMethod::kSpawn);
  EXPECT_TRUE(probe->shuffle && probe->custom_collate);
  ASSERT_EQ(probe->cpu.size(), 2U);
  EXPECT_DOUBLE_EQ(milliseconds(probe->cpu[1]), 3);
  EXPECT_DOUBLE_EQ(milliseconds(probe->wait[0]), 0.5);
  EXPECT_EQ(probe->stages_how, "transforms");
  EXPECT_DOUBLE_EQ(milliseconds(probe->stages.at(0).time), 1.5);
  EXPECT_DOUBLE_EQ(milliseconds(probe->gil_wait.value()), 4.5);
  ASSERT_EQ(probe->batch.size(), 2U);
  EXPECT_EQ(probe->batch[0].batch, 8) << "not sorted by size";
  EXPECT_EQ(probe->transport.size(), 1U) << "null and unknown keys were taken";
  EXPECT_DOUBLE_EQ(milliseconds(probe->start.spawn), 2500);
  EXPECT_EQ(probe->start.forkserver.count(), 0);
  EXPECT_DOUBLE_EQ(milliseconds(probe->start.warm_up), 45);
  EXPECT_TRUE(probe->memory.copied_on_read);
  EXPECT_DOUBLE_EQ(probe->parallel.efficiency, 0.8);
  EXPECT_EQ(probe->findings.count("sample_raised"), 3);
  EXPECT_EQ(probe->torch, "2.13.0");
}

TEST(PipelineProbe, TheSimulationsView) {
  LoaderProfile profile;
  profile.transport.per_batch_main = 9.0 * kMillisecond;
  profile.transport.per_tensor_main = 0.2 * kMillisecond;
  profile.transport.sample_fault_ns = 5;
  const SampleCost cost = sample_cost_from_pipeline(*parse_pipeline_probe(kWhole), profile);
  EXPECT_TRUE(cost.known);
  EXPECT_DOUBLE_EQ(milliseconds(cost.mean_cpu()), 2);
  EXPECT_DOUBLE_EQ(milliseconds(cost.mean_wait()), 0.25);
  EXPECT_DOUBLE_EQ(milliseconds(cost.transport.per_batch_main), 0.7) << "measured wins";
  EXPECT_DOUBLE_EQ(milliseconds(cost.transport.per_tensor_main), 0.2) << "profile fills in";
  EXPECT_EQ(cost.transport.sample_fault_ns, 0) << "the samples' CPU time holds it";
  EXPECT_DOUBLE_EQ(milliseconds(cost.lock_wait), 4.5);
  EXPECT_NEAR(cost.transport.oversubscription, 1 / 0.96 - 1, 1e-12);
  EXPECT_DOUBLE_EQ(milliseconds(cost.warm_up), 45);
  EXPECT_EQ(cost.transport.worker_private.count(), 50'000'000);
  EXPECT_DOUBLE_EQ(cost.slowdown_per_core, 0.25);
  EXPECT_DOUBLE_EQ(cost.read_bytes, 2000);
  EXPECT_EQ(cost.dataset_bytes.count(), 2'000'000);
  EXPECT_EQ(cost.copied_on_read.count(), 7'000'000);
  EXPECT_EQ(cost.start.pickled.count(), 100'000);
  EXPECT_NE(cost.basis.find("train.py:dataset (2 samples)"), std::string::npos) << cost.basis;
}

/// What was pickled until it was broken off gives way to what parts of the data set say of it all;
/// an interpreter that was started without data is the rest of a start.
TEST(PipelineProbe, AStartAddsUpFromItsPieces) {
  const std::string pieces = changed("\"spawn_ms\": 2500", R"("interpreter_ms": 800,
      "pickled_whole": false, "pickle_ms": 100, "estimated": {"pickled_bytes": 200000000,
      "pickle_ms": 600, "unpickle_ms": 400}, "spawn_ms": null)");
  const auto probe = parse_pipeline_probe(pieces);
  ASSERT_TRUE(probe) << probe.error().text();
  EXPECT_TRUE(probe->start.estimated);
  const SampleCost cost = sample_cost_from_pipeline(*probe, {});
  EXPECT_EQ(cost.start.pickled.count(), 200'000'000);
  const LoaderForecast out =
      simulate_loader({.batch = 8, .workers = 2, .pin = false, .start_method = StartMethod::kSpawn},
                      cost, {.cores = 8}, Nanos{});
  // 0.8 s of an interpreter, 0.6 + 0.4 s of the data, 0.2 s of the pipe: one worker after the
  // other.
  EXPECT_NEAR(seconds(out.started), 2 * 2.0, 0.1);
  EXPECT_GT(out.started_band.above, 0.9) << "parts that speak for the whole";
  EXPECT_EQ(error_of(changed("\"spawn_ms\": 2500", "\"estimated\": {\"pickle_ms\": -1}")),
            "p.json: field \"start.estimated.pickle_ms\" is negative; probe the pipeline again");
}

TEST(PipelineProbe, SaysWhatItLacks) {
  const std::string bare =
      R"({"format": "stoker-pipeline-probe", "schema_version": [1, 0],
          "sample": {"cpu_ms": [1]}})";
  const auto probe = parse_pipeline_probe(bare);
  ASSERT_TRUE(probe) << probe.error().text();
  EXPECT_FALSE(probe->loader);
  const SampleCost cost = sample_cost_from_pipeline(*probe, {});
  for (const char* word : {"transport", "batches", "parallel efficiency"})
    EXPECT_NE(cost.basis.find(word), std::string::npos) << cost.basis;
  EXPECT_EQ(cost.batch_bytes(32), 0);
}

TEST(PipelineProbe, RefusesWhatItCannotMean) {
  EXPECT_NE(error_of("{").find("damaged"), std::string::npos);
  EXPECT_NE(error_of("{}").find("stoker probe FILE.py:FUNCTION"), std::string::npos);
  EXPECT_NE(error_of(changed("[1, 0]", "[2, 0]")).find("update stoker"), std::string::npos);
  const auto refused = [](const std::string& from, const std::string& to,
                          const std::string& field) {
    const std::string error = error_of(changed(from, to));
    EXPECT_NE(error.find("p.json: field \"" + field), std::string::npos) << to << ": " << error;
  };
  refused("\"cpu_ms\": [1.0, 3.0]", "\"cpu_ms\": []", "sample.cpu_ms");
  refused("\"cpu_ms\": [1.0, 3.0]", "\"cpu_ms\": [1.0, -3.0]", "sample.cpu_ms[1]");
  refused("\"wait_ms\": [0.5, 0]", "\"wait_ms\": [0.5]", "sample.wait_ms");
  refused("\"kind\": \"map\"", "\"kind\": \"bag\"", "kind");
  refused("\"start_method\": \"spawn\"", "\"start_method\": \"hatch\"", "loader.start_method");
  refused("\"efficiency\": 0.8", "\"efficiency\": 0", "parallel.efficiency");
  refused("\"per_batch_main_ms\": 0.7", "\"per_batch_main_ms\": \"fast\"",
          "transport.per_batch_main_ms");
  refused("\"batch\": 8,", "\"batch\": 32,", "batch");
  refused("\"within_batch_correlation\": 0.25", "\"within_batch_correlation\": 2",
          "sample.within_batch_correlation");
  std::string deep = "{\"format\": ";
  for (int i = 0; i < 100; ++i) deep += "[";
  EXPECT_NE(error_of(deep).find("nested"), std::string::npos);
}

TEST(BatchFactsAt, FollowTheMeasuredSizes) {
  const auto probe = parse_pipeline_probe(kWhole);
  ASSERT_TRUE(probe);
  // 8 -> 400, 32 -> 3200: padding makes a sample of a larger batch bigger.
  EXPECT_EQ(batch_facts_at(probe->batch, 20).bytes.count(), 1800);
  EXPECT_EQ(batch_facts_at(probe->batch, 56).bytes.count(), 6000);
  EXPECT_EQ(batch_facts_at(probe->batch, 4).bytes.count(), 200);
  EXPECT_NEAR(milliseconds(batch_facts_at(probe->batch, 20).collate_shared), 0.25, 1e-12);
  const std::vector<BatchFacts> one{probe->batch[0]};
  EXPECT_EQ(batch_facts_at(one, 16).bytes.count(), 800);
}

const char* const kInOrder = R"({"format": "stoker-pipeline-probe", "schema_version": [1, 1],
    "samples": 4000, "sample": {"cpu_ms": [1, 1, 1, 1], "wait_ms": [0, 500, 0, 500],
                                "repeat_spread": 0.4},
    "order": {"whole": false, "stretches": [
      {"first": 0, "cpu_ms": [1, 1], "wait_ms": [0, 500]},
      {"first": 64, "cpu_ms": [1, 1], "wait_ms": [0, 500]}]},
    "streams": [{"num_workers": 2, "same": false, "workers": [
      {"samples": 30, "start_ms": 0, "cpu_ms": [1], "wait_ms": [0]},
      {"samples": null, "start_ms": 7, "cpu_ms": [1, 2], "wait_ms": [0, 3]}]}]})";

TEST(PipelineProbe, KeepsOrderAndStreams) {
  const auto probe = parse_pipeline_probe(kInOrder);
  ASSERT_TRUE(probe) << probe.error().text();
  const SampleCost cost = sample_cost_from_pipeline(*probe, {});
  EXPECT_EQ(cost.stretches, (std::vector<std::int64_t>{2, 2}));
  ASSERT_EQ(cost.wait.size(), 4U);
  EXPECT_DOUBLE_EQ(milliseconds(cost.wait[1]), 500) << "not sorted";
  ASSERT_EQ(cost.streams.size(), 1U);
  const std::vector<StreamCost>& workers = cost.streams[0].workers;
  EXPECT_EQ(workers[0].samples, 30);
  EXPECT_LT(workers[1].samples, 0) << "it did not end";
  EXPECT_DOUBLE_EQ(milliseconds(workers[1].start), 7);
  EXPECT_DOUBLE_EQ(milliseconds(workers[1].wait[1]), 3);
  std::string uneven = kInOrder;
  uneven.replace(uneven.find("\"wait_ms\": [0, 3]"), 17, "\"wait_ms\": [0]");
  EXPECT_NE(error_of(uneven).find("streams[0].workers[1].wait_ms"), std::string::npos)
      << error_of(uneven);
}

TEST(PipelineProbe, ObjectsCostWhatPicklingThemTook) {
  const auto cost_with = [&](const std::string& row) {
    return sample_cost_from_pipeline(
        *parse_pipeline_probe(R"({"format": "stoker-pipeline-probe", "schema_version": [1, 1],
            "sample": {"cpu_ms": [0.01, 0.01]}, "transport": {"pickle_main_ns_per_byte": 2,
            "pickle_worker_ns_per_byte": 1}, "batch": [{"batch": 8, "samples": 8, "tensors": 0,
            "pickled_bytes": 8000000)" +
                              row + "}]}"),
        {});
  };
  const LoaderSettings two{.batch = 8, .workers = 2, .pin = false};
  const auto interval = [&](const SampleCost& cost) {
    return milliseconds(
        simulate_loader(two, cost, {.cores = 8}, {.consumption = Consumption::kBlocking}).interval);
  };
  const double bare = interval(cost_with("")), with = interval(cost_with(", \"unpickle_ms\": 9"));
  EXPECT_NEAR(bare, 16, 1.5) << "8 MB at 2 ns, one receiver for both workers";
  EXPECT_NEAR(with - bare, 9, 1e-6);
}

TEST(PipelineProbe, SamplesAtRandomPlacesWidenTheBandOfOneStretch) {
  const auto probe = parse_pipeline_probe(kInOrder);
  ASSERT_TRUE(probe);
  PipelineProbe half = *probe;
  half.repeat_spread.reset();
  half.order.resize(1);
  half.order[0].cpu.assign(40, Nanos(0));
  half.order[0].wait.assign(40, 20 * kMillisecond);
  half.random = 5 * kMillisecond;  // everywhere else it is far quicker
  half.random_error = 0.5 * kMillisecond;
  const SampleCost cost = sample_cost_from_pipeline(half, {});
  EXPECT_NEAR(cost.wait_band.above, 4 * 1.2 - 1, 0.01);
  EXPECT_NEAR(1 - cost.wait_band.below, 1 / (4 * 1.2), 0.01) << "the other way round as well";
  half.whole_epoch = true;
  EXPECT_LT(sample_cost_from_pipeline(half, {}).wait_band.above, 0.1);
}

TEST(PipelineProbe, AServerThatForksHasPyTorchWhereItsPythonSaysSo) {
  const auto first_batch = [](const char* python) {
    PipelineProbe probe;
    probe.cpu = {Nanos(1e3)};
    probe.python = python;
    probe.loader = LoaderSettings{.start_method = StartMethod::kForkserver};
    const LoaderSettings two{
        .batch = 1, .workers = 2, .pin = false, .start_method = StartMethod::kForkserver};
    return seconds(simulate_loader(two, sample_cost_from_pipeline(probe, {}), {.cores = 1},
                                   {.consumption = Consumption::kBlocking})
                       .first_batch);
  };
  EXPECT_NEAR(first_batch("3.11.7"), 2 * 1.2, 0.05) << "each imports it";
  for (const char* python : {"3.12.11", "3.13.7", "3.14.0"})
    EXPECT_NEAR(first_batch(python), 2 * 1.2, 0.05) << python;
  for (const char* python : {"3.13.8", "3.14.1", "3.15.0"})
    EXPECT_NEAR(first_batch(python), 1.2 + 2 * 0.03, 0.05) << python;
}

TEST(PipelineProbe, SeedsThatDecideAStreamsCostWidenItsBand) {
  const auto probe = parse_pipeline_probe(kInOrder);
  ASSERT_TRUE(probe);
  PipelineProbe seeded = *probe;
  seeded.whole_epoch = true;
  seeded.repeat_spread.reset();
  seeded.seed_spread = 0.6;
  EXPECT_NEAR(sample_cost_from_pipeline(seeded, {}).wait_band.above, 0.6, 1e-12);
}

TEST(PipelineProbe, BandsHoldWhatRepeatsAndOtherSamplesShow) {
  const auto probe = parse_pipeline_probe(kInOrder);
  ASSERT_TRUE(probe);
  // Four samples of 1 to 501 ms out of 4,000: their mean is hardly known.
  const SampleCost cost = sample_cost_from_pipeline(*probe, {});
  EXPECT_GT(cost.wait_band.above, 0.9);
  EXPECT_LT(cost.wait_band.below, 1) << "no time below nothing";
  EXPECT_GE(cost.band.above, kProbeError);
  PipelineProbe all = *probe;
  all.samples = 4;  // all of them
  EXPECT_NEAR(sample_cost_from_pipeline(all, {}).wait_band.above, 0.4, 1e-12) << "the repeats'";
  all.repeat_spread.reset();
  EXPECT_NEAR(sample_cost_from_pipeline(all, {}).wait_band.above, 0.03, 1e-12);
  const SampleCost slow = at_band_end(cost, 1 + cost.band.above);
  EXPECT_NEAR(slow.wait[1] / cost.wait[1], 1 + cost.wait_band.above, 1e-12);
  EXPECT_NEAR(slow.cpu[0] / cost.cpu[0], 1 + cost.band.above, 1e-12);
  EXPECT_NEAR(at_band_end(cost, 0.5).wait[1] / cost.wait[1], 1 - cost.wait_band.below, 1e-12);
}

/// A real loader of one worker beside the parts that were measured one by one.
TEST(PipelineProbe, OneWorkerSaysWhatThePartsMiss) {
  LoaderProfile profile;
  const auto cost_with = [&](const std::string& run) {
    return sample_cost_from_pipeline(
        *parse_pipeline_probe(changed("\"memory\":", "\"one_worker\": " + run + ", \"memory\":")),
        profile);
  };
  // Batches of 8 take 8 * 2 + 0.1 ms; without locks the loader takes as long from batch to batch.
  const std::string tail = ", \"batch\": 8, \"batches\": 20}";
  const SampleCost plain = cost_with("{\"interval_ms\": 0, \"make_cpu_ms\": 16.1" + tail);
  EXPECT_EQ(plain.worker_extra.count(), 0) << "an empty run was taken";
  const SampleCost a = cost_with("{\"interval_ms\": 30, \"make_cpu_ms\": 16.1" + tail);
  const SampleCost b = cost_with("{\"interval_ms\": 33, \"make_cpu_ms\": 16.1" + tail);
  EXPECT_NEAR(milliseconds(b.worker_extra - a.worker_extra), 3, 1e-9);
  EXPECT_DOUBLE_EQ(milliseconds(a.mean_cpu()), 2);
  // A faster moment of the machine: the mean of both counts, what was lost stays.
  const SampleCost c = cost_with("{\"interval_ms\": 26.8, \"make_cpu_ms\": 12.88" + tail);
  EXPECT_NEAR(milliseconds(c.mean_cpu()), 1.8, 1e-9);
  // The forecast of that very loader is what was measured.
  const LoaderForecast out = simulate_loader({.batch = 8, .workers = 1, .pin = false}, a,
                                             {.cores = 2}, {.consumption = Consumption::kBlocking});
  EXPECT_NEAR(milliseconds(out.interval), 30, 0.3);
}

/// Standstills of a busy worker are told from samples that wait; its first batch gives the start.
TEST(PipelineProbe, OneWorkerSaysStallsAndStart) {
  LoaderProfile profile;
  const auto cost_with = [&](const std::string& waits, const std::string& run) {
    std::string text = changed("\"wait_ms\": [0.5, 0]", "\"wait_ms\": " + waits);
    text.replace(text.find("\"gil_wait_ms\": 4.5"), 18, "\"gil_wait_ms\": 0.0");
    text.replace(text.find("\"memory\":"), 9, "\"one_worker\": " + run + ", \"memory\":");
    return sample_cost_from_pipeline(*parse_pipeline_probe(text), profile);
  };
  const auto run = [](const std::string& interval, const std::string& wall) {
    return "{\"interval_ms\": " + interval + ", \"make_cpu_ms\": 16.1, \"make_wall_ms\": " + wall +
           ", \"batch\": 8, \"batches\": 50, \"first_batch_ms\": 99.1, \"first_make_cpu_ms\": "
           "61.1}";
  };
  // Nobody waits: what stands still within making is lost as well.
  const SampleCost stalls = cost_with("[0, 0]", run("20.1", "18.1"));
  const SampleCost none = cost_with("[0, 0]", run("18.1", "16.1"));
  EXPECT_NEAR(milliseconds(stalls.worker_extra - none.worker_extra), 2, 1e-9);
  // Samples of which half wait 4 ms: 1 ms more or less of a batch is within their spread.
  const SampleCost waiting = cost_with("[4, 0]", run("35.1", "33.1"));
  const SampleCost luck = cost_with("[4, 0]", run("34.1", "32.1"));
  EXPECT_NEAR(milliseconds(waiting.worker_extra - luck.worker_extra), 0, 1e-9);
  // 38 ms until the first batch beside its making: receiving takes 0.7, what a worker loses 2.
  EXPECT_NEAR(milliseconds(none.start.fork), 38 - 2.7, 0.05);
  EXPECT_LT(milliseconds(waiting.start.fork), 36) << "a waiting sample was taken for the start";
}

}  // namespace
}  // namespace stoker
