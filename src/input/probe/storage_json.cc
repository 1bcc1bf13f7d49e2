#include "input/probe/storage_json.h"

#include <algorithm>
#include <iterator>

namespace stoker::probe_json {
namespace {

using Json = json::Value;
using json::kMaxCount, json::kMaxMs, json::kMaxRate;

constexpr double kMaxMicroseconds = kMaxMs * 1e3;
constexpr double kMaxDepth = 65'536;
constexpr std::size_t kMaxRows = 64;

Json to_json(const std::vector<DepthFacts>& rows) {
  Json out = Json::array();
  for (const DepthFacts& row : rows) {
    out.push_back({{"depth", row.depth},
                   {"reads", row.reads},
                   {"reads_per_s", row.reads_per_s},
                   {"bytes_per_s", row.bytes_per_s},
                   {"mean_ms", row.mean_ms},
                   {"p95_ms", row.p95_ms}});
  }
  return out;
}

void read_rows(json::Fields& fields, const Json& json, const char* key,
               std::vector<DepthFacts>& out) {
  const Json& rows = fields.maybe_list(json, key, "storage.", kMaxRows);
  const std::string here = std::string("storage.") + key + "[].";
  int before = 0;
  for (const Json& row : rows) {
    if (!row.is_object()) return fields.refuse(here, "is not an object");
    DepthFacts facts;
    facts.depth = static_cast<int>(fields.integer(row, "depth", here, 1, kMaxDepth));
    facts.reads = fields.integer(row, "reads", here, 1, kMaxCount);
    facts.reads_per_s = fields.number(row, "reads_per_s", here, 1e-9, kMaxRate);
    facts.bytes_per_s = fields.number(row, "bytes_per_s", here, 0, kMaxRate);
    facts.mean_ms = fields.number(row, "mean_ms", here, 0, kMaxMs);
    facts.p95_ms = fields.number(row, "p95_ms", here, 0, kMaxMs);
    if (!fields.good()) return;
    if (facts.depth <= before) return fields.refuse(here + "depth", "does not rise");
    before = facts.depth;
    out.push_back(facts);
  }
}

}  // namespace

Json to_json(const StorageFacts& s) {
  return {
      {"file_system", s.file_system.name},
      {"file_system_kind", file_system_kind_name(s.file_system.kind)},
      {"overlay_layers", s.file_system.layers},
      {"overlay_upper", s.file_system.upper},
      {"method", cold_method_name(s.method)},
      {"random_4k", to_json(s.random_4k)},
      {"whole_files", to_json(s.whole_files)},
      {"sequential_bytes_per_s", s.sequential_bytes_per_s},
      {"small_file_warm_us", s.small_file_warm_us},
      {"stat_us", s.stat_us},
      {"list_entries_per_s", s.list_entries_per_s},
      {"resident",
       {{"share", s.resident.share}, {"files", s.resident.files}, {"method", s.resident.method}}},
      {"memory_available", s.available.count()},
      {"memory_limit", s.limit.count()},
      {"bytes_read", s.read.count()}};
}

void read_storage(json::Fields& fields, const Json& json, StorageFacts& out) {
  const std::string here = "storage.";
  out.file_system.name = fields.text(json, "file_system", here);
  const auto kind = file_system_kind_named(fields.text(json, "file_system_kind", here));
  if (!kind) return fields.refuse("storage.file_system_kind", "is none that this program knows");
  out.file_system.kind = *kind;
  out.file_system.layers =
      static_cast<int>(fields.integer(json, "overlay_layers", here, 0, kMaxDepth));
  out.file_system.upper = fields.flag(json, "overlay_upper", here);
  const std::string method = fields.text(json, "method", here);
  constexpr ColdMethod kMethods[] = {ColdMethod::kNone, ColdMethod::kDirect, ColdMethod::kForget};
  const auto* const found =
      std::find_if(std::begin(kMethods), std::end(kMethods),
                   [&](ColdMethod m) { return cold_method_name(m) == method; });
  if (found == std::end(kMethods))
    return fields.refuse("storage.method", "is none that this program knows");
  out.method = *found;
  read_rows(fields, json, "random_4k", out.random_4k);
  read_rows(fields, json, "whole_files", out.whole_files);
  out.sequential_bytes_per_s = fields.number(json, "sequential_bytes_per_s", here, 0, kMaxRate);
  out.small_file_warm_us = fields.number(json, "small_file_warm_us", here, 0, kMaxMicroseconds);
  out.stat_us = fields.number(json, "stat_us", here, 0, kMaxMicroseconds);
  out.list_entries_per_s = fields.number(json, "list_entries_per_s", here, 0, kMaxRate);
  const Json& resident = fields.object(json, "resident", here);
  out.resident.share = fields.number(resident, "share", "storage.resident.", 0, 1);
  out.resident.files = fields.integer(resident, "files", "storage.resident.", 0, kMaxCount);
  out.resident.method = fields.text(resident, "method", "storage.resident.");
  out.available = Bytes(fields.integer(json, "memory_available", here, 0, kMaxCount));
  out.limit = Bytes(fields.integer(json, "memory_limit", here, 0, kMaxCount));
  out.read = Bytes(fields.integer(json, "bytes_read", here, 0, kMaxCount));
}

}  // namespace stoker::probe_json
