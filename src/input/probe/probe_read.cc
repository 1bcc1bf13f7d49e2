#include <cmath>
#include <nlohmann/json.hpp>

#include "input/probe/probe_io.h"
#include "input/probe/storage_json.h"
#include "json/json_document.h"
#include "json/json_reader.h"

namespace stoker {
namespace {

using namespace probe_json;

constexpr int kMajor = 1;
constexpr std::size_t kMaxSamples = 1'000'000;
/// Nesting of the format is 5; deeper text is an attack on the parser's stack.
constexpr int kMaxDepth = 8;
constexpr double kMaxSide = kMaxPictureSide;

void read_kind(Reader& reader, const Json& root, Probe& out) {
  if (!root.contains("kind")) return;  // before 1.1 there were pictures only
  const auto kind = data_kind_named(reader.text(root, "kind", ""));
  if (!kind) return reader.refuse("kind", "is none that this program knows");
  out.kind = *kind;
  out.format = reader.text(root, "file_format", "");
}

void read_dataset(Reader& reader, const Json& root, DataKind kind, DatasetFacts& out) {
  const Json& json = reader.child(root, "dataset", "");
  out.name = reader.text(json, "name", "dataset.");
  out.files = reader.integer(json, "files", "dataset.", 1, kMaxCount);
  out.files_exact = reader.flag(json, "files_exact", "dataset.");
  out.files_estimate = out.samples = out.files;
  out.samples_exact = out.files_exact;
  if (json.contains("samples")) {  // since 1.1
    const double files = static_cast<double>(out.files);
    out.files_estimate = reader.integer(json, "files_estimate", "dataset.", files, kMaxCount);
    out.samples = reader.integer(json, "samples", "dataset.", 1, kMaxCount);
    out.samples_exact = reader.flag(json, "samples_exact", "dataset.");
  }
  out.total_bytes = Bytes(reader.integer(json, "total_bytes", "dataset.", 1, kMaxCount));
  out.bytes_exact = reader.flag(json, "bytes_exact", "dataset.");
  out.mean_bytes = reader.number(json, "mean_bytes", "dataset.", 1, kMaxCount);
  out.mean_pixels =
      reader.number(json, "mean_pixels", "dataset.", kind == DataKind::kText ? 0 : 1, kMaxCount);
  // Empty and unreadable files count among `files`, so the product may exceed the total, not
  // undercut it.
  const double product = out.mean_bytes * static_cast<double>(out.files_estimate);
  if (reader.good() && product < 0.99 * static_cast<double>(out.total_bytes.count())) {
    reader.refuse("dataset.total_bytes", "contradicts dataset.files times dataset.mean_bytes");
  }
}

void read_fit(Reader& reader, const Json& root, const char* key, DecodeFit& out) {
  const Json& json = reader.child(root, key, "");
  const std::string here = std::string(key) + ".";
  out.per_megapixel = reader.number(json, "ms_per_megapixel", here, 0, kMaxMs);
  out.per_megabyte = reader.number(json, "ms_per_megabyte", here, 0, kMaxMs);
  out.r2 = reader.number(json, "r2", here, 0, 1);
  out.progressive_share = reader.number(json, "progressive_share", here, 0, 1);
  out.progressive_ratio = reader.number(json, "progressive_ratio", here, 0, 1e6);
}

void read_measures(Reader& reader, const Json& root, Probe& out) {
  const Json& stages = reader.child(root, "stage_ms", "");
  double sum = 0;
  for (std::size_t s = 0; s < kStageCount; ++s) {
    const std::string name(stage_name(static_cast<Stage>(s)));
    out.stage_ms[s] = reader.spread(stages, name.c_str(), "stage_ms.");
    sum += out.stage_ms[s].mean;
  }
  out.sample_ms = reader.spread(root, "sample_ms", "");
  if (reader.good() && std::abs(sum - out.sample_ms.mean) > 0.01 * sum + 1e-6) {
    reader.refuse("sample_ms.mean", "contradicts the sum of the stages");
  }
  read_fit(reader, root, "decode_fit", out.decode);
  if (root.contains("png_share")) {  // since 1.1
    out.png_share = reader.number(root, "png_share", "", 0, 1);
    read_fit(reader, root, "decode_fit_png", out.decode_png);
  }
  const Json& read = reader.child(root, "read", "");
  out.read.cold_measured = reader.flag(read, "cold_measured", "read.");
  out.read.cold_ms = reader.number(read, "cold_ms", "read.", 0, kMaxMs);
  out.read.cold_seek_ms = reader.number(read, "cold_seek_ms", "read.", 0, kMaxMs);
  out.read.cold_bandwidth = reader.number(read, "cold_bytes_per_s", "read.", 0, kMaxRate);
  out.read.cold_speedup = reader.number(read, "cold_speedup_of_8_readers", "read.", 0, 1000);
  out.read.warm_ms = reader.number(read, "warm_ms", "read.", 0, kMaxMs);
  out.read.resident_share = reader.number(read, "resident_share", "read.", 0, 1);
  const Json& parallel = reader.child(root, "parallel", "");
  out.parallel.threads =
      static_cast<int>(reader.integer(parallel, "threads", "parallel.", 1, 65536));
  out.parallel.samples_per_s_one =
      reader.number(parallel, "samples_per_s_one", "parallel.", 0, kMaxRate);
  out.parallel.samples_per_s_all =
      reader.number(parallel, "samples_per_s_all", "parallel.", 0, kMaxRate);
  out.parallel.efficiency = reader.number(parallel, "efficiency", "parallel.", 1e-3, 1);
  const Json& foreign = reader.child(root, "foreign_load", "");
  out.contention.wall_per_cpu = reader.number(foreign, "wall_per_cpu", "foreign_load.", 1, 1e6);
  out.contention.run_queue_share = reader.number(foreign, "run_queue_share", "foreign_load.", 0, 1);
  out.contention.steal_share = reader.number(foreign, "steal_share", "foreign_load.", 0, 1);
  out.contention.disturbed = reader.flag(foreign, "disturbed", "foreign_load.");
}

void read_samples(Reader& reader, const Json& root, DataKind kind, std::vector<SampleRecord>& out) {
  const double smallest = kind == DataKind::kText ? 0 : 1;  // a side
  const auto found = root.find("samples");
  if (found == root.end() || !found->is_array() || found->empty()) {
    return reader.refuse("samples", "is not a list with at least one sample");
  }
  if (found->size() > kMaxSamples) return reader.refuse("samples", "has more than a million rows");
  for (std::size_t i = 0; i < found->size() && reader.good(); ++i) {
    const Json& row = (*found)[i];
    const std::string field = "samples[" + std::to_string(i) + "]";
    if (!row.is_array() || row.size() != 4 + kStageCount) {
      return reader.refuse(field,
                           "is not a row of " + std::to_string(4 + kStageCount) + " numbers");
    }
    SampleRecord sample;
    sample.bytes = Bytes(static_cast<std::int64_t>(reader.checked(row[0], field, 1, kMaxCount)));
    sample.width = static_cast<int>(reader.checked(row[1], field, smallest, kMaxSide));
    sample.height = static_cast<int>(reader.checked(row[2], field, smallest, kMaxSide));
    const int flags = static_cast<int>(reader.checked(row[3], field, 0, 255));
    sample.progressive = (flags & 1) != 0;
    sample.grey = (flags & 2) != 0;
    sample.cmyk = (flags & 4) != 0;
    sample.png = (flags & 8) != 0;
    sample.interlaced = (flags & 16) != 0;
    sample.sixteen_bit = (flags & 32) != 0;
    sample.alpha = (flags & 64) != 0;
    sample.raw = (flags & 128) != 0;
    for (std::size_t s = 0; s < kStageCount; ++s) {
      sample.stage[s] = kMillisecond * (1e-6 * reader.checked(row[4 + s], field, 0, kMaxMs * 1e6));
    }
    out.push_back(sample);
  }
}

void read_diagnostics(Reader& reader, const Json& root, Diagnostics& out) {
  const auto found = root.find("diagnostics");
  if (found == root.end()) return;
  if (!found->is_array()) return reader.refuse("diagnostics", "is not a list");
  for (const Json& entry : *found) {
    if (!entry.is_object())
      return reader.refuse("diagnostics", "holds something that is not an object");
    const std::string severity = reader.text(entry, "severity", "diagnostics.");
    const std::string name = reader.text(entry, "name", "diagnostics.");
    const std::string advice = reader.text(entry, "advice", "diagnostics.");
    const std::int64_t count = reader.integer(entry, "count", "diagnostics.", 1, kMaxCount);
    if (!reader.good()) return;
    out.add(name, severity == "warning" ? Severity::kWarning : Severity::kNote, advice, count);
  }
}

void read_provenance(Reader& reader, const Json& root, ProbeProvenance& out) {
  const Json& json = reader.child(root, "provenance", "");
  out.stoker_version = reader.text(json, "stoker", "provenance.");
  out.date = reader.text(json, "date", "provenance.");
  out.cpu_model = reader.text(json, "cpu_model", "provenance.");
  out.cores = reader.number(json, "cores", "provenance.", 0, 65536);
  out.folder_hash = reader.text(json, "folder_hash", "provenance.");
  out.decoder = reader.text(json, "decoder", "provenance.");
}

/// Format and version, before anything else is believed.
Status check_head(const Json& root, const std::string& where) {
  if (!root.is_object() || !root.contains("format") || root["format"] != "stoker-probe") {
    return fail(ErrorCode::kBadInput,
                "is not a probe file; make one with: stoker probe DIR -o FILE", where);
  }
  const auto version = root.find("schema_version");
  if (version == root.end() || !version->is_array() || version->size() != 2 ||
      !(*version)[0].is_number_integer()) {
    return fail(ErrorCode::kBadInput,
                "field \"schema_version\" is not [major, minor]; probe the folder again", where);
  }
  if ((*version)[0] != kMajor) {
    return fail(ErrorCode::kTooNew,
                "is of probe format " + (*version)[0].dump() + ", this program reads " +
                    std::to_string(kMajor) + "; update stoker or probe the folder again",
                where);
  }
  return {};
}

}  // namespace

Result<Probe> parse_probe(std::string_view text, const std::string& where) {
  const auto document =
      json_document(text, where, {"a probe file", "probe the folder again", kMaxDepth});
  if (!document) return tl::unexpected(document.error());
  const Json& root = *document;
  if (const Status head = check_head(root, where); !head) return tl::unexpected(head.error());
  Reader reader(where);
  Probe probe;
  read_provenance(reader, root, probe.provenance);
  read_kind(reader, root, probe);
  read_dataset(reader, root, probe.kind, probe.dataset);
  probe.image_size = static_cast<int>(reader.integer(root, "image_size", "", 1, kMaxSide));
  read_measures(reader, root, probe);
  if (root.contains("storage"))  // since 1.1, and only where it was measured
    read_storage(reader, reader.child(root, "storage", ""), probe.storage.emplace());
  read_samples(reader, root, probe.kind, probe.samples);
  read_diagnostics(reader, root, probe.diagnostics);
  if (!reader.good()) return tl::unexpected(reader.error());
  return probe;
}

}  // namespace stoker
