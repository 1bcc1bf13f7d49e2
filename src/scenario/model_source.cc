#include "scenario/model_source.h"

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "base/text.h"
#include "step/step_reader.h"

namespace stoker {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kStepSuffix = ".step.gz";

bool names_a_step_file(const std::string& model) {
  std::error_code ignored;
  return model.ends_with(kStepSuffix) || model.ends_with(".gz") || model.ends_with(".json") ||
         (model.find('/') != std::string::npos && model.find(':') == std::string::npos) ||
         fs::is_regular_file(model, ignored);
}

Result<std::shared_ptr<const Step>> read_shared(const fs::path& path) {
  auto step = TRY(read_step_file(path));
  return std::make_shared<const Step>(std::move(step));
}

Precision precision_of(const Step& step) {
  return parse_precision(step.precision).value_or(Precision::kFp32);
}

Result<LoadedModel> from_file(const std::string& path, const std::vector<Precision>& wanted) {
  auto step = TRY(read_shared(path));
  LoadedModel model{step->name, {}};
  for (const Precision p : wanted) {
    if (capture_precision(p) == step->precision) model.variants.push_back({p, step});
  }
  if (model.variants.empty()) model.variants.push_back({precision_of(*step), step});
  return model;
}

Result<LoadedModel> from_zoo(const std::string& name, const std::vector<Precision>& wanted) {
  LoadedModel model{name, {}};
  std::shared_ptr<const Step> last;
  for (const Precision p : wanted) {
    if (!last || last->precision != capture_precision(p)) {
      const auto path = TRY(zoo_path(name, capture_precision(p)));
      if (!fs::exists(path)) continue;
      auto step = TRY(read_shared(path));
      last = step;
    }
    model.variants.push_back({p, last});
  }
  if (model.variants.empty()) {
    return fail(ErrorCode::kNotFound,
                "the zoo holds " + name +
                    " in fp32, amp-fp16 and amp-bf16 only; capture it yourself: stoker capture");
  }
  return model;
}

/// A name for what the capture depends on: the spec, the precision, and the time of the last change
/// of a .py file.
std::string cache_key(const std::string& spec, std::string_view precision) {
  std::string text = spec + "|" + std::string(precision);
  const fs::path file = spec.substr(0, spec.rfind(':'));
  std::error_code error;
  if (file.extension() == ".py") {
    text += "|" + fs::absolute(file, error).string() + "|" +
            std::to_string(fs::last_write_time(file, error).time_since_epoch().count());
  }
  std::string name;
  for (const char c : spec.substr(spec.rfind(':') + 1))
    name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name + "-" + std::string(precision) + "-" + std::to_string(fnv1a(text));
}

/// Where the capture of a spec is remembered.
fs::path remembered_step(const std::string& spec, Precision precision, ModelDevice device) {
  return cache_folder() / "steps" /
         (cache_key(spec, capture_precision(precision)) +
          (device == ModelDevice::kCpu ? "-cpu" : "") + std::string(kStepSuffix));
}

Result<LoadedModel> from_spec(const std::string& spec, const std::vector<Precision>& wanted,
                              ModelDevice device, const ScenarioTools& tools) {
  LoadedModel model{spec.substr(spec.rfind(':') + 1), {}};
  const fs::path folder = cache_folder() / "steps";
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    return fail(ErrorCode::kIo, "cannot be made: " + error.message() + "; set XDG_CACHE_HOME",
                folder.string());
  std::shared_ptr<const Step> last;
  for (const Precision p : wanted) {
    if (!last || last->precision != capture_precision(p)) {
      const fs::path path = remembered_step(spec, p, device);
      if (!fs::exists(path))
        TRY(tools.capture({.spec = spec, .precision = p, .device = device, .into = path}));
      auto step = TRY(read_shared(path));
      last = step;
    }
    model.variants.push_back({p, last});
  }
  return model;
}

/// The zoo's own spelling of a name; empty when it holds none such.
std::string zoo_spelling(const std::string& model, const std::vector<std::string>& names) {
  const auto known = std::find_if(names.begin(), names.end(), [&](const std::string& n) {
    return simplified(n) == simplified(model);
  });
  return known == names.end() ? std::string() : *known;
}

}  // namespace

std::vector<LoadedModel::Variant> variants_at_hand(const std::string& model,
                                                   const std::vector<Precision>& wanted) {
  std::vector<LoadedModel::Variant> found;
  const auto names = zoo_names();
  const std::string in_zoo = names ? zoo_spelling(model, *names) : std::string();
  if (in_zoo.empty() && (names_a_step_file(model) || model.find(':') == std::string::npos))
    return found;
  for (const Precision p : wanted) {
    const auto zoo = zoo_path(in_zoo, capture_precision(p));
    const fs::path path =
        in_zoo.empty() ? remembered_step(model, p, ModelDevice::kGpu) : fs::path(zoo.value_or(""));
    std::error_code ignored;
    if (!fs::is_regular_file(path, ignored)) continue;
    if (auto step = read_shared(path)) found.push_back({p, *step});
  }
  return found;
}

Result<std::vector<std::string>> zoo_names() {
  const auto data = TRY(data_folder());
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(data / "zoo", error)) {
    const std::string file = entry.path().filename().string();
    if (file.ends_with(kStepSuffix)) names.push_back(file.substr(0, file.find('.')));
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

Result<std::string> zoo_path(const std::string& name, std::string_view precision) {
  const auto data = TRY(data_folder());
  return (data / "zoo" / (name + "." + std::string(precision) + std::string(kStepSuffix))).string();
}

Result<std::string> spec_of(const std::string& model, const fs::path& python_package) {
  const auto names = TRY(zoo_names());
  const std::string known = zoo_spelling(model, names);
  if (known.empty()) return model;
  const auto path = TRY(zoo_path(known, "fp32"));
  const auto step = TRY(read_step_file(path));
  const std::string& spec = step.provenance.spec;
  if (spec.find(".py:") == std::string::npos) return spec;
  // The zoo's own models lie in the package.
  return (python_package / fs::path(spec).filename()).string();
}

Result<LoadedModel> load_model(const std::string& model, const std::vector<Precision>& wanted,
                               ModelDevice device, const ScenarioTools& tools) {
  const auto names = TRY(zoo_names());
  if (const std::string known = zoo_spelling(model, names); !known.empty()) {
    if (device == ModelDevice::kGpu) return from_zoo(known, wanted);
    const auto spec = TRY(spec_of(known, tools.python_package));
    auto loaded = from_spec(spec, wanted, device, tools);
    if (loaded) loaded->name = known;
    return loaded;
  }
  if (names_a_step_file(model)) return from_file(model, wanted);
  if (model.find(':') != std::string::npos) return from_spec(model, wanted, device, tools);
  return fail(ErrorCode::kNotFound, "unknown model \"" + model + "\"" + suggestion(model, names) +
                                        " (`stoker models` lists the zoo; torchvision:NAME, "
                                        "timm:NAME, FILE.py:FUNCTION or a step file work too)");
}

}  // namespace stoker
