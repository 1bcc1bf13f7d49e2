#include "accuracy/layers/layer_coefficients.h"

#include <array>

#include "accuracy/layers/layer_features.h"
#include "base/files.h"
#include "base/text.h"
#include "json/fields.h"
#include "json/text.h"
#include "timing/common/coefficients.h"

namespace stoker::accuracy {
namespace {

constexpr Bytes kLargestFile = 4 * kMiB;
constexpr const char* kCure = "fit it again (scripts/fit-timing --only layers)";
constexpr json::Format kFormat{"stoker-layer-coefficients", 1, "layer coefficient format", kCure,
                               "this is not a file of coefficients of one-layer networks"};

/// The member of a name; null for unknown ones.
double* member_of(SessionCoefficients& session, std::string_view name) {
  for (std::size_t i = 0; i < kLayerParts; ++i) {
    if (name == name_of(static_cast<LayerPart>(i))) return &session.part[i];
  }
  for (std::size_t i = 0; i < kLayerOptimizers; ++i) {
    const std::string optimizer(name_of(static_cast<LayerOptimizer>(i)));
    if (name == "convolution_us_" + optimizer) return &session.convolution_us[i];
    if (name == "dense_us_" + optimizer) return &session.dense_us[i];
  }
  if (name == "spread") return &session.spread;
  if (name == "convolution_floor_spread") return &session.convolution_floor_spread;
  return name == "dense_floor_spread" ? &session.dense_floor_spread : nullptr;
}

using Patch = std::vector<std::pair<std::string, double>>;

void overwrite(const Patch& patch, SessionCoefficients& session) {
  for (const auto& [name, value] : patch) *member_of(session, name) = value;
}

/// {"session": {"bias": 1.3, ...}}
Result<Patch> patch_from(const json::Value& node, const std::string& where) {
  const json::Value* session = node.is_object() ? node.find("session") : nullptr;
  if (session == nullptr || !session->is_object())
    return fail(ErrorCode::kBadInput, "needs a \"session\"", where);
  Patch patch;
  SessionCoefficients known;
  for (const auto& [name, value] : session->items()) {
    if (member_of(known, name) == nullptr || !value.is_number() || !(value.as_double() >= 0))
      return fail(ErrorCode::kBadInput, "\"" + name + "\" must be the number of a coefficient",
                  where);
    patch.emplace_back(name, value.as_double());
  }
  return patch;
}

Result<std::vector<std::pair<std::string, Patch>>> named_patches(const json::Value& root,
                                                                 const char* section,
                                                                 const std::string& where) {
  std::vector<std::pair<std::string, Patch>> patches;
  const json::Value* node = root.find(section);
  if (node == nullptr) return patches;
  for (const auto& [name, value] : node->items())
    patches.emplace_back(name, TRY(patch_from(value, where + ": " + section + "." + name)));
  return patches;
}

void overlay(const std::vector<std::pair<std::string, Patch>>& patches, std::string_view name,
             SessionCoefficients& session) {
  if (name.empty()) return;
  for (const auto& [key, patch] : patches) {
    if (simplified(key) == simplified(name)) overwrite(patch, session);
  }
}

}  // namespace

Result<LayerCoefficients> LayerCoefficients::parse(std::string_view text,
                                                   const std::string& where) {
  const auto root = json::parse(text);
  if (!root)
    return fail(ErrorCode::kBadInput, std::string("not valid JSON: cut short or damaged; ") + kCure,
                where);
  TRY(json::Fields(where, kCure).check_format(*root, kFormat));
  LayerCoefficients all;
  if (const json::Value* base = root->find("base"))
    overwrite(TRY(patch_from(*base, where + ": base")), all.of_all_);
  all.architectures_ = TRY(named_patches(*root, "architectures", where));
  all.gpus_ = TRY(named_patches(*root, "gpus", where));
  if (const json::Value* trees = root->find("trees")) {
    if (!trees->is_string() || trees->as_string().find('/') != std::string::npos)
      return fail(ErrorCode::kBadInput, "\"trees\" must name a file of the same folder", where);
    all.trees_file_ = trees->as_string();
  }
  return all;
}

Result<LayerCoefficients> LayerCoefficients::load(const std::filesystem::path& path) {
  std::error_code error;
  const auto file = std::filesystem::is_directory(path, error) ? path / "layers.json" : path;
  const auto text = TRY(read_file(file, kLargestFile));
  auto all = TRY(parse(text, file.string()));
  const auto trees = file.parent_path() / all.trees_file_;
  // A fit asks for columns before there are trees.
  if (all.trees_file_.empty() || !std::filesystem::exists(trees, error)) return all;
  const auto data = TRY(read_file(trees, kLargestFile));
  const std::size_t features = layer_feature_names().size();
  const std::array families{
      ForestFamily{"convolution_network", features}, ForestFamily{"dense_network", features},
      ForestFamily{"convolution_width", features}, ForestFamily{"dense_width", features}};
  all.forests_ = std::make_shared<const std::vector<Forest>>(
      TRY(read_forests(data, trees.string(), families, layer_fingerprint())));
  return all;
}

Result<LayerCoefficients> LayerCoefficients::load_fitted() {
  return load(std::string(STOKER_SOURCE_DIR) + "/bench/accuracy/layers/fitted");
}

LayerKnowledge LayerCoefficients::for_gpu(const Gpu& gpu) const {
  LayerKnowledge knowledge{of_all_, forests_};
  overlay(architectures_, architecture_name(gpu.architecture), knowledge.session);
  overlay(gpus_, gpu.name, knowledge.session);
  return knowledge;
}

LayerKnowledge LayerCoefficients::in_another_host(const Gpu& gpu) const {
  LayerKnowledge knowledge = for_gpu(gpu);
  knowledge.session.spread = of_all_.spread;
  knowledge.session.convolution_floor_spread = of_all_.convolution_floor_spread;
  knowledge.session.dense_floor_spread = of_all_.dense_floor_spread;
  return knowledge;
}

}  // namespace stoker::accuracy
