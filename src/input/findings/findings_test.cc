#include "input/findings/findings.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace stoker {
namespace {

constexpr std::int64_t kPicture = 3 * 224 * 224 * 4;

/// Samples of `ms` CPU time, 0.6 MB each; nothing else costs anything.
SampleCost samples_of(double ms) {
  return sample_cost_given(ms * kMillisecond, {Bytes(kPicture), 2}, {});
}

/// Four workers on eight cores that make a batch of 32 in 128 ms, before a step of `step_ms`.
LoaderCase ordinary(double step_ms) {
  LoaderCase c;
  c.settings = {.batch = 32, .workers = 4, .pin = false, .persistent = true};
  c.sample = samples_of(4);
  c.host = {.cores = 8, .memory = 64 * kGiB};
  c.consumer = {.step = step_ms * kMillisecond};
  return c;
}

constexpr double kGpuBound = 100, kInputBound = 5;

const Finding* find(const std::vector<Finding>& findings, std::string_view name) {
  const auto at = std::find_if(findings.begin(), findings.end(),
                               [&](const Finding& f) { return f.name == name; });
  return at == findings.end() ? nullptr : &*at;
}

/// The finding of the case, or an empty one.
Finding found(const LoaderCase& c, std::string_view name) {
  const auto findings = diagnose(c);
  const Finding* finding = find(findings, name);
  return finding == nullptr ? Finding{} : *finding;
}

bool fires(const LoaderCase& c, std::string_view name) { return !found(c, name).name.empty(); }

bool says(const std::string& text, std::string_view words) {
  return text.find(words) != std::string::npos;
}

TEST(Findings, AWellFedGpuGetsOneWordToStop) {
  const auto findings = diagnose(ordinary(kGpuBound));
  ASSERT_EQ(findings.size(), 1U) << findings[1].name;
  EXPECT_EQ(findings[0].name, "gpu_bound");
  EXPECT_EQ(findings[0].severity, Severity::kNote);
  EXPECT_TRUE(says(findings[0].cure, "stop")) << findings[0].cure;
  EXPECT_FALSE(fires(ordinary(kInputBound), "gpu_bound"));
}

TEST(Findings, EveryFindingHasNumbersAndACure) {
  LoaderCase c = ordinary(kInputBound);
  c.limits.shared_memory = 64 * kMiB;
  c.limits.open_files = 100;
  c.sample.copied_on_read = 8 * kGiB;
  for (const Finding& f : diagnose(c)) {
    EXPECT_TRUE(std::any_of(f.evidence.begin(), f.evidence.end(), [](char letter) {
      return letter >= '0' && letter <= '9';
    })) << f.name;
    EXPECT_FALSE(f.cure.empty()) << f.name;
  }
}

TEST(Findings, WarningsComeFirst) {
  LoaderCase c = ordinary(kGpuBound);
  c.limits.shared_memory = 64 * kMiB;
  const auto findings = diagnose(c);
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0].severity, Severity::kWarning);
  EXPECT_EQ(findings[1].severity, Severity::kNote);
}

TEST(Findings, SharedMemoryTooSmall) {
  LoaderCase c = ordinary(kGpuBound);
  c.limits.shared_memory = 64 * kMiB;  // (4 x 2 + 1) x 32 x 0.6 MB = 173 MB
  const Finding small = found(c, "shared_memory_too_small");
  EXPECT_TRUE(says(small.evidence, "165.4 MiB")) << small.evidence;
  EXPECT_TRUE(says(small.evidence, "Docker")) << small.evidence;
  EXPECT_TRUE(says(small.cure, "--shm-size=1g")) << small.cure;
  EXPECT_TRUE(says(small.cure, "num_workers=1 with prefetch_factor=2")) << small.cure;
  c.limits.shared_memory = kGiB;
  EXPECT_FALSE(fires(c, "shared_memory_too_small"));
  c.limits.shared_memory_free = 100 * kMiB;  // others fill it
  EXPECT_TRUE(fires(c, "shared_memory_too_small"));
  c.limits = {};  // an unknown host
  EXPECT_FALSE(fires(c, "shared_memory_too_small"));
}

