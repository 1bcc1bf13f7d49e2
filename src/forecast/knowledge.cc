#include "forecast/knowledge.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/files.h"

namespace stoker {
namespace {

using Json = nlohmann::json;

constexpr Bytes kMaxCoefficientFile{16LL << 20};
/// Where no measured error applies. Wide on purpose.
constexpr Band kMemoryPrior{0.10, 0.15};

Result<std::vector<MemoryErrorCase>> read_memory_cases(const std::filesystem::path& path) {
  const auto text = read_file(path, kMaxCoefficientFile);
  if (!text) return tl::unexpected(text.error());
  const Json root = Json::parse(*text, nullptr, false);
  const auto damaged = [&](const char* what) {
    return fail(ErrorCode::kBadInput, std::string(what) + "; install stoker's data again",
                path.string());
  };
  if (!root.is_object() || !root.contains("bands") || !root["bands"].is_array())
    return damaged("is damaged");
  std::vector<MemoryErrorCase> cases;
  for (const Json& from : root["bands"]) {
    if (!from.is_object()) return damaged("has a band that is no object");
    MemoryErrorCase c;
    c.name = from.value("case", "");
    c.band = {from.value("below", -1.0), from.value("above", -1.0)};
    c.rows = from.value("rows", std::int64_t{0});
    c.basis = from.value("basis", "");
    if (c.name.empty() || !(c.band.below >= 0 && c.band.below < 1) ||
        !(c.band.above >= 0 && c.band.above < 10)) {
      return damaged("has a band without name or with impossible numbers");
    }
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace

Band MemoryErrorCase::band_at(Bytes /*peak*/) const { return band; }

MemoryErrorCase Knowledge::memory_case(const std::string& name) const {
  for (const std::string& wanted : {name, std::string("default")}) {
    const auto it =
        std::find_if(memory.begin(), memory.end(), [&](const auto& c) { return c.name == wanted; });
    if (it != memory.end()) return *it;
  }
  return {"prior", kMemoryPrior, 0, "no measured rows of this kind"};
}

Result<Knowledge> load_knowledge() {
  const auto data = data_folder();
  if (!data) return tl::unexpected(data.error());
  auto timing = CoefficientFile::load(*data / "coefficients" / "timing.json");
  if (!timing) return tl::unexpected(timing.error());
  auto loader = read_loader_profile(*data / "coefficients" / "input.json");
  if (!loader) return tl::unexpected(loader.error());
  Knowledge knowledge{std::move(*timing), std::move(*loader), {}};
  auto memory = read_memory_cases(*data / "coefficients" / "memory.json");
  if (!memory) return tl::unexpected(memory.error());
  knowledge.memory = std::move(*memory);
  return knowledge;
}

}  // namespace stoker
