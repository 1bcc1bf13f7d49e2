#include "timing/step/coefficient_file.h"

#include <algorithm>
#include <cmath>

#include "base/files.h"
#include "base/text.h"
#include "json/fields.h"
#include "json/text.h"
#include "timing/cpu/cpu_model.h"
#include "timing/learned/calibration.h"
#include "timing/learned/residual.h"

namespace stoker {
namespace {

using Json = json::Value;

constexpr Bytes kLargestFile = 4 * kMiB;
constexpr const char* kCure = "install stoker anew";
constexpr json::Format kFormat{"stoker-timing-coefficients", 1, "time coefficient format", kCure,
                               "this is not a file of time coefficients"};

/// Nested objects of numbers become dotted names; "classes" only groups and leaves no trace. Texts
/// other than `basis` are remarks for people.
Status flatten(const Json& node, const std::string& prefix, const std::string& where,
               CoefficientPatch& patch) {
  for (const auto& [key, value] : node.items()) {
    const std::string name = prefix.empty() ? key : prefix + "." + key;
    if (value.is_object()) {
      if (auto s = flatten(value, prefix.empty() && key == "classes" ? "" : name, where, patch);
          !s) {
        return s;
      }
    } else if (value.is_number()) {
      patch.values.emplace_back(name, value.as_double());
    } else if (value.is_string()) {
      if (name == "basis") patch.basis = value.as_string();
    } else {
      return fail(ErrorCode::kBadInput, "\"" + name + "\" must be a number, a text or an object",
                  where);
    }
  }
  return {};
}

Result<CoefficientPatch> patch_from(const Json& node, const std::string& where) {
  if (!node.is_object()) return fail(ErrorCode::kBadInput, "must be an object", where);
  CoefficientPatch patch;
  TRY(flatten(node, "", where, patch));
  Coefficients trial;
  if (auto s = apply(patch, trial); !s) {
    return fail(s.error().code, s.error().text(), where);
  }
  return patch;
}

constexpr double kMebi = 1 << 20;

/// A half-width for all sizes, or [[up to MiB, half-width], ...] in rising order of size.
std::vector<FabricFit::Spread> spreads_from(const Json& node) {
  if (node.is_number() && node.as_double() >= 0) return {{HUGE_VAL, node.as_double()}};
  if (!node.is_array()) return {};
  std::vector<FabricFit::Spread> spreads;
  for (const Json& entry : node) {
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_number() || !entry[1].is_number())
      return {};
    const double bytes = entry[0].as_double() * kMebi;
    if (!(bytes > (spreads.empty() ? 0 : spreads.back().bytes)) || !(entry[1].as_double() >= 0))
      return {};
    spreads.push_back({bytes, entry[1].as_double()});
  }
  return spreads;
}

/// [[MiB, microseconds], ...] in rising order of size.
std::vector<FabricFit::Point> curve_from(const Json& node) {
  std::vector<FabricFit::Point> curve;
  if (!node.is_array() || node.size() < 2) return {};
  for (const Json& point : node) {
    if (!point.is_array() || point.size() != 2 || !point[0].is_number() || !point[1].is_number())
      return {};
    const double bytes = point[0].as_double() * kMebi;
    const double us = point[1].as_double();
    if (!(bytes > (curve.empty() ? 0 : curve.back().bytes)) || !(us > 0)) return {};
    curve.push_back({bytes, Micros(us)});
  }
  // Beyond the last size its piece goes on, so it must rise.
  return curve.back().time > curve[curve.size() - 2].time ? curve : std::vector<FabricFit::Point>{};
}

Result<std::vector<FabricFit>> fits_from(const Json& node, const std::string& where) {
  std::vector<FabricFit> fits;
  if (!node.is_array()) return fail(ErrorCode::kBadInput, "\"all_reduce\" must be a list", where);
  for (const Json& entry : node) {
    const std::string here = where + ": all_reduce[" + std::to_string(fits.size()) + "]";
    FabricFit fit;
    if (!entry.is_object() || !entry.contains("fabric") || !entry["fabric"].is_string()) {
      return fail(ErrorCode::kBadInput, "needs a \"fabric\"", here);
    }
    fit.fabric = entry["fabric"].as_string();
    const auto number = [&](const char* key) {
      return entry.contains(key) && entry[key].is_number() ? entry[key].as_double() : -1.0;
    };
    const double ranks = number("ranks");
    fit.spreads = spreads_from(entry["spread"]);
    fit.curve = curve_from(entry["curve"]);
    if (!(ranks >= 2 && ranks <= 1e6) || fit.curve.empty() || fit.spreads.empty()) {
      return fail(ErrorCode::kBadInput,
                  "needs \"ranks\" of at least 2, \"spread\", and a \"curve\" of [MiB, us] with "
                  "rising sizes",
                  here);
    }
    fit.ranks = static_cast<int>(ranks);
    fits.push_back(std::move(fit));
  }
  return fits;
}

using NamedPatches = std::vector<std::pair<std::string, CoefficientPatch>>;

Result<NamedPatches> named_patches(const Json& root, const char* section,
                                   const std::string& where) {
  NamedPatches patches;
  if (!root.contains(section)) return patches;
  if (!root[section].is_object()) {
    return fail(ErrorCode::kBadInput, "\"" + std::string(section) + "\" must be an object", where);
  }
  for (const auto& [name, node] : root[section].items()) {
    auto patch = TRY(patch_from(node, where + ": " + section + "." + name));
    patches.emplace_back(name, std::move(patch));
  }
  return patches;
}

Status overlay(const NamedPatches& patches, std::string_view name, CoefficientLevel level,
               Coefficients& out) {
  for (const auto& [key, patch] : patches) {
    if (simplified(key) != simplified(name)) continue;
    out.level = level;
    if (!patch.basis.empty()) out.basis = patch.basis;
    if (auto s = apply(patch, out); !s) return s;
  }
  return {};
}

}  // namespace

