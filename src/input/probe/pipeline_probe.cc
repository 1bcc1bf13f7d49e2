#include "input/probe/pipeline_probe.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "json/json_document.h"

namespace stoker {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMajor = 1;
constexpr std::string_view kFormat = "stoker-pipeline-probe";
/// A hundred thousand measured samples stay below this.
constexpr Bytes kFileLimit = 64 * kMiB;
constexpr std::size_t kMaxSamples = 1'000'000, kMaxRows = 1000;
/// Nesting of the format is 4; deeper text is an attack on the parser's stack.
constexpr int kMaxDepth = 10;
/// Largest believable values, to keep sums finite: a day for a time, 2^53 for a count.
constexpr double kMaxMs = 86'400'000, kMaxCount = 9007199254740992.0;

/// Walks the document; the first thing wrong is kept and ends the reading. What is missing or null
/// was not measured and leaves its default.
class Reader {
 public:
  explicit Reader(std::string where) : where_(std::move(where)) {}

  [[nodiscard]] bool good() const { return !error_.has_value(); }
  [[nodiscard]] Error error() const { return *error_; }

  void refuse(const std::string& field, const std::string& why) {
    if (good()) {
      error_ = Error{ErrorCode::kBadInput,
                     "field \"" + field + "\" " + why + "; probe the pipeline again", where_};
    }
  }

  /// nullptr: missing or null.
  const Json* find(const Json& parent, const char* key) {
    if (!parent.is_object()) return nullptr;
    const auto found = parent.find(key);
    return found == parent.end() || found->is_null() ? nullptr : &*found;
  }

  const Json& object(const Json& parent, const char* key, const std::string& path = {}) {
    static const Json kNothing = Json::object();
    const Json* found = find(parent, key);
    if (found == nullptr) return kNothing;
    if (found->is_object()) return *found;
    refuse(path + key, "is not an object");
    return kNothing;
  }

  const Json& list(const Json& parent, const char* key, const std::string& path, std::size_t most) {
    static const Json kNothing = Json::array();
    const Json* found = find(parent, key);
    if (found == nullptr) return kNothing;
    if (found->is_array() && found->size() <= most) return *found;
    refuse(path + key, found->is_array() ? "has too many elements" : "is not a list");
    return kNothing;
  }

  double checked(const Json& value, const std::string& field, double low, double high) {
    if (!value.is_number()) return refuse(field, "is not a number"), low;
    const auto number = value.get<double>();
    if (!(number >= low)) return refuse(field, number < 0 ? "is negative" : "is too small"), low;
    if (!(number <= high)) return refuse(field, "is impossibly large"), low;
    return number;
  }

  void number(const Json& parent, const char* key, const std::string& path, double low, double high,
              double& out) {
    if (const Json* found = find(parent, key)) out = checked(*found, path + key, low, high);
  }
  void integer(const Json& parent, const char* key, const std::string& path, double low,
               double high, std::int64_t& out) {
    double value = static_cast<double>(out);
    number(parent, key, path, low, high, value);
    out = static_cast<std::int64_t>(value);
  }
  void time(const Json& parent, const char* key, const std::string& path, Nanos& out) {
    double ms = milliseconds(out);
    number(parent, key, path, 0, kMaxMs, ms);
    out = ms * kMillisecond;
  }
  void bytes(const Json& parent, const char* key, const std::string& path, Bytes& out) {
    std::int64_t count = out.count();
    integer(parent, key, path, 0, kMaxCount, count);
    out = Bytes(count);
  }
  void flag(const Json& parent, const char* key, const std::string& path, bool& out) {
    const Json* found = find(parent, key);
    if (found == nullptr) return;
    if (!found->is_boolean()) return refuse(path + key, "is not true or false");
    out = found->get<bool>();
  }
  void text(const Json& parent, const char* key, const std::string& path, std::string& out) {
    const Json* found = find(parent, key);
    if (found == nullptr) return;
    if (!found->is_string()) return refuse(path + key, "is not a text");
    out = found->get<std::string>();
  }