TEST(Findings, TooManyOpenFiles) {
  LoaderCase c = ordinary(kGpuBound);
  c.sample.tensors = 200;  // (4 x 2 + 1) x 200 descriptors
  c.limits.open_files = 1024;
  c.limits.open_files_most = 1 << 20;
  const Finding many = found(c, "too_many_open_files");
  EXPECT_TRUE(says(many.evidence, "1,800")) << many.evidence;
  EXPECT_TRUE(says(many.cure, "file_system")) << many.cure;
  EXPECT_TRUE(says(many.cure, "ulimit -n")) << many.cure;
  c.limits.open_files = 4096;
  EXPECT_FALSE(fires(c, "too_many_open_files"));
}

TEST(Findings, MemoryGrowsByCopyOnRead) {
  LoaderCase c = ordinary(kGpuBound);
  c.sample.copied_on_read = 2 * kGiB;
  const Finding grows = found(c, "memory_grows_by_copy_on_read");
  EXPECT_TRUE(says(grows.evidence, "8.0 GiB")) << grows.evidence;
  c.sample.copied_on_read = 100 * kMiB;  // below a twentieth of the DRAM
  EXPECT_FALSE(fires(c, "memory_grows_by_copy_on_read"));
  c.sample.copied_on_read = 2 * kGiB;
  c.settings.workers = 0;
  EXPECT_FALSE(fires(c, "memory_grows_by_copy_on_read"));
}

TEST(Findings, StallEveryNthBatch) {
  const Finding stall = found(ordinary(kInputBound), "stall_every_nth_batch");
  // Each worker needs 128 ms, four steps 20 ms.
  EXPECT_TRUE(says(stall.evidence, "one batch in 4 waits about 108 ms")) << stall.evidence;
  EXPECT_FALSE(fires(ordinary(kGpuBound), "stall_every_nth_batch"));
  LoaderCase free = ordinary(kInputBound);
  free.settings.in_order = false;
  EXPECT_FALSE(fires(free, "stall_every_nth_batch"));
}

TEST(Findings, SlowEpochStart) {
  LoaderCase c = ordinary(kGpuBound);
  c.settings.batch = 512;  // 2 s for the first one
  c.consumer.step = 1.6 * kSecond;
  c.settings.dataset_samples = 20'000;
  const Finding slow = found(c, "slow_epoch_start");
  EXPECT_TRUE(says(slow.evidence, "512 samples of 4.0 ms")) << slow.evidence;
  EXPECT_FALSE(says(slow.cure, "persistent_workers")) << slow.cure;
  c.settings.persistent = false;
  c.sample.transport.worker_startup = 1.0 * kSecond;
  EXPECT_TRUE(says(found(c, "slow_epoch_start").cure, "persistent_workers=True"));
  c.settings.dataset_samples = 2'000'000;  // a long epoch does not mind
  EXPECT_FALSE(fires(c, "slow_epoch_start"));
}

TEST(Findings, AnEpochsBeginningIsNamedByWhatTakesLongest) {
  LoaderCase c = ordinary(kGpuBound);
  c.settings.dataset_samples = 20'000;
  c.settings.persistent = false;
  c.sample.start.sampler = 9 * kSecond;
  EXPECT_TRUE(says(found(c, "slow_epoch_start").evidence, "the sampler needs 9.0 s"));
  EXPECT_FALSE(says(found(c, "slow_epoch_start").evidence, "whole first batch"));
  c.sample.start.sampler = {};
  c.sample.start.fork = c.sample.start.wait = 4 * kSecond;
  EXPECT_TRUE(says(found(c, "slow_epoch_start").cure, "worker_init_fn"));
  c.sample.start = {};
  c.sample.warm_up_wait = 3 * kSecond;
  EXPECT_TRUE(says(found(c, "slow_epoch_start").evidence, "the first batch of a new worker"));
}

TEST(Findings, ABatchThatComesAfterItsTimeout) {
  LoaderCase c = ordinary(kGpuBound);
  PipelineProbe probe;
  c.pipeline = &probe;
  EXPECT_FALSE(fires(c, "times_out"));
  probe.timeout = 2 * kSecond;
  EXPECT_FALSE(fires(c, "times_out"));
  c.sample.warm_up_wait = 3 * kSecond;
  EXPECT_TRUE(says(found(c, "times_out").evidence, "2.0 s (timeout)"));
  c.settings.workers = 0;
  EXPECT_FALSE(fires(c, "times_out")) << "nobody waits for a worker";
}

