#include "evidence/input/loader_runs.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/files.h"
#include "json/json_document.h"

namespace stoker {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "stoker-input-runs";
constexpr int kMajor = 1;
constexpr Bytes kMaxFile{256LL << 20};
constexpr int kMaxDepth = 16;
constexpr double kMaxMs = 1e9, kMaxCount = 1e15;
constexpr double kMaxWorkers = 1024, kMaxPrefetch = 1024;
const std::string kCure = "measure again with: stoker validate --input -o FILE";

/// Takes fields from one object and remembers the first that is wrong.
class Fields {
 public:
  Fields(const Json& object, std::string path, std::optional<Error>& error, std::string where)
      : object_(object), path_(std::move(path)), error_(error), where_(std::move(where)) {
    if (!object_.is_object()) refuse("", "is not an object");
  }

  double number(const char* key, double low, double high) {
    const Json* value = find(key);
    if (value == nullptr) return low;
    if (!value->is_number()) return refuse(key, "is not a number"), low;
    const auto found = value->get<double>();
    if (!(found >= low && found <= high)) return refuse(key, "is out of range"), low;
    return found;
  }
  Nanos time(const char* key) { return number(key, 0, kMaxMs) * kMillisecond; }
  std::int64_t count(const char* key, double low, double high) {
    const double found = number(key, low, high);
    if (found != std::floor(found)) refuse(key, "is not a whole number");
    return static_cast<std::int64_t>(found);
  }
  bool flag(const char* key) {
    const Json* value = find(key);
    if (value == nullptr) return false;
    if (!value->is_boolean()) return refuse(key, "is not true or false"), false;
    return value->get<bool>();
  }
  std::string text(const char* key) {
    const Json* value = find(key);
    if (value == nullptr) return {};
    if (!value->is_string()) return refuse(key, "is not a text"), std::string();
    return value->get<std::string>();
  }
  const Json& list(const char* key) {
    static const Json kNone = Json::array();
    const Json* value = find(key);
    if (value == nullptr) return kNone;
    if (!value->is_array()) return refuse(key, "is not a list"), kNone;
    return *value;
  }
  /// Absent is fine.
  [[nodiscard]] bool has(const char* key) const {
    return object_.is_object() && object_.contains(key) && !object_.at(key).is_null();
  }
  void refuse(const std::string& key, const std::string& what) {
    if (error_) return;
    const std::string field = key.empty() ? path_ : path_.empty() ? key : path_ + "." + key;
    error_ = Error{ErrorCode::kBadInput, "field \"" + field + "\" " + what + "; " + kCure, where_};
  }

 private:
  const Json* find(const char* key) {
    if (!object_.is_object()) return nullptr;
    const auto found = object_.find(key);
    if (found == object_.end()) return refuse(key, "is missing"), nullptr;
    return &*found;
  }

  const Json& object_;
  std::string path_;
  std::optional<Error>& error_;
  std::string where_;
};

/// Where in the document a reader is, for the messages.
struct Place {
  std::optional<Error>& error;
  const std::string& where;
  std::string path;

