#include "input/pipeline/pipeline_probe.h"

#include <algorithm>

#include "base/files.h"
#include "json/fields.h"
#include "json/text.h"

namespace stoker {
namespace {

using Json = json::Value;
using json::Fields, json::given, json::kMaxCount, json::kMaxMs;

constexpr json::Format kFormat{
    "stoker-pipeline-probe", 1, "pipeline probe format", "probe the pipeline again",
    "is not a probe of a pipeline; make one with: stoker probe FILE.py:FUNCTION -o FILE"};
constexpr const char* kCure = "probe the pipeline again";
/// A hundred thousand measured samples stay below this.
constexpr Bytes kFileLimit = 64 * kMiB;
constexpr std::size_t kMaxSamples = 1'000'000, kMaxRows = 1000;
/// Nesting of the format is 4; deeper text is an attack on the parser's stack.
constexpr int kMaxDepth = 10;

/// More than any host runs, few enough to simulate.
constexpr double kMostWorkers = 1024, kMostPrefetch = 1024;

void read_loader(Fields& fields, const Json& root, PipelineProbe& out) {
  if (given(root, "loader") == nullptr) return;
  const Json& json = fields.maybe_object(root, "loader", "");
  const std::string path = "loader.";
  LoaderSettings loader;
  std::int64_t workers = 0, prefetch = loader.prefetch;
  fields.take(json, "batch_size", path, 1, 1e9, loader.batch);
  fields.take(json, "num_workers", path, 0, kMostWorkers, workers);
  fields.take(json, "prefetch_factor", path, 1, kMostPrefetch, prefetch);
  loader.workers = static_cast<int>(workers);
  loader.prefetch = static_cast<int>(prefetch);
  loader.pin = false;  // DataLoader's default
  fields.take(json, "pin_memory", path, loader.pin);
  fields.take(json, "persistent_workers", path, loader.persistent);
  fields.take(json, "drop_last", path, loader.drop_last);
  fields.take(json, "in_order", path, loader.in_order);
  std::string method = "fork";
  fields.take(json, "start_method", path, method);
  if (const auto known = start_method_named(method)) {
    loader.start_method = *known;
  } else {
    fields.refuse("loader.start_method", "is none of fork, spawn, forkserver");
  }
  fields.take(json, "shuffle", path, out.shuffle);
  fields.take(json, "timeout_ms", path, out.timeout);
  fields.take(json, "batch_sampler", path, out.batch_sampler);
  fields.take(json, "custom_collate", path, out.custom_collate);
  loader.dataset_samples = out.samples;
  out.loader = loader;
}

/// Numbers of one sample each; as many as `expected` unless that is 0.
std::vector<double> read_numbers(Fields& fields, const Json& sample, const char* key,
                                 std::size_t expected, double most) {
  std::vector<double> out;
  const std::string path = std::string("sample.") + key;
  for (const Json& value : fields.maybe_list(sample, key, "sample.", kMaxSamples)) {
    out.push_back(fields.checked(value, path + "[" + std::to_string(out.size()) + "]", 0, most));
    if (!fields.good()) return {};
  }
  if (expected > 0 && !out.empty() && out.size() != expected)
    fields.refuse(path, "has not as many elements as sample.cpu_ms");
  return out;
}

void read_sample(Fields& fields, const Json& root, PipelineProbe& out) {
  const Json& sample = fields.maybe_object(root, "sample", "");
  const std::string path = "sample.";
  for (const double ms : read_numbers(fields, sample, "cpu_ms", 0, kMaxMs))
    out.cpu.push_back(ms * kMillisecond);
  if (out.cpu.empty()) fields.refuse("sample.cpu_ms", "is not a list with at least one number");
  for (const double ms : read_numbers(fields, sample, "wait_ms", out.cpu.size(), kMaxMs))
    out.wait.push_back(ms * kMillisecond);
  out.file_bytes = read_numbers(fields, sample, "file_bytes", out.cpu.size(), kMaxCount);
  fields.take(sample, "in_process_ratio", path, 0.01, 100, out.in_process_ratio);
  fields.take(sample, "stages_how", path, out.stages_how);
  for (const Json& row : fields.maybe_list(sample, "stages", path, kMaxRows)) {
    PipelineProbe::StageCost stage;
    fields.take(row, "name", "sample.stages.", stage.name);
    fields.take(row, "ms", "sample.stages.", stage.time);
    fields.take(row, "share", "sample.stages.", 0, 1, stage.share);
    if (stage.name.empty()) fields.refuse("sample.stages", "has a stage without a name");
    out.stages.push_back(std::move(stage));
  }
  if (given(sample, "size_correlation") != nullptr) {
    double r = 0;
    fields.take(sample, "size_correlation", path, -1, 1, r);
    out.size_correlation = r;
  }
  if (given(sample, "gil_wait_ms") != nullptr) {
    Nanos wait;
    fields.take(sample, "gil_wait_ms", path, wait);
    out.gil_wait = wait;
  }
  fields.take(sample, "within_batch_correlation", path, 0, 1, out.within_batch_correlation);
  if (given(sample, "repeat_spread") != nullptr) {
    double spread = 0;
    fields.take(sample, "repeat_spread", path, 0, kMaxCount, spread);
    out.repeat_spread = spread;
  }
}

/// Times of samples in the order in which they are asked for.
void read_sequence(Fields& fields, const Json& json, const std::string& path,
                   std::vector<Nanos>& cpu, std::vector<Nanos>& wait) {
  const auto times = [&](const char* key, std::vector<Nanos>& into) {
    for (const Json& value : fields.maybe_list(json, key, path, kMaxSamples)) {
      into.push_back(fields.checked(value, path + key, 0, kMaxMs) * kMillisecond);
      if (!fields.good()) return;
    }
  };
  times("cpu_ms", cpu);
  times("wait_ms", wait);
  if (cpu.size() != wait.size())
    fields.refuse(path + "wait_ms", "has not as many elements as cpu_ms");
}

void read_order(Fields& fields, const Json& root, PipelineProbe& out) {
  if (given(root, "order") == nullptr) return;
  const Json& order = fields.maybe_object(root, "order", "");
  fields.take(order, "whole", "order.", out.whole_epoch);
  fields.take(order, "random_ms", "order.", out.random);
  fields.take(order, "random_error_ms", "order.", out.random_error);
  const Json& list = fields.maybe_list(order, "stretches", "order.", kMaxRows);
  for (std::size_t i = 0; i < list.size() && fields.good(); ++i) {
    const std::string path = json::indexed("order.", "stretches", i);
    PipelineProbe::Stretch stretch;
    fields.take(list[i], "first", path, 0, kMaxCount, stretch.first);
    read_sequence(fields, list[i], path, stretch.cpu, stretch.wait);
    if (stretch.cpu.empty()) fields.refuse(path + "cpu_ms", "is empty");
    out.order.push_back(std::move(stretch));
  }
}

StreamSet read_stream_set(Fields& fields, const Json& json, const std::string& path) {
  StreamSet set;
  fields.take(json, "same", path, set.same);
  const Json& list =
      fields.maybe_list(json, "workers", path, static_cast<std::size_t>(kMostWorkers));
  for (std::size_t i = 0; i < list.size() && fields.good(); ++i) {
    const std::string here = json::indexed(path, "workers", i);
    StreamCost stream;
    if (given(list[i], "samples") != nullptr)
      fields.take(list[i], "samples", here, 0, kMaxCount, stream.samples);
    fields.take(list[i], "start_ms", here, stream.start);
    read_sequence(fields, list[i], here, stream.cpu, stream.wait);
    set.workers.push_back(std::move(stream));
  }
  if (set.workers.empty()) fields.refuse(path + "workers", "is empty");
  return set;
}

void read_streams(Fields& fields, const Json& root, PipelineProbe& out) {
  if (given(root, "work_units") != nullptr)
    fields.take(root, "work_units", "", 1, kMaxCount, out.work_units);
  const Json& list = fields.maybe_list(root, "streams", "", kMaxRows);
  for (std::size_t i = 0; i < list.size() && fields.good(); ++i) {
    const std::string path = json::indexed("", "streams", i);
    out.streams.push_back(read_stream_set(fields, list[i], path));
    double spread = 0;
    fields.take(list[i], "seed_spread", path, 0, 1, spread);
    out.seed_spread = std::max(out.seed_spread, spread);
  }
}

void read_batches(Fields& fields, const Json& root, PipelineProbe& out) {
  for (const Json& row : fields.maybe_list(root, "batch", "", kMaxRows)) {
    if (!row.is_object()) return fields.refuse("batch", "holds something that is not an object");
    const std::string path = "batch.";
    BatchFacts facts;
    if (given(row, "batch") == nullptr) return fields.refuse("batch.batch", "is missing");
    fields.take(row, "batch", path, 1, 1e9, facts.batch);
    facts.samples = static_cast<double>(facts.batch);
    fields.take(row, "samples", path, 0, 1e9, facts.samples);
    fields.take(row, "bytes", path, facts.bytes);
    fields.take(row, "tensors", path, 0, 1e6, facts.tensors);
    fields.take(row, "collate_shared_ms", path, facts.collate_shared);
    fields.take(row, "collate_private_ms", path, facts.collate_private);
    fields.take(row, "pickled_bytes", path, facts.pickled);
    fields.take(row, "pickle_ms", path, facts.pickle);
    fields.take(row, "unpickle_ms", path, facts.unpickle);
    fields.take(row, "pipe_ms", path, facts.pipe);
    fields.take(row, "collate_wait_ms", path, facts.collate_wait);
    fields.take(row, "share_ms", path, facts.share);
    out.batch.push_back(facts);
  }
  std::sort(out.batch.begin(), out.batch.end(),
            [](const BatchFacts& a, const BatchFacts& b) { return a.batch < b.batch; });
  const auto same = std::adjacent_find(
      out.batch.begin(), out.batch.end(),
      [](const BatchFacts& a, const BatchFacts& b) { return a.batch == b.batch; });
  if (same != out.batch.end())
    fields.refuse("batch", "has two rows of batch " + std::to_string(same->batch));
}

void read_transport(Fields& fields, const Json& root, PipelineProbe& out) {
  for (const auto& [key, value] : fields.maybe_object(root, "transport", "").items()) {
    if (value.is_null()) continue;
    TransportCoefficients ignored;
    // A newer writer of this major version may know more keys.
    if (!set_transport(ignored, key, 0)) continue;
    out.transport.emplace_back(key, fields.checked(value, "transport." + key, 0, 1e6));
  }
}

void read_one_worker(Fields& fields, const Json& root, PipelineProbe& out) {
  const Json& run = fields.maybe_object(root, "one_worker", "");
  const std::string path = "one_worker.";
  PipelineProbe::OneWorker& one = out.one_worker;
  fields.take(run, "batch", path, 0, 1e9, one.batch);
  fields.take(run, "interval_ms", path, one.interval);
  fields.take(run, "make_cpu_ms", path, one.make_cpu);
  fields.take(run, "make_wall_ms", path, one.make_wall);
  fields.take(run, "worker_cpu_ms", path, one.worker_cpu);
  fields.take(run, "main_cpu_ms", path, one.main_cpu);
  fields.take(run, "first_batch_ms", path, one.first_batch);
  fields.take(run, "dump_ms", path, one.dump);
  fields.take(run, "recv_ms", path, one.receive);
  fields.take(run, "load_ms", path, one.load);
  fields.take(run, "first_make_cpu_ms", path, one.first_make_cpu);
  fields.take(run, "batches", path, 0, 1e9, one.batches);
  fields.take(run, "interval_spread", path, 0, 1, one.interval_spread);
}

void read_start(Fields& fields, const Json& root, PipelineProbe::Start& out) {
  const Json& start = fields.maybe_object(root, "start", "");
  const std::string path = "start.";
  fields.take(start, "fork_ms", path, out.fork);
  fields.take(start, "spawn_ms", path, out.spawn);
  fields.take(start, "forkserver_ms", path, out.forkserver);
  fields.take(start, "interpreter_ms", path, out.interpreter);
  fields.take(start, "server_ms", path, out.server);
  fields.take(start, "warm_up_ms", path, out.warm_up);
  fields.take(start, "warm_up_wait_ms", path, out.warm_up_wait);
  fields.take(start, "wait_ms", path, out.wait);
  fields.take(start, "sampler_ms", path, out.sampler);
  fields.take(start, "picklable", path, out.picklable);
  fields.take(start, "why_not", path, out.why_not);
  fields.take(start, "pickled_whole", path, out.pickled_whole);
  const auto take_data_set = [&](const Json& from, const std::string& where) {
    fields.take(from, "pickled_bytes", where, out.pickled);
    fields.take(from, "pickle_ms", where, out.pickle);
    fields.take(from, "unpickle_ms", where, out.unpickle);
  };
  take_data_set(start, path);
  if (given(start, "estimated") == nullptr) return;
  out.estimated = true;
  take_data_set(fields.maybe_object(start, "estimated", path), path + "estimated.");
}

void read_process(Fields& fields, const Json& root, PipelineProbe& out) {
  read_start(fields, root, out.start);
  const Json& memory = fields.maybe_object(root, "memory", "");
  fields.take(memory, "worker_private_bytes", "memory.", out.memory.worker_private);
  fields.take(memory, "worker_peak_bytes", "memory.", out.memory.worker_peak);
  fields.take(memory, "object_bytes", "memory.", out.memory.object_bytes);
  fields.take(memory, "objects", "memory.", 0, kMaxCount, out.memory.objects);
  fields.take(memory, "copied_on_read", "memory.", out.memory.copied_on_read);
  const Json& parallel = fields.maybe_object(root, "parallel", "");
  std::int64_t processes = 1;
  fields.take(parallel, "processes", "parallel.", 1, 65536, processes);
  out.parallel.threads = static_cast<int>(processes);
  // Processes at once never make each other faster; a measurement that says so was noise.
  fields.take(parallel, "efficiency", "parallel.", 1e-3, 2, out.parallel.efficiency);
  out.parallel.efficiency = std::min(1.0, out.parallel.efficiency);
  if (given(parallel, "crowded_efficiency") != nullptr) {
    double crowded = 1;
    fields.take(parallel, "crowded_efficiency", "parallel.", 1e-3, 2, crowded);
    out.crowded_efficiency = std::min(1.0, crowded);
  }
  const Json& foreign = fields.maybe_object(root, "foreign", "");
  fields.take(foreign, "wall_per_cpu", "foreign.", 0, 1e6, out.contention.wall_per_cpu);
  fields.take(foreign, "run_queue_share", "foreign.", 0, 1, out.contention.run_queue_share);
  fields.take(foreign, "steal_share", "foreign.", 0, 1, out.contention.steal_share);
  fields.take(foreign, "disturbed", "foreign.", out.contention.disturbed);
}

void read_provenance(Fields& fields, const Json& root, PipelineProbe& out) {
  const Json& json = fields.maybe_object(root, "provenance", "");
  fields.take(json, "date", "provenance.", out.date);
  fields.take(json, "cpu_model", "provenance.", out.cpu_model);
  fields.take(json, "python", "provenance.", out.python);
  fields.take(json, "torch", "provenance.", out.torch);
  fields.take(json, "cores", "provenance.", 0.01, 1e6, out.cores);
}

void read_findings(Fields& fields, const Json& root, Diagnostics& out) {
  for (const Json& row : fields.maybe_list(root, "findings", "", kMaxRows)) {
    std::string name, severity = "note", advice;
    std::int64_t count = 1;
    fields.take(row, "name", "findings.", name);
    fields.take(row, "severity", "findings.", severity);
    fields.take(row, "advice", "findings.", advice);
    fields.take(row, "count", "findings.", 0, kMaxCount, count);
    if (name.empty()) fields.refuse("findings", "has a finding without a name");
    if (!fields.good()) return;
    out.add(name, severity == "warning" ? Severity::kWarning : Severity::kNote, advice, count);
  }
}

}  // namespace

std::optional<std::int64_t> probed_batch(const PipelineProbe& probe) {
  if (probe.loader && !probe.batch_sampler) return probe.loader->batch;
  if (probe.batch.empty()) return std::nullopt;
  // The middle of the measured sizes is the one that the probe was asked for.
  return probe.batch[probe.batch.size() / 2].batch;
}

bool is_pipeline_probe(std::string_view text) {
  // The writer puts the format first; a folder's probe has another name there.
  constexpr std::size_t kHead = 256;
  return text.substr(0, kHead).find(kFormat.name) != std::string_view::npos;
}

Result<PipelineProbe> parse_pipeline_probe(std::string_view text, const std::string& where) {
  const auto root = json::parse_document(
      text, where, {"a probe of a pipeline", "probe the pipeline again", kMaxDepth});
  if (!root) return tl::unexpected(root.error());
  Fields fields(where, kCure);
  TRY(fields.check_format(*root, kFormat));
  PipelineProbe probe;
  fields.take(*root, "name", "", probe.name);
  std::string kind = "map";
  fields.take(*root, "kind", "", kind);
  if (kind != "map" && kind != "iterable") fields.refuse("kind", "is neither map nor iterable");
  probe.iterable = kind == "iterable";
  fields.take(*root, "samples", "", 0, kMaxCount, probe.samples);
  fields.take(*root, "output", "", probe.output);
  read_loader(fields, *root, probe);
  read_sample(fields, *root, probe);
  read_order(fields, *root, probe);
  read_streams(fields, *root, probe);
  read_batches(fields, *root, probe);
  read_transport(fields, *root, probe);
  read_one_worker(fields, *root, probe);
  read_process(fields, *root, probe);
  read_provenance(fields, *root, probe);
  read_findings(fields, *root, probe.findings);
  if (!fields.good()) return tl::unexpected(fields.error());
  return probe;
}

Result<PipelineProbe> read_pipeline_probe(const std::filesystem::path& path) {
  const Result<std::string> text = read_file(path, kFileLimit);
  if (!text) return tl::unexpected(text.error());
  return parse_pipeline_probe(*text, path.string());
}

}  // namespace stoker
