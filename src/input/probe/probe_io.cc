#include "input/probe/probe_io.h"

#include <cmath>
#include <string>

#include "base/files.h"
#include "input/probe/storage_json.h"
#include "json/value.h"

namespace stoker {
namespace {

using Json = json::Value;

constexpr int kMajor = 1, kMinor = 1;
/// A probe file of 100,000 samples stays below this; more is no probe file.
constexpr Bytes kProbeFileLimit = 64 * kMiB;

Json to_json(const Spread& spread) {
  return {{"mean", spread.mean}, {"median", spread.median}, {"sd", spread.sd}, {"p95", spread.p95}};
}

int flags_of(const SampleRecord& sample) {
  return int{sample.progressive} + 2 * int{sample.grey} + 4 * int{sample.cmyk} +
         8 * int{sample.png} + 16 * int{sample.interlaced} + 32 * int{sample.sixteen_bit} +
         64 * int{sample.alpha} + 128 * int{sample.raw};
}

Json to_json(const DecodeFit& fit) {
  return {{"ms_per_megapixel", fit.per_megapixel},
          {"ms_per_megabyte", fit.per_megabyte},
          {"r2", fit.r2},
          {"progressive_share", fit.progressive_share},
          {"progressive_ratio", fit.progressive_ratio}};
}

/// One row a sample: bytes, width, height, flags, then the stages in nanoseconds.
Json to_json(const SampleRecord& sample, DataKind kind) {
  Json row = {sample.bytes.count(), sample.width, sample.height, flags_of(sample)};
  for (const Nanos time : sample.stage) {
    // A line of text takes tens of nanoseconds: it keeps its fraction.
    if (kind == DataKind::kText) {
      row.push_back(std::round(time.count() * 1000) / 1000);
    } else {
      row.push_back(std::llround(time.count()));
    }
  }
  return row;
}

}  // namespace

std::string probe_to_json(const Probe& probe, const std::vector<CacheWhatIf>& what_if) {
  const DatasetFacts& data = probe.dataset;
  Json root;
  root["format"] = "stoker-probe";
  root["schema_version"] = {kMajor, kMinor};
  const ProbeProvenance& from = probe.provenance;
  root["provenance"] = {{"stoker", from.stoker_version},   {"date", from.date},
                        {"cpu_model", from.cpu_model},     {"cores", from.cores},
                        {"folder_hash", from.folder_hash}, {"decoder", from.decoder}};
  root["kind"] = data_kind_name(probe.kind);
  root["file_format"] = probe.format;
  root["dataset"] = {{"name", data.name},
                     {"files", data.files},
                     {"files_exact", data.files_exact},
                     {"files_estimate", data.files_estimate},
                     {"samples", data.samples},
                     {"samples_exact", data.samples_exact},
                     {"total_bytes", data.total_bytes.count()},
                     {"bytes_exact", data.bytes_exact},
                     {"mean_bytes", data.mean_bytes},
                     {"mean_pixels", data.mean_pixels}};
  root["image_size"] = probe.image_size;
  for (std::size_t s = 0; s < kStageCount; ++s) {
    root["stage_ms"][std::string(stage_name(static_cast<Stage>(s)))] = to_json(probe.stage_ms[s]);
  }
  root["sample_ms"] = to_json(probe.sample_ms);
  root["decode_fit"] = to_json(probe.decode);
  root["png_share"] = probe.png_share;
  root["decode_fit_png"] = to_json(probe.decode_png);
  root["read"] = {{"cold_measured", probe.read.cold_measured},
                  {"cold_ms", probe.read.cold_ms},
                  {"cold_seek_ms", probe.read.cold_seek_ms},
                  {"cold_bytes_per_s", probe.read.cold_bandwidth},
                  {"cold_speedup_of_8_readers", probe.read.cold_speedup},
                  {"warm_ms", probe.read.warm_ms},
                  {"resident_share", probe.read.resident_share}};
  if (probe.storage) root["storage"] = probe_json::to_json(*probe.storage);
  root["parallel"] = {{"threads", probe.parallel.threads},
                      {"samples_per_s_one", probe.parallel.samples_per_s_one},
                      {"samples_per_s_all", probe.parallel.samples_per_s_all},
                      {"efficiency", probe.parallel.efficiency}};
  root["foreign_load"] = {{"wall_per_cpu", probe.contention.wall_per_cpu},
                          {"run_queue_share", probe.contention.run_queue_share},
                          {"steal_share", probe.contention.steal_share},
                          {"disturbed", probe.contention.disturbed}};
  root["diagnostics"] = Json::array();
  for (const Diagnostic& d : probe.diagnostics.all()) {
    root["diagnostics"].push_back(
        {{"name", d.name},
         {"severity", d.severity == Severity::kWarning ? "warning" : "note"},
         {"advice", d.advice},
         {"count", d.count}});
  }
  for (const CacheWhatIf& row : what_if) {
    root["what_if"].push_back({{"memory", row.memory.count()},
                               {"this_host", row.this_host},
                               {"cached", row.cached},
                               {"first_per_s", row.first_per_s},
                               {"later_per_s", row.later_per_s},
                               {"first_seconds", row.first_seconds},
                               {"later_seconds", row.later_seconds},
                               {"disk_bound", row.disk_bound}});
  }
  root["samples"] = Json::array();
  for (const SampleRecord& sample : probe.samples)
    root["samples"].push_back(to_json(sample, probe.kind));
  return root.dump() + "\n";
}

Status write_probe(const std::filesystem::path& path, const Probe& probe) {
  return write_file(path, probe_to_json(probe));
}

Result<Probe> read_probe(const std::filesystem::path& path) {
  const Result<std::string> text = read_file(path, kProbeFileLimit);
  if (!text) return tl::unexpected(text.error());
  return parse_probe(*text, path.string());
}

}  // namespace stoker