  [[nodiscard]] Fields fields(const Json& object) const { return {object, path, error, where}; }
  [[nodiscard]] Place below(const std::string& key, std::size_t index) const {
    return {error, where,
            (path.empty() ? "" : path + ".") + key + "[" + std::to_string(index) + "]"};
  }
};

LoaderRepetition read_repetition(const Json& json, const Place& place) {
  Fields fields = place.fields(json);
  LoaderRepetition out;
  out.good = fields.flag("good");
  out.why = fields.text("why");
  out.foreign = fields.number("foreign_share", 0, 1e3);
  out.steal = fields.number("steal_share", 0, 1e3);
  out.speed = fields.number("speed", 0, 1e3);
  if (!out.good) return out;  // an epoch that failed has no times
  out.epoch = fields.time("epoch_ms");
  out.first_batch = fields.time("first_batch_ms");
  out.interval = fields.time("interval_ms");
  out.shared_memory = Bytes(fields.count("shm_bytes", 0, kMaxCount));
  out.main_cpu = fields.time("main_cpu_ms");
  out.workers_cpu = fields.time("workers_cpu_ms");
  if (!(out.epoch.count() > 0)) fields.refuse("epoch_ms", "is not above 0");
  if (!(out.first_batch.count() > 0)) fields.refuse("first_batch_ms", "is not above 0");
  return out;
}

StartMethod start_method_of(Fields& fields) {
  const auto method = start_method_named(fields.text("start_method"));
  if (!method) fields.refuse("start_method", "is none of fork, spawn, forkserver");
  return method.value_or(StartMethod::kFork);
}

LoaderPoint read_point(const Json& json, const Place& place) {
  Fields fields = place.fields(json);
  LoaderPoint out;
  LoaderSettings& s = out.settings;
  s.batch = fields.count("batch", 1, 1e9);
  s.workers = static_cast<int>(fields.count("workers", 0, kMaxWorkers));
  s.prefetch = static_cast<int>(fields.count("prefetch", 1, kMaxPrefetch));
  s.in_order = fields.flag("in_order");
  s.persistent = fields.flag("persistent");
  s.drop_last = fields.flag("drop_last");
  s.start_method = start_method_of(fields);
  s.pin = false;  // these runs have no GPU
  s.dataset_samples = fields.count("samples", 1, kMaxCount);
  out.step = fields.time("step_ms");
  out.cores = static_cast<int>(fields.count("cores", 1, 65536));
  out.cold = fields.flag("cold");
  const Json& list = fields.list("repetitions");
  for (std::size_t i = 0; i < list.size(); ++i)
    out.repetitions.push_back(read_repetition(list[i], place.below("repetitions", i)));
  return out;
}

Result<LoaderScenario> read_scenario(const Json& json, const Place& place) {
  Fields fields = place.fields(json);
  LoaderScenario out;
  out.name = fields.text("name");
  out.what = fields.text("what");
  out.batches_differ = fields.flag("batches_differ");
  const Json& points = fields.list("points");
  for (std::size_t i = 0; i < points.size(); ++i)
    out.points.push_back(read_point(points[i], place.below("points", i)));
  if (fields.has("cold_reads")) {
    Fields cold(json.at("cold_reads"), place.path + ".cold_reads", place.error, place.where);
    out.cold = {true, cold.number("seek_ms", 0, kMaxMs), cold.number("bandwidth", 0, kMaxCount),
                cold.number("speedup", 0, 1e6)};
  }
  if (!fields.has("probe")) fields.refuse("probe", "is missing");
  if (place.error) return out;
  auto probe =
      parse_pipeline_probe(json.at("probe").dump(), place.where + ": " + place.path + ".probe");
  if (!probe) return tl::unexpected(probe.error());
  out.probe = std::move(*probe);
  return out;
}

Status check_head(const Json& root, const std::string& where) {
  if (!root.is_object() || root.value("format", Json()) != Json(kFormat)) {
    return fail(
        ErrorCode::kBadInput,
        "is no file of measured DataLoaders; make one with: stoker validate --input -o FILE",
        where);
  }
  const Json version = root.value("schema_version", Json());
  if (!version.is_array() || version.size() != 2 || !version[0].is_number_integer())
    return fail(ErrorCode::kBadInput, "field \"schema_version\" is not [major, minor]; " + kCure,
                where);
  if (version[0] != kMajor) {
    return fail(ErrorCode::kTooNew,
                "is of rows format " + version[0].dump() + ", this program reads " +
                    std::to_string(kMajor) + "; update stoker or measure again",
                where);
  }
  return {};
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
  const auto root = TRY(json_document(text, where, {"a rows file", kCure, kMaxDepth}));
  if (const Status head = check_head(root, where); !head) return tl::unexpected(head.error());
  std::optional<Error> error;
  const Place top{error, where, ""};
  Fields fields(root, "", error, where);
  LoaderRuns runs;
  runs.rule = fields.text("rule");
  if (fields.has("needed")) runs.needed = static_cast<int>(fields.count("needed", 1, 100));
  if (fields.has("agreement")) runs.agreement = fields.number("agreement", 0, 10);
  if (fields.has("provenance")) {
    Fields provenance(root.at("provenance"), "provenance", error, where);
    runs.date = provenance.text("date");
    runs.cpu_model = provenance.text("cpu_model");
    runs.python = provenance.text("python");
    runs.torch = provenance.text("torch");
    runs.cores = static_cast<int>(provenance.count("cores", 1, 65536));
  }
  if (fields.has("skipped")) {
    const Json& list = fields.list("skipped");
    for (std::size_t i = 0; i < list.size(); ++i) {
      Fields skipped = top.below("skipped", i).fields(list[i]);
      runs.skipped.push_back({skipped.text("name"), skipped.text("why")});
    }
  }
  const Json& list = fields.list("scenarios");
  for (std::size_t i = 0; i < list.size() && !error; ++i) {
    auto scenario = TRY(read_scenario(list[i], top.below("scenarios", i)));
    runs.scenarios.push_back(std::move(scenario));
  }
  if (error) return tl::unexpected(*error);
  return runs;
}

Result<LoaderRuns> read_loader_runs(const std::filesystem::path& path) {
  const auto text = TRY(read_file(path, kMaxFile));
  return parse_loader_runs(text, path.string());
}

}  // namespace stoker
