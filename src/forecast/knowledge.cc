#include "forecast/knowledge.h"

#include <algorithm>
#include <optional>

#include "base/files.h"
#include "json/text.h"

namespace stoker {
namespace {

using Json = json::Value;

constexpr Bytes kMaxCoefficientFile{16LL << 20};
/// Where no measured error applies. Wide on purpose.
constexpr Reach kPriorBelow{0.10, {}, {}}, kPriorAbove{0.15, {}, {}};
constexpr int kMemorySchema = 3;
constexpr double kLargestShare = 10;
constexpr Bytes kLargestReach{1LL << 50};

/// Absent when a number is missing or makes no sense.
std::optional<Reach> read_reach(const Json& from) {
  if (!from.is_object()) return std::nullopt;
  for (const char* key : {"share", "bytes", "least_bytes"}) {
    if (!from.contains(key) || !from[key].is_number()) return std::nullopt;
  }
  if (!from["bytes"].is_integer() || !from["least_bytes"].is_integer()) return std::nullopt;
  const Reach reach{from["share"].as_double(), Bytes(from["bytes"].as_integer()),
                    Bytes(from["least_bytes"].as_integer())};
  const bool sane = reach.share >= 0 && reach.share < kLargestShare &&
                    reach.fixed > Bytes(-kLargestReach.count()) && reach.fixed < kLargestReach &&
                    reach.least >= Bytes(0) && reach.least < kLargestReach;
  return sane ? std::optional(reach) : std::nullopt;
}

/// Where a case states no need of its own, as on a CPU, it is the upper side of the band.
std::optional<NeedReach> read_need(const Json& band, const Reach& above) {
  if (!band.contains("need")) return NeedReach{above, 0};
  const Json& from = band["need"];
  const auto reach = read_reach(from);
  if (!reach || !from.contains("workspaces") || !from["workspaces"].is_number())
    return std::nullopt;
  const double workspaces = from["workspaces"].as_double();
  if (!(workspaces >= 0 && workspaces < kLargestShare)) return std::nullopt;
  return NeedReach{*reach, workspaces};
}

}  // namespace

double Reach::at(Bytes forecast) const {
  const auto peak = static_cast<double>(std::max(forecast, Bytes(1)).count());
  const double reach = share * peak + static_cast<double>(fixed.count());
  return std::max(reach, static_cast<double>(least.count())) / peak;
}

Band MemoryErrorCase::band_at(Bytes peak) const {
  return {std::min(1.0, below.at(peak)), above.at(peak)};
}

double MemoryErrorCase::need_above(Bytes peak, double workspace_share) const {
  return need.reach.at(peak) + need.workspaces * workspace_share;
}

Result<std::vector<MemoryErrorCase>> parse_memory_cases(const std::string& text,
                                                        const std::string& name) {
  const Json root = json::parse(text).value_or(Json());
  const auto damaged = [&](const char* what) {
    return fail(ErrorCode::kBadInput, std::string(what) + "; install stoker's data again", name);
  };
  if (!root.is_object() || !root.contains("bands") || !root["bands"].is_array())
    return damaged("is damaged");
  if (!root.contains("schema_version") || root["schema_version"] != kMemorySchema)
    return damaged("is of another version of stoker");
  std::vector<MemoryErrorCase> cases;
  for (const Json& from : root["bands"]) {
    const auto text_of = [&](const char* key) {
      return from.is_object() && from.contains(key) && from[key].is_string() ? from[key].as_string()
                                                                             : std::string();
    };
    const std::string kind = text_of("case");
    const auto below = kind.empty() ? std::nullopt : read_reach(from["below"]);
    const auto above = kind.empty() ? std::nullopt : read_reach(from["above"]);
    const auto need = above ? read_need(from, *above) : std::nullopt;
    const bool counted = !kind.empty() && from.contains("rows") && from["rows"].is_integer();
    if (!below || !need || !counted)
      return damaged("has a band without name or with impossible numbers");
    cases.push_back({kind, *below, *above, from["rows"].as_integer(), text_of("basis"), *need});
  }
  return cases;
}

MemoryErrorCase Knowledge::memory_case(const std::string& name) const {
  for (const std::string& wanted : {name, std::string("default")}) {
    const auto it =
        std::find_if(memory.begin(), memory.end(), [&](const auto& c) { return c.name == wanted; });
    if (it != memory.end()) return *it;
  }
  return {"prior",
          kPriorBelow,
          kPriorAbove,
          0,
          "no measured rows of this kind",
          NeedReach{kPriorAbove, 0}};
}

Result<Knowledge> load_knowledge() {
  const auto data = TRY(data_folder());
  auto timing = TRY(CoefficientFile::load_shipped());
  auto loader = TRY(read_loader_profile(data / "coefficients" / "input.json"));
  Knowledge knowledge{std::move(timing), std::move(loader), {}};
  const auto memory_file = data / "coefficients" / "memory.json";
  const auto text = TRY(read_file(memory_file, kMaxCoefficientFile));
  auto memory = TRY(parse_memory_cases(text, memory_file.string()));
  knowledge.memory = std::move(memory);
  return knowledge;
}

}  // namespace stoker