TEST(Findings, CpuQuotaBelowCores) {
  LoaderCase c = ordinary(kGpuBound);
  c.limits = {.processors = 12, .affinity = 12, .quota = 3.0, .cgroup_version = 2};
  c.host.cores = 3;
  const Finding quota = found(c, "cpu_quota_below_cores");
  EXPECT_EQ(quota.severity, Severity::kWarning);
  EXPECT_TRUE(says(quota.evidence, "cpu.max) grants 3 cores")) << quota.evidence;
  EXPECT_TRUE(says(quota.cure, "at most 3 workers")) << quota.cure;
  c.limits.cgroup_version = 1;
  EXPECT_TRUE(says(found(c, "cpu_quota_below_cores").evidence, "cpu.cfs_quota_us"));
  c.limits.quota = 12.0;
  EXPECT_FALSE(fires(c, "cpu_quota_below_cores"));
  c.limits.quota = std::nullopt;
  EXPECT_FALSE(fires(c, "cpu_quota_below_cores"));
}

TEST(Findings, AQuotaThatWasUsedUpIsAWarning) {
  LoaderCase c = ordinary(kGpuBound);
  c.limits = {.processors = 12, .affinity = 12, .quota = 6.0, .cgroup_version = 2};
  EXPECT_EQ(found(c, "cpu_quota_below_cores").severity, Severity::kNote);
  c.limits.periods = 100;
  c.limits.throttled = 60;
  const Finding throttled = found(c, "cpu_quota_below_cores");
  EXPECT_EQ(throttled.severity, Severity::kWarning);
  EXPECT_TRUE(says(throttled.evidence, "60 %")) << throttled.evidence;
}

TEST(Findings, AffinityBelowCores) {
  LoaderCase c = ordinary(kGpuBound);
  c.limits = {.processors = 8, .affinity = 2};
  const Finding few = found(c, "affinity_below_cores");
  EXPECT_EQ(few.severity, Severity::kWarning);
  EXPECT_TRUE(says(few.evidence, "2 of 8 cores")) << few.evidence;
  c.limits.affinity = 8;
  EXPECT_FALSE(fires(c, "affinity_below_cores"));
}

TEST(Findings, WorkersSlowerThanNone) {
  LoaderCase c = ordinary(0);
  c.settings.workers = 1;
  c.sample = samples_of(0.02);
  c.sample.transport.per_tensor_main = 0.65 * kMillisecond;
  c.sample.tensors = 8;
  const Finding slower = found(c, "workers_slower_than_none");
  EXPECT_TRUE(says(slower.cure, "num_workers=0")) << slower.cure;
  c.sample.cpu = {4 * kMillisecond};
  c.settings.workers = 4;
  EXPECT_FALSE(fires(c, "workers_slower_than_none"));
}

TEST(Findings, WorkersBeyondCores) {
  LoaderCase c = ordinary(kInputBound);
  c.settings.workers = 8;
  c.host.cores = 2;
  const Finding beyond = found(c, "workers_beyond_cores");
  EXPECT_TRUE(says(beyond.evidence, "8 workers on 2 cores")) << beyond.evidence;
  EXPECT_EQ(beyond.cure, "num_workers=2");
  c.host.cores = 8;
  EXPECT_FALSE(fires(c, "workers_beyond_cores"));
  c.host.ranks = 2;  // two processes share the eight cores
  EXPECT_TRUE(fires(c, "workers_beyond_cores"));
}

TEST(Findings, OneSlowSampleStallsAll) {
  LoaderCase c = ordinary(0);
  c.settings.batch = 1;
  c.sample.cpu.assign(20, 4 * kMillisecond);
  c.sample.cpu[5] = 400 * kMillisecond;
  const Finding slow = found(c, "slow_sample_stalls_all");
  EXPECT_TRUE(says(slow.evidence, "400 ms")) << slow.evidence;
  EXPECT_TRUE(says(slow.cure, "in_order=False")) << slow.cure;
  c.settings.in_order = false;
  EXPECT_FALSE(fires(c, "slow_sample_stalls_all"));
  c.settings.in_order = true;
  c.sample.cpu[5] = 4 * kMillisecond;
  EXPECT_FALSE(fires(c, "slow_sample_stalls_all"));
}