Status CoefficientFile::add(std::string_view text, const std::string& where) {
  auto parsed = json::parse(text);
  if (!parsed) {
    return fail(ErrorCode::kBadInput, "not valid JSON: cut short or damaged; install stoker anew",
                where);
  }
  Json& root = *parsed;
  TRY(json::Fields(where, kCure).check_format(root, kFormat));
  root.sort_keys();  // a figure does not depend on the order of a file
  if (root.contains("base")) {
    auto patch = patch_from(root["base"], where + ": base");
    if (!patch) return tl::unexpected(patch.error());
    if (auto s = apply(*patch, base_); !s) return s;
    base_.level = CoefficientLevel::kBase;
    if (!patch->basis.empty()) base_.basis = patch->basis;
  }
  if (root.contains("all_reduce")) {
    auto fits = TRY(fits_from(root["all_reduce"], where));
    // Among equally near rows the first is taken: those of a later file.
    std::vector<FabricFit>& known = base_.collective.fits;
    known.insert(known.begin(), std::make_move_iterator(fits.begin()),
                 std::make_move_iterator(fits.end()));
  }
  if (const Json* named = root.find("residual"); named != nullptr) {
    if (!named->is_string() || named->as_string().find('/') != std::string::npos)
      return fail(ErrorCode::kBadInput, "\"residual\" must name a file of the same folder", where);
    residual_file_ = named->as_string();
  }
  struct Section {
    const char* name;
    NamedPatches* target;
  };
  for (const Section& section : {Section{"architectures", &architectures_},
                                 Section{"chips", &chips_}, Section{"gpus", &gpus_}}) {
    auto patches = TRY(named_patches(root, section.name, where));
    std::move(patches.begin(), patches.end(), std::back_inserter(*section.target));
  }
  return {};
}

Result<CoefficientFile> CoefficientFile::parse(std::string_view text, const std::string& where) {
  CoefficientFile file;
  TRY(file.add(text, where));
  return file;
}

Result<CoefficientFile> CoefficientFile::load(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  std::vector<fs::path> parts{path};
  std::error_code error;
  if (fs::is_directory(path, error)) {
    parts.clear();
    for (const auto& entry : fs::directory_iterator(path, error)) {
      if (entry.path().extension() == ".json") parts.push_back(entry.path());
    }
    std::sort(parts.begin(), parts.end());
    if (parts.empty()) {
      return fail(ErrorCode::kNotFound, "there are no time coefficients; install stoker anew",
                  path.string());
    }
  }
  CoefficientFile file;
  for (const fs::path& part : parts) {
    const auto text = TRY(read_file(part, kLargestFile));
    TRY(file.add(text, part.string()));
  }
  if (!file.residual_file_.empty()) {
    // Damaged trees are no reason to refuse a forecast: the rules alone serve, and it is said.
    auto residual = Residual::load(parts.front().parent_path() / file.residual_file_);
    if (residual) file.base_.residual = std::move(*residual);
    else file.base_.residual_problem = residual.error().text();
  }
  return file;
}

Status CoefficientFile::lay_over(const std::filesystem::path& path) {
  const auto text = TRY(read_file(path, kLargestFile));
  return add(text, path.string());
}

Result<CoefficientFile> CoefficientFile::load_shipped() {
  auto folder = TRY(data_folder());
  return load(folder / "coefficients" / "timing");
}

Result<Coefficients> CoefficientFile::for_device(const Device& device,
                                                 const CoefficientPatch* calibration) const {
  return device.visit([&](const Gpu& gpu) { return for_gpu(gpu, calibration); },
                      [&](const Cpu& cpu) { return for_cpu(cpu); });
}

Result<Coefficients> CoefficientFile::for_cpu(const Cpu& cpu) const {
  Coefficients out = base_;
  out.cpu = TRY(CpuModel::make(cpu));
  out.level = out.cpu->rows() > 0 ? CoefficientLevel::kCalibrated : CoefficientLevel::kPrior;
  out.basis = out.cpu->rows() > 0 ? "operators measured on this CPU" : "rules by the data sheet";
  return out;
}

Result<Coefficients> CoefficientFile::for_gpu(const Gpu& gpu,
                                              const CoefficientPatch* calibration) const {
  Coefficients out = base_;
  struct Layer {
    const NamedPatches& patches;
    std::string_view name;
    CoefficientLevel level;
  };
  for (const Layer& layer :
       {Layer{architectures_, architecture_name(gpu.architecture), CoefficientLevel::kArchitecture},
        Layer{chips_, gpu.chip, CoefficientLevel::kChip},
        Layer{gpus_, gpu.name, CoefficientLevel::kGpu}}) {
    if (layer.name.empty()) continue;
    TRY(overlay(layer.patches, layer.name, layer.level, out));
  }
  CoefficientPatch measured;
  if (calibration == nullptr && gpu.calibration != nullptr) {
    auto patch = TRY(calibrate(*gpu.calibration, gpu, out));
    measured = std::move(patch);
    calibration = &measured;
  }
  if (calibration != nullptr) {
    TRY(apply(*calibration, out));
    out.level = CoefficientLevel::kCalibrated;
    out.basis = calibration->basis.empty() ? "calibrated on this GPU" : calibration->basis;
  }
  return out;
}

}  // namespace stoker
