#include <cmath>

#include "input/probe/probe_io.h"
#include "input/probe/storage_json.h"
#include "json/fields.h"
#include "json/text.h"

namespace stoker {
namespace {

using Json = json::Value;
using json::Fields, json::kMaxCount, json::kMaxMs, json::kMaxRate;

constexpr json::Format kProbeFormat{"stoker-probe", 1, "probe format", "probe the folder again",
                                    "is not a probe file; make one with: stoker probe DIR -o FILE"};
constexpr const char* kProbeCure = "probe the folder again";
constexpr std::size_t kMaxSamples = 1'000'000;
/// Nesting of the format is 5; deeper text is an attack on the parser's stack.
constexpr int kMaxDepth = 8;
constexpr double kMaxSide = kMaxPictureSide;

Spread read_spread(Fields& fields, const Json& parent, const char* key, const std::string& path) {
  const Json& json = fields.object(parent, key, path);
  const std::string here = path + key + ".";
  Spread out;
  out.mean = fields.number(json, "mean", here, 0, kMaxMs);
  out.median = fields.number(json, "median", here, 0, kMaxMs);
  out.sd = fields.number(json, "sd", here, 0, kMaxMs);
  out.p95 = fields.number(json, "p95", here, 0, kMaxMs);
  if (fields.good() && out.median > out.p95)
    fields.refuse(path + key, "contradicts itself: its median exceeds its p95");
  return out;
}

void read_kind(Fields& fields, const Json& root, Probe& out) {
  if (!root.contains("kind")) return;  // before 1.1 there were images only
  const auto kind = data_kind_named(fields.text(root, "kind", ""));
  if (!kind) return fields.refuse("kind", "is none that this program knows");
  out.kind = *kind;
  out.format = fields.text(root, "file_format", "");
}

void read_dataset(Fields& fields, const Json& root, DataKind kind, DatasetFacts& out) {
  const Json& json = fields.object(root, "dataset", "");
  out.name = fields.text(json, "name", "dataset.");
  out.files = fields.integer(json, "files", "dataset.", 1, kMaxCount);
  out.files_exact = fields.flag(json, "files_exact", "dataset.");
  out.files_estimate = out.samples = out.files;
  out.samples_exact = out.files_exact;
  if (json.contains("samples")) {  // since 1.1
    const double files = static_cast<double>(out.files);
    out.files_estimate = fields.integer(json, "files_estimate", "dataset.", files, kMaxCount);
    out.samples = fields.integer(json, "samples", "dataset.", 1, kMaxCount);
    out.samples_exact = fields.flag(json, "samples_exact", "dataset.");
  }
  out.total_bytes = Bytes(fields.integer(json, "total_bytes", "dataset.", 1, kMaxCount));
  out.bytes_exact = fields.flag(json, "bytes_exact", "dataset.");
  out.mean_bytes = fields.number(json, "mean_bytes", "dataset.", 1, kMaxCount);
  out.mean_pixels =
      fields.number(json, "mean_pixels", "dataset.", kind == DataKind::kText ? 0 : 1, kMaxCount);
  // Empty and unreadable files count among `files`, so the product may exceed the total, not
  // undercut it.
  const double product = out.mean_bytes * static_cast<double>(out.files_estimate);
  if (fields.good() && product < 0.99 * static_cast<double>(out.total_bytes.count())) {
    fields.refuse("dataset.total_bytes", "contradicts dataset.files times dataset.mean_bytes");
  }
}

void read_fit(Fields& fields, const Json& root, const char* key, DecodeFit& out) {
  const Json& json = fields.object(root, key, "");
  const std::string here = std::string(key) + ".";
  out.per_megapixel = fields.number(json, "ms_per_megapixel", here, 0, kMaxMs);
  out.per_megabyte = fields.number(json, "ms_per_megabyte", here, 0, kMaxMs);
  out.r2 = fields.number(json, "r2", here, 0, 1);
  out.progressive_share = fields.number(json, "progressive_share", here, 0, 1);
  out.progressive_ratio = fields.number(json, "progressive_ratio", here, 0, 1e6);
}

void read_measures(Fields& fields, const Json& root, Probe& out) {
  const Json& stages = fields.object(root, "stage_ms", "");
  double sum = 0;
  for (std::size_t s = 0; s < kStageCount; ++s) {
    const std::string name(stage_name(static_cast<Stage>(s)));
    out.stage_ms[s] = read_spread(fields, stages, name.c_str(), "stage_ms.");
    sum += out.stage_ms[s].mean;
  }
  out.sample_ms = read_spread(fields, root, "sample_ms", "");
  if (fields.good() && std::abs(sum - out.sample_ms.mean) > 0.01 * sum + 1e-6) {
    fields.refuse("sample_ms.mean", "contradicts the sum of the stages");
  }
  read_fit(fields, root, "decode_fit", out.decode);
  if (root.contains("png_share")) {  // since 1.1
    out.png_share = fields.number(root, "png_share", "", 0, 1);
    read_fit(fields, root, "decode_fit_png", out.decode_png);
  }
  const Json& read = fields.object(root, "read", "");
  out.read.cold_measured = fields.flag(read, "cold_measured", "read.");
  out.read.cold_ms = fields.number(read, "cold_ms", "read.", 0, kMaxMs);
  out.read.cold_seek_ms = fields.number(read, "cold_seek_ms", "read.", 0, kMaxMs);
  out.read.cold_bandwidth = fields.number(read, "cold_bytes_per_s", "read.", 0, kMaxRate);
  out.read.cold_speedup = fields.number(read, "cold_speedup_of_8_readers", "read.", 0, 1000);
  out.read.warm_ms = fields.number(read, "warm_ms", "read.", 0, kMaxMs);
  out.read.resident_share = fields.number(read, "resident_share", "read.", 0, 1);
  const Json& parallel = fields.object(root, "parallel", "");
  out.parallel.threads =
      static_cast<int>(fields.integer(parallel, "threads", "parallel.", 1, 65536));
  out.parallel.samples_per_s_one =
      fields.number(parallel, "samples_per_s_one", "parallel.", 0, kMaxRate);
  out.parallel.samples_per_s_all =
      fields.number(parallel, "samples_per_s_all", "parallel.", 0, kMaxRate);
  out.parallel.efficiency = fields.number(parallel, "efficiency", "parallel.", 1e-3, 1);
  const Json& foreign = fields.object(root, "foreign_load", "");
  out.contention.wall_per_cpu = fields.number(foreign, "wall_per_cpu", "foreign_load.", 1, 1e6);
  out.contention.run_queue_share = fields.number(foreign, "run_queue_share", "foreign_load.", 0, 1);
  out.contention.steal_share = fields.number(foreign, "steal_share", "foreign_load.", 0, 1);
  out.contention.disturbed = fields.flag(foreign, "disturbed", "foreign_load.");
}

void read_samples(Fields& fields, const Json& root, DataKind kind, std::vector<SampleRecord>& out) {
  const double smallest = kind == DataKind::kText ? 0 : 1;  // a side
  const Json* found = root.find("samples");
  if (found == nullptr || !found->is_array() || found->empty()) {
    return fields.refuse("samples", "is not a list with at least one sample");
  }
  if (found->size() > kMaxSamples) return fields.refuse("samples", "has more than a million rows");
  for (std::size_t i = 0; i < found->size() && fields.good(); ++i) {
    const Json& row = (*found)[i];
    const std::string field = "samples[" + std::to_string(i) + "]";
    if (!row.is_array() || row.size() != 4 + kStageCount) {
      return fields.refuse(field,
                           "is not a row of " + std::to_string(4 + kStageCount) + " numbers");
    }
    SampleRecord sample;
    sample.bytes = Bytes(static_cast<std::int64_t>(fields.checked(row[0], field, 1, kMaxCount)));
    sample.width = static_cast<int>(fields.checked(row[1], field, smallest, kMaxSide));
    sample.height = static_cast<int>(fields.checked(row[2], field, smallest, kMaxSide));
    const int flags = static_cast<int>(fields.checked(row[3], field, 0, 255));
    sample.progressive = (flags & 1) != 0;
    sample.grey = (flags & 2) != 0;
    sample.cmyk = (flags & 4) != 0;
    sample.png = (flags & 8) != 0;
    sample.interlaced = (flags & 16) != 0;
    sample.sixteen_bit = (flags & 32) != 0;
    sample.alpha = (flags & 64) != 0;
    sample.raw = (flags & 128) != 0;
    for (std::size_t s = 0; s < kStageCount; ++s) {
      sample.stage[s] = kMillisecond * (1e-6 * fields.checked(row[4 + s], field, 0, kMaxMs * 1e6));
    }
    out.push_back(sample);
  }
}

void read_diagnostics(Fields& fields, const Json& root, Diagnostics& out) {
  const Json* found = root.find("diagnostics");
  if (found == nullptr) return;
  if (!found->is_array()) return fields.refuse("diagnostics", "is not a list");
  for (const Json& entry : *found) {
    if (!entry.is_object())
      return fields.refuse("diagnostics", "holds something that is not an object");
    const std::string severity = fields.text(entry, "severity", "diagnostics.");
    const std::string name = fields.text(entry, "name", "diagnostics.");
    const std::string advice = fields.text(entry, "advice", "diagnostics.");
    const std::int64_t count = fields.integer(entry, "count", "diagnostics.", 1, kMaxCount);
    if (!fields.good()) return;
    out.add(name, severity == "warning" ? Severity::kWarning : Severity::kNote, advice, count);
  }
}

void read_provenance(Fields& fields, const Json& root, ProbeProvenance& out) {
  const Json& json = fields.object(root, "provenance", "");
  out.stoker_version = fields.text(json, "stoker", "provenance.");
  out.date = fields.text(json, "date", "provenance.");
  out.cpu_model = fields.text(json, "cpu_model", "provenance.");
  out.cores = fields.number(json, "cores", "provenance.", 0, 65536);
  out.folder_hash = fields.text(json, "folder_hash", "provenance.");
  out.decoder = fields.text(json, "decoder", "provenance.");
}

}  // namespace

Result<Probe> parse_probe(std::string_view text, const std::string& where) {
  const auto document =
      json::parse_document(text, where, {"a probe file", "probe the folder again", kMaxDepth});
  if (!document) return tl::unexpected(document.error());
  const Json& root = *document;
  Fields fields(where, kProbeCure);
  TRY(fields.check_format(root, kProbeFormat));
  Probe probe;
  read_provenance(fields, root, probe.provenance);
  read_kind(fields, root, probe);
  read_dataset(fields, root, probe.kind, probe.dataset);
  probe.image_size = static_cast<int>(fields.integer(root, "image_size", "", 1, kMaxSide));
  read_measures(fields, root, probe);
  if (root.contains("storage"))  // since 1.1, and only where it was measured
    probe_json::read_storage(fields, fields.object(root, "storage", ""), probe.storage.emplace());
  read_samples(fields, root, probe.kind, probe.samples);
  read_diagnostics(fields, root, probe.diagnostics);
  if (!fields.good()) return tl::unexpected(fields.error());
  return probe;
}

}  // namespace stoker