TEST(Findings, TooFewShards) {
  LoaderCase c = ordinary(0);
  c.settings.workers = 4;
  c.sample.work_units = 1;
  const Finding few = found(c, "too_few_shards");
  EXPECT_EQ(few.severity, Severity::kWarning);
  EXPECT_TRUE(says(few.evidence, "1 part")) << few.evidence;
  EXPECT_TRUE(says(few.evidence, "3 workers of 4 have nothing to do")) << few.evidence;
  c.sample.work_units = 4;
  EXPECT_TRUE(says(found(c, "too_few_shards").evidence, "more workers would have nothing to do"));
  c.sample.work_units = 64;
  EXPECT_FALSE(fires(c, "too_few_shards"));
}

TEST(Findings, CollateBound) {
  LoaderCase c = ordinary(0);
  c.sample.cpu = {Nanos(3e3)};
  BatchFacts slow{};
  slow.batch = 32;
  slow.samples = 32;
  slow.collate_shared = 60.0 * kMillisecond;
  c.sample.batches = {slow};
  const Finding bound = found(c, "collate_bound");
  EXPECT_TRUE(says(bound.evidence, "60.0 ms")) << bound.evidence;
  EXPECT_TRUE(says(bound.cure, "__getitems__")) << bound.cure;
  c.sample.cpu = {4.0 * kMillisecond};
  EXPECT_FALSE(fires(c, "collate_bound"));
}

TEST(Findings, SlowWorkerStart) {
  LoaderCase c = ordinary(kGpuBound);
  c.settings.start_method = StartMethod::kSpawn;
  c.sample.start = {.fork = 10 * kMillisecond,
                    .spawn = 20 * kSecond,
                    .forkserver = 20 * kSecond,
                    .pickled = 2 * kGiB,
                    .pickle = {},
                    .unpickle = {}};
  const Finding slow = found(c, "slow_worker_start");
  EXPECT_TRUE(says(slow.evidence, "by spawn")) << slow.evidence;
  EXPECT_TRUE(says(slow.evidence, "2.0 GiB")) << slow.evidence;
  c.settings.start_method = StartMethod::kFork;
  EXPECT_FALSE(fires(c, "slow_worker_start"));
  EXPECT_EQ(default_start_method("3.13.1"), StartMethod::kFork);
  EXPECT_EQ(default_start_method("3.14.0"), StartMethod::kForkserver);
  EXPECT_EQ(default_start_method("4.0"), StartMethod::kForkserver);
  EXPECT_EQ(default_start_method("nonsense"), StartMethod::kFork);
}

TEST(Findings, NotPicklable) {
  LoaderCase c = ordinary(kGpuBound);
  PipelineProbe probe;
  c.pipeline = &probe;
  EXPECT_FALSE(fires(c, "not_picklable"));
  probe.start.picklable = false;
  probe.start.why_not = "a lambda in transform";
  EXPECT_EQ(found(c, "not_picklable").severity, Severity::kNote);
  c.settings.start_method = StartMethod::kForkserver;
  EXPECT_EQ(found(c, "not_picklable").severity, Severity::kWarning);
}