 private:
  std::string where_;
  std::optional<Error> error_;
};

/// More than any host runs, few enough to simulate.
constexpr double kMostWorkers = 1024, kMostPrefetch = 1024;

void read_loader(Reader& reader, const Json& root, PipelineProbe& out) {
  if (reader.find(root, "loader") == nullptr) return;
  const Json& json = reader.object(root, "loader");
  const std::string path = "loader.";
  LoaderSettings loader;
  std::int64_t workers = 0, prefetch = loader.prefetch;
  reader.integer(json, "batch_size", path, 1, 1e9, loader.batch);
  reader.integer(json, "num_workers", path, 0, kMostWorkers, workers);
  reader.integer(json, "prefetch_factor", path, 1, kMostPrefetch, prefetch);
  loader.workers = static_cast<int>(workers);
  loader.prefetch = static_cast<int>(prefetch);
  loader.pin = false;  // DataLoader's default
  reader.flag(json, "pin_memory", path, loader.pin);
  reader.flag(json, "persistent_workers", path, loader.persistent);
  reader.flag(json, "drop_last", path, loader.drop_last);
  reader.flag(json, "in_order", path, loader.in_order);
  std::string method = "fork";
  reader.text(json, "start_method", path, method);
  if (const auto known = start_method_named(method)) {
    loader.start_method = *known;
  } else {
    reader.refuse("loader.start_method", "is none of fork, spawn, forkserver");
  }
  reader.flag(json, "shuffle", path, out.shuffle);
  reader.flag(json, "batch_sampler", path, out.batch_sampler);
  reader.flag(json, "custom_collate", path, out.custom_collate);
  loader.dataset_samples = out.samples;
  out.loader = loader;
}

/// Numbers of one sample each; as many as `expected` unless that is 0.
std::vector<double> read_numbers(Reader& reader, const Json& sample, const char* key,
                                 std::size_t expected, double most) {
  std::vector<double> out;
  const std::string path = std::string("sample.") + key;
  for (const Json& value : reader.list(sample, key, "sample.", kMaxSamples)) {
    out.push_back(reader.checked(value, path + "[" + std::to_string(out.size()) + "]", 0, most));
    if (!reader.good()) return {};
  }
  if (expected > 0 && !out.empty() && out.size() != expected)
    reader.refuse(path, "has not as many elements as sample.cpu_ms");
  return out;
}

void read_sample(Reader& reader, const Json& root, PipelineProbe& out) {
  const Json& sample = reader.object(root, "sample");
  const std::string path = "sample.";
  for (const double ms : read_numbers(reader, sample, "cpu_ms", 0, kMaxMs))
    out.cpu.push_back(ms * kMillisecond);
  if (out.cpu.empty()) reader.refuse("sample.cpu_ms", "is not a list with at least one number");
  for (const double ms : read_numbers(reader, sample, "wait_ms", out.cpu.size(), kMaxMs))
    out.wait.push_back(ms * kMillisecond);
  out.file_bytes = read_numbers(reader, sample, "file_bytes", out.cpu.size(), kMaxCount);
  reader.number(sample, "in_process_ratio", path, 0.01, 100, out.in_process_ratio);
  reader.text(sample, "stages_how", path, out.stages_how);
  for (const Json& row : reader.list(sample, "stages", path, kMaxRows)) {
    PipelineProbe::StageCost stage;
    reader.text(row, "name", "sample.stages.", stage.name);
    reader.time(row, "ms", "sample.stages.", stage.time);
    reader.number(row, "share", "sample.stages.", 0, 1, stage.share);
    if (stage.name.empty()) reader.refuse("sample.stages", "has a stage without a name");
    out.stages.push_back(std::move(stage));
  }
  if (reader.find(sample, "size_correlation") != nullptr) {
    double r = 0;
    reader.number(sample, "size_correlation", path, -1, 1, r);
    out.size_correlation = r;
  }
  if (reader.find(sample, "gil_wait_ms") != nullptr) {
    Nanos wait;
    reader.time(sample, "gil_wait_ms", path, wait);
    out.gil_wait = wait;
  }
  reader.number(sample, "within_batch_correlation", path, 0, 1, out.within_batch_correlation);
}

void read_batches(Reader& reader, const Json& root, PipelineProbe& out) {
  for (const Json& row : reader.list(root, "batch", "", kMaxRows)) {
    if (!row.is_object()) return reader.refuse("batch", "holds something that is not an object");
    const std::string path = "batch.";
    BatchFacts facts;
    if (reader.find(row, "batch") == nullptr) return reader.refuse("batch.batch", "is missing");
    reader.integer(row, "batch", path, 1, 1e9, facts.batch);
    facts.samples = static_cast<double>(facts.batch);
    reader.number(row, "samples", path, 0, 1e9, facts.samples);
    reader.bytes(row, "bytes", path, facts.bytes);
    reader.number(row, "tensors", path, 0, 1e6, facts.tensors);
    reader.time(row, "collate_shared_ms", path, facts.collate_shared);
    reader.time(row, "collate_private_ms", path, facts.collate_private);
    reader.bytes(row, "pickled_bytes", path, facts.pickled);
    out.batch.push_back(facts);
  }
  std::sort(out.batch.begin(), out.batch.end(),
            [](const BatchFacts& a, const BatchFacts& b) { return a.batch < b.batch; });
  const auto same = std::adjacent_find(
      out.batch.begin(), out.batch.end(),
      [](const BatchFacts& a, const BatchFacts& b) { return a.batch == b.batch; });
  if (same != out.batch.end())
    reader.refuse("batch", "has two rows of batch " + std::to_string(same->batch));
}

void read_transport(Reader& reader, const Json& root, PipelineProbe& out) {
  for (const auto& [key, value] : reader.object(root, "transport").items()) {
    if (value.is_null()) continue;
    TransportCoefficients ignored;
    // A newer writer of this major version may know more keys.
    if (!set_transport(ignored, key, 0)) continue;
    out.transport.emplace_back(key, reader.checked(value, "transport." + key, 0, 1e6));
  }
}

void read_one_worker(Reader& reader, const Json& root, PipelineProbe& out) {
  const Json& run = reader.object(root, "one_worker");
  const std::string path = "one_worker.";
  PipelineProbe::OneWorker& one = out.one_worker;
  reader.integer(run, "batch", path, 0, 1e9, one.batch);
  reader.time(run, "interval_ms", path, one.interval);
  reader.time(run, "make_cpu_ms", path, one.make_cpu);
  reader.time(run, "make_wall_ms", path, one.make_wall);
  reader.time(run, "worker_cpu_ms", path, one.worker_cpu);
  reader.time(run, "main_cpu_ms", path, one.main_cpu);
  reader.time(run, "first_batch_ms", path, one.first_batch);
  reader.time(run, "first_make_cpu_ms", path, one.first_make_cpu);
  reader.integer(run, "batches", path, 0, 1e9, one.batches);
}

void read_process(Reader& reader, const Json& root, PipelineProbe& out) {
  const Json& start = reader.object(root, "start");
  reader.time(start, "fork_ms", "start.", out.start.fork);
  reader.time(start, "spawn_ms", "start.", out.start.spawn);
  reader.time(start, "forkserver_ms", "start.", out.start.forkserver);
  reader.time(start, "warm_up_ms", "start.", out.start.warm_up);
  reader.flag(start, "picklable", "start.", out.start.picklable);
  reader.text(start, "why_not", "start.", out.start.why_not);
  reader.bytes(start, "pickled_bytes", "start.", out.start.pickled);
  const Json& memory = reader.object(root, "memory");
  reader.bytes(memory, "worker_private_bytes", "memory.", out.memory.worker_private);
  reader.bytes(memory, "worker_peak_bytes", "memory.", out.memory.worker_peak);
  reader.bytes(memory, "object_bytes", "memory.", out.memory.object_bytes);
  reader.integer(memory, "objects", "memory.", 0, kMaxCount, out.memory.objects);
  reader.flag(memory, "copied_on_read", "memory.", out.memory.copied_on_read);
  const Json& parallel = reader.object(root, "parallel");
  std::int64_t processes = 1;
  reader.integer(parallel, "processes", "parallel.", 1, 65536, processes);
  out.parallel.threads = static_cast<int>(processes);
  // Processes at once never make each other faster; a measurement that says so was noise.
  reader.number(parallel, "efficiency", "parallel.", 1e-3, 2, out.parallel.efficiency);
  out.parallel.efficiency = std::min(1.0, out.parallel.efficiency);
  if (reader.find(parallel, "crowded_efficiency") != nullptr) {
    double crowded = 1;
    reader.number(parallel, "crowded_efficiency", "parallel.", 1e-3, 2, crowded);
    out.crowded_efficiency = std::min(1.0, crowded);
  }
  const Json& foreign = reader.object(root, "foreign");
  reader.number(foreign, "wall_per_cpu", "foreign.", 0, 1e6, out.contention.wall_per_cpu);
  reader.number(foreign, "run_queue_share", "foreign.", 0, 1, out.contention.run_queue_share);
  reader.number(foreign, "steal_share", "foreign.", 0, 1, out.contention.steal_share);
  reader.flag(foreign, "disturbed", "foreign.", out.contention.disturbed);
}

void read_provenance(Reader& reader, const Json& root, PipelineProbe& out) {
  const Json& json = reader.object(root, "provenance");
  reader.text(json, "date", "provenance.", out.date);
  reader.text(json, "cpu_model", "provenance.", out.cpu_model);
  reader.text(json, "python", "provenance.", out.python);
  reader.text(json, "torch", "provenance.", out.torch);
  reader.number(json, "cores", "provenance.", 0.01, 1e6, out.cores);
}

void read_findings(Reader& reader, const Json& root, Diagnostics& out) {
  for (const Json& row : reader.list(root, "findings", "", kMaxRows)) {
    std::string name, severity = "note", advice;
    std::int64_t count = 1;
    reader.text(row, "name", "findings.", name);
    reader.text(row, "severity", "findings.", severity);
    reader.text(row, "advice", "findings.", advice);
    reader.integer(row, "count", "findings.", 0, kMaxCount, count);
    if (name.empty()) reader.refuse("findings", "has a finding without a name");
    if (!reader.good()) return;
    out.add(name, severity == "warning" ? Severity::kWarning : Severity::kNote, advice, count);
  }
}

/// Format and version, before anything else is believed.
Status check_head(const Json& root, const std::string& where) {
  if (!root.is_object() || !root.contains("format") || root["format"] != std::string(kFormat)) {
    return fail(ErrorCode::kBadInput,
                "is not a probe of a pipeline; make one with: stoker probe FILE.py:FUNCTION "
                "-o FILE",
                where);
  }
  const auto version = root.find("schema_version");
  if (version == root.end() || !version->is_array() || version->size() != 2 ||
      !(*version)[0].is_number_integer()) {
    return fail(ErrorCode::kBadInput,
                "field \"schema_version\" is not [major, minor]; probe the pipeline again", where);
  }
  if ((*version)[0] != kMajor) {
    return fail(ErrorCode::kTooNew,
                "is of pipeline probe format " + (*version)[0].dump() + ", this program reads " +
                    std::to_string(kMajor) + "; update stoker or probe the pipeline again",
                where);
  }
  return {};
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
  return text.substr(0, kHead).find(kFormat) != std::string_view::npos;
}

Result<PipelineProbe> parse_pipeline_probe(std::string_view text, const std::string& where) {
  const auto root =
      json_document(text, where, {"a probe of a pipeline", "probe the pipeline again", kMaxDepth});
  if (!root) return tl::unexpected(root.error());
  if (const Status head = check_head(*root, where); !head) return tl::unexpected(head.error());
  Reader reader(where);
  PipelineProbe probe;
  reader.text(*root, "name", "", probe.name);
  std::string kind = "map";
  reader.text(*root, "kind", "", kind);
  if (kind != "map" && kind != "iterable") reader.refuse("kind", "is neither map nor iterable");
  probe.iterable = kind == "iterable";
  reader.integer(*root, "samples", "", 0, kMaxCount, probe.samples);
  reader.text(*root, "output", "", probe.output);
  read_loader(reader, *root, probe);
  read_sample(reader, *root, probe);
  read_batches(reader, *root, probe);
  read_transport(reader, *root, probe);
  read_one_worker(reader, *root, probe);
  read_process(reader, *root, probe);
  read_provenance(reader, *root, probe);
  read_findings(reader, *root, probe.findings);
  if (!reader.good()) return tl::unexpected(reader.error());
  return probe;
}

Result<PipelineProbe> read_pipeline_probe(const std::filesystem::path& path) {
  const Result<std::string> text = read_file(path, kFileLimit);
  if (!text) return tl::unexpected(text.error());
  return parse_pipeline_probe(*text, path.string());
}

}  // namespace stoker
