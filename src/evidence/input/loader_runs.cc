#include "evidence/input/loader_runs.h"

#include <cmath>
#include <optional>

#include "base/files.h"
#include "json/fields.h"
#include "json/text.h"

namespace stoker {
namespace {

using Json = json::Value;
using json::Fields;

constexpr json::Format kFormat{
    "stoker-input-runs", 1, "rows format", "measure again",
    "is no file of measured DataLoaders; make one with: stoker validate --input -o FILE"};
constexpr Bytes kMaxFile{256LL << 20};
constexpr int kMaxDepth = 16;
constexpr double kLongestMs = 1e9, kMostBytes = 1e15;
constexpr std::size_t kMostRows = 1'000'000;
constexpr double kMaxWorkers = 1024, kMaxPrefetch = 1024;
const std::string kCure = "measure again with: stoker validate --input -o FILE";

LoaderRepetition read_repetition(Fields& fields, const Json& json, const std::string& path) {
  const auto time = [&](const char* key) {
    return fields.number(json, key, path, 0, kLongestMs) * kMillisecond;
  };
  LoaderRepetition out;
  out.good = fields.flag(json, "good", path);
  out.why = fields.text(json, "why", path);
  out.foreign = fields.number(json, "foreign_share", path, 0, 1e3);
  out.steal = fields.number(json, "steal_share", path, 0, 1e3);
  out.speed = fields.number(json, "speed", path, 0, 1e3);
  if (!out.good) return out;  // an epoch that failed has no times
  out.epoch = time("epoch_ms");
  out.first_batch = time("first_batch_ms");
  out.interval = time("interval_ms");
  out.shared_memory = Bytes(fields.whole(json, "shm_bytes", path, 0, kMostBytes));
  out.main_cpu = time("main_cpu_ms");
  out.workers_cpu = time("workers_cpu_ms");
  if (!(out.epoch.count() > 0)) fields.refuse(path + "epoch_ms", "is not above 0");
  if (!(out.first_batch.count() > 0)) fields.refuse(path + "first_batch_ms", "is not above 0");
  return out;
}

StartMethod start_method_of(Fields& fields, const Json& json, const std::string& path) {
  const auto method = start_method_named(fields.text(json, "start_method", path));
  if (!method) fields.refuse(path + "start_method", "is none of fork, spawn, forkserver");
  return method.value_or(StartMethod::kFork);
}

LoaderPoint read_point(Fields& fields, const Json& json, const std::string& path) {
  const auto count = [&](const char* key, double low, double high) {
    return fields.whole(json, key, path, low, high);
  };
  LoaderPoint out;
  LoaderSettings& s = out.settings;
  s.batch = count("batch", 1, 1e9);
  s.workers = static_cast<int>(count("workers", 0, kMaxWorkers));
  s.prefetch = static_cast<int>(count("prefetch", 1, kMaxPrefetch));
  s.in_order = fields.flag(json, "in_order", path);
  s.persistent = fields.flag(json, "persistent", path);
  s.drop_last = fields.flag(json, "drop_last", path);
  s.start_method = start_method_of(fields, json, path);
  s.pin = false;  // these runs have no GPU
  s.dataset_samples = count("samples", 1, kMostBytes);
  out.step = fields.number(json, "step_ms", path, 0, kLongestMs) * kMillisecond;
  out.cores = static_cast<int>(count("cores", 1, 65536));
  out.cold = fields.flag(json, "cold", path);
  const Json& list = fields.list(json, "repetitions", path, kMostRows);
  for (std::size_t i = 0; i < list.size(); ++i)
    out.repetitions.push_back(
        read_repetition(fields, list[i], json::indexed(path, "repetitions", i)));
  return out;
}

Result<LoaderScenario> read_scenario(Fields& fields, const Json& json, const std::string& path) {
  LoaderScenario out;
  out.name = fields.text(json, "name", path);
  out.what = fields.text(json, "what", path);
  out.batches_differ = fields.flag(json, "batches_differ", path);
  out.cut = json::given(json, "cut") != nullptr && fields.flag(json, "cut", path);
  const Json& points = fields.list(json, "points", path, kMostRows);
  for (std::size_t i = 0; i < points.size(); ++i)
    out.points.push_back(read_point(fields, points[i], json::indexed(path, "points", i)));
  if (json::given(json, "cold_reads") != nullptr) {
    const Json& cold = fields.object(json, "cold_reads", path);
    const std::string here = path + "cold_reads.";
    out.cold = {true, fields.number(cold, "seek_ms", here, 0, kLongestMs),
                fields.number(cold, "bandwidth", here, 0, kMostBytes),
                fields.number(cold, "speedup", here, 0, 1e6)};
  }
  const Json& probe = fields.object(json, "probe", path);
  TRY(fields.status());
  out.probe = TRY(parse_pipeline_probe(probe.dump(), fields.where() + ": " + path + "probe"));
  return out;
}

}  // namespace

std::string LoaderPoint::label() const {
  const LoaderSettings& s = settings;
  std::string text = "batch " + std::to_string(s.batch) + ", " + std::to_string(s.workers) +
                     (s.workers == 1 ? " worker" : " workers");
  if (s.workers > 0 && s.prefetch != LoaderSettings{}.prefetch)
    text += ", prefetch " + std::to_string(s.prefetch);
  if (step.count() > 0) text += ", step " + std::to_string(std::lround(milliseconds(step))) + " ms";
  if (cores == 1) text += ", 1 core";
  if (!s.in_order) text += ", any order";
  if (s.persistent) text += ", persistent";
  if (s.start_method == StartMethod::kSpawn) text += ", spawn";
  if (s.start_method == StartMethod::kForkserver) text += ", forkserver";
  if (cold) text += ", cold files";
  return text;
}

Result<LoaderRuns> parse_loader_runs(std::string_view text, const std::string& where) {
  const auto root = TRY(json::parse_document(text, where, {"a rows file", kCure, kMaxDepth}));
  Fields fields(where, kCure);
  TRY(fields.check_format(root, kFormat));
  LoaderRuns runs;
  runs.rule = fields.text(root, "rule", "");
  runs.needed = static_cast<int>(fields.otherwise(root, "needed", "", 1, 100, runs.needed));
  runs.agreement = fields.otherwise(root, "agreement", "", 0, 10, runs.agreement);
  if (json::given(root, "provenance") != nullptr) {
    const Json& provenance = fields.object(root, "provenance", "");
    const std::string path = "provenance.";
    runs.date = fields.text(provenance, "date", path);
    runs.cpu_model = fields.text(provenance, "cpu_model", path);
    runs.python = fields.text(provenance, "python", path);
    runs.torch = fields.text(provenance, "torch", path);
    runs.cores = static_cast<int>(fields.whole(provenance, "cores", path, 1, 65536));
  }
  const Json& skipped = fields.maybe_list(root, "skipped", "", kMostRows);
  for (std::size_t i = 0; i < skipped.size(); ++i) {
    const std::string path = json::indexed("", "skipped", i);
    runs.skipped.push_back(
        {fields.text(skipped[i], "name", path), fields.text(skipped[i], "why", path)});
  }
  const Json& list = fields.list(root, "scenarios", "", kMostRows);
  for (std::size_t i = 0; i < list.size() && fields.good(); ++i)
    runs.scenarios.push_back(
        TRY(read_scenario(fields, list[i], json::indexed("", "scenarios", i))));
  TRY(fields.status());
  return runs;
}

Result<LoaderRuns> read_loader_runs(const std::filesystem::path& path) {
  const auto text = TRY(read_file(path, kMaxFile));
  return parse_loader_runs(text, path.string());
}

}  // namespace stoker