/// A hundred thousand files of 100 kB on storage that needs 20 ms for each, and DRAM for half.
LoaderCase on_slow_storage() {
  LoaderCase c = ordinary(kInputBound);
  c.sample.read_bytes = 1e5;
  c.sample.dataset_samples = 100'000;
  c.sample.dataset_bytes = Bytes(10'000'000'000);
  c.sample.cold_seek_ms = 20;
  c.sample.cold_speedup = 1;
  c.host.memory = 5 * kGiB;
  return c;
}

TEST(Findings, ManySmallFiles) {
  LoaderCase c = on_slow_storage();
  const Finding small = found(c, "many_small_files");
  EXPECT_EQ(small.severity, Severity::kWarning);
  EXPECT_TRUE(says(small.cure, "tar shards")) << small.cure;
  c.network_storage = "NFS";
  EXPECT_TRUE(says(found(c, "many_small_files").evidence, "over NFS"));
  c.host.memory = 64 * kGiB;  // all cached
  EXPECT_FALSE(fires(c, "many_small_files"));
  c.host.memory = 5 * kGiB;
  c.sample.read_bytes = 1e7;  // large files
  EXPECT_FALSE(fires(c, "many_small_files"));
}

TEST(Findings, DataExceedsPageCache) {
  LoaderCase c = on_slow_storage();
  EXPECT_EQ(found(c, "data_exceeds_page_cache").severity, Severity::kWarning);
  c.host.memory = 64 * kGiB;
  EXPECT_FALSE(fires(c, "data_exceeds_page_cache"));
}

TEST(Findings, PinThreadBound) {
  LoaderCase c = ordinary(0);
  c.settings.pin = true;
  c.sample = samples_of(0.1);
  c.host.pin_bandwidth = 1e9;
  EXPECT_TRUE(fires(c, "pin_thread_bound"));
  c.host.pin_bandwidth = 1e12;
  EXPECT_FALSE(fires(c, "pin_thread_bound"));
  c.settings.pin = false;
  EXPECT_FALSE(fires(c, "pin_thread_bound"));
}

TEST(Findings, ReceivingBound) {
  LoaderCase c = ordinary(0);
  c.sample = samples_of(0.1);
  c.sample.transport.per_tensor_main = 5 * kMillisecond;
  EXPECT_TRUE(fires(c, "receiving_bound"));
  c.sample.transport.per_tensor_main = {};
  EXPECT_FALSE(fires(c, "receiving_bound"));
}

TEST(Findings, DecodeBound) {
  LoaderCase c = ordinary(kInputBound);
  EXPECT_FALSE(fires(c, "decode_bound"));  // nothing known of the stages
  PipelineProbe probe;
  probe.stages = {{"read", {}, 0.1}, {"decode", {}, 0.6}, {"other", {}, 0.3}};
  c.pipeline = &probe;
  EXPECT_TRUE(says(found(c, "decode_bound").evidence, "60 %"));
  probe.stages[1].share = 0.2;
  EXPECT_FALSE(fires(c, "decode_bound"));
  c.pipeline = nullptr;
  Probe folder;
  folder.sample_ms.mean = 4;
  folder.stage_ms[static_cast<std::size_t>(Stage::kDecode)].mean = 2;
  c.folder = &folder;
  EXPECT_TRUE(says(found(c, "decode_bound").evidence, "50 %"));
  c.consumer.step = kGpuBound * kMillisecond;
  EXPECT_FALSE(fires(c, "decode_bound"));
}

TEST(Findings, HostMemoryTooSmall) {
  LoaderCase c = ordinary(kGpuBound);
  c.sample.transport.worker_private = 2 * kGiB;
  c.host.memory = 8 * kGiB;
  EXPECT_TRUE(fires(c, "host_memory_too_small"));
  c.host.memory = 64 * kGiB;
  EXPECT_FALSE(fires(c, "host_memory_too_small"));
}

TEST(Findings, PrefetchWithoutGain) {
  LoaderCase c = ordinary(kInputBound);
  c.settings.prefetch = 8;
  EXPECT_EQ(found(c, "prefetch_without_gain").cure, "prefetch_factor=2");
  c.settings.prefetch = 2;
  EXPECT_FALSE(fires(c, "prefetch_without_gain"));
}

TEST(Findings, UnevenBatches) {
  LoaderCase c = ordinary(0);
  c.settings.batch = 4;
  c.sample.cpu.assign(40, 2 * kMillisecond);
  c.sample.cpu[7] = 150 * kMillisecond;  // 5.7 ms in the mean: a batch takes 23 ms of one worker
  c.consumer.step = 8 * kMillisecond;
  const Finding uneven = found(c, "uneven_batches");
  EXPECT_TRUE(says(uneven.cure, "prefetch_factor=")) << uneven.evidence << uneven.cure;
  c.sample.cpu.assign(40, 5.7 * kMillisecond);
  EXPECT_FALSE(fires(c, "uneven_batches"));
}

TEST(Findings, DataBoundWhenFaster) {
  LoaderCase c = ordinary(40);  // a batch is ready every 32 ms, a step of 20 would wait
  EXPECT_TRUE(fires(c, "data_bound_when_faster"));
  EXPECT_FALSE(fires(ordinary(kGpuBound), "data_bound_when_faster"));
  EXPECT_FALSE(fires(ordinary(kInputBound), "data_bound_when_faster"));  // it is already
}

}  // namespace
}  // namespace stoker
