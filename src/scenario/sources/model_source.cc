#include "scenario/sources/model_source.h"

#include <algorithm>
#include <cctype>
#include <ctime>
#include <filesystem>
#include <utility>

#include "base/files.h"
#include "base/setting.h"
#include "base/text.h"
#include "rewrite/evaluation.h"
#include "scenario/sources/library_names.h"
#include "scenario/sources/remembered_captures.h"
#include "scenario/sources/zoo_aliases.h"
#include "step/step_reader.h"

namespace stoker {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kStepSuffix = ".step.gz";

constexpr std::string_view kHub = "hf:";

/// A folder or a config.json as transformers saves them, or ORG/NAME where no such file is: a model
/// of the hub whose prefix was left out.
bool names_a_hub_model(const std::string& model) {
  std::error_code ignored;
  if (model.starts_with(kHub)) return true;
  if (fs::is_regular_file(fs::path(model) / "config.json", ignored)) return true;
  if (fs::path(model).filename() == "config.json") return fs::is_regular_file(model, ignored);
  if (fs::exists(model, ignored) || std::count(model.begin(), model.end(), '/') != 1) return false;
  const bool plain = std::all_of(model.begin(), model.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '/' || c == '.' || c == '-' || c == '_';
  });
  return plain && std::isalnum(static_cast<unsigned char>(model[0])) != 0 && model.back() != '/' &&
         !model.ends_with(".gz") && !model.ends_with(".json");
}

/// The spec of a model of the hub with its prefix; any other name as it is.
std::string with_hub(const std::string& model) {
  return names_a_hub_model(model) && !model.starts_with(kHub) ? std::string(kHub) + model : model;
}

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
    const auto cast = name_of(wanted.empty() ? Precision::kBf16 : wanted.front());
    return fail(
        ErrorCode::kNotFound,
        "the zoo holds " + name +
            " in fp32, and under autocast in amp-fp16 and amp-bf16, which most scripts mean: " +
            mark(Setting::kPrecision) + " amp-" + std::string(cast) +
            "; a model cast as a whole is captured from its source: torchvision:NAME, "
            "hf:ORG/NAME, FILE.py:FUNCTION");
  }
  return model;
}

/// The remembered capture where it is still good and was not asked for anew; else a new one.
Result<Step> capture_of(CaptureOrder order, bool again, const ScenarioTools& tools) {
  order.into = remembered_capture(order, tools.interpreter);
  if (!again) {
    if (auto step = recall_capture(order.into)) return std::move(*step);
  }
  TRY(tools.capture(order));
  auto step = TRY(read_step_file(order.into));
  step.provenance.captured_at = static_cast<std::int64_t>(std::time(nullptr));
  return step;
}

Result<LoadedModel> from_spec(const std::string& spec, const std::vector<Precision>& wanted,
                              ModelDevice device, const CaptureWishes& wishes,
                              const ScenarioTools& tools) {
  // What adapters were put on what, the capture knows.
  const bool named_by_capture = wishes.adapters.any();
  LoadedModel model{spec.substr(spec.rfind(':') + 1), {}};
  TRY(captures_folder());
  std::shared_ptr<const Step> last;
  for (const Precision p : wanted) {
    if (!last || last->precision != capture_precision(p)) {
      auto step = TRY(capture_of({.spec = spec,
                                  .precision = p,
                                  .device = device,
                                  .mode = wishes.mode,
                                  .assumptions = wishes.assumptions,
                                  .compile = wishes.compile,
                                  .adapters = wishes.adapters,
                                  .into = {}},
                                 wishes.again, tools));
      last = std::make_shared<const Step>(std::move(step));
      if (named_by_capture) model.name = last->name;
    }
    model.variants.push_back({p, last});
  }
  return model;
}

/// Captures of the zoo and step files are as they are.
Status check_wishes(const CaptureWishes& wishes, const std::string& model) {
  if (wishes.adapters.any()) {
    return fail(ErrorCode::kUsage,
                model + " is captured already; give the model that it was captured from",
                mark(Setting::kLora));
  }
  if (!wishes.again && wishes.assumptions.empty()) return {};
  return fail(ErrorCode::kUsage,
              model + " is captured already; give torchvision:NAME, timm:NAME, hf:ORG/NAME or " +
                  "FILE.py:FUNCTION, or write the step file again with `stoker capture`",
              mark(wishes.again ? Setting::kRecapture : Setting::kAssume));
}

/// What a compiled step keeps and computes again is known from its capture alone.
Status check_compiled(const CaptureWishes& wishes, const LoadedModel& model) {
  if (!wishes.compile || model.variants.front().step->compiled_graphs > 0) return {};
  return fail(ErrorCode::kUsage,
              model.name + " was captured without torch.compile; capture it with {compile}, or " +
                  "leave the flag out",
              mark(Setting::kCompile));
}

/// A training step's forward alone, with its loss; as it is where that was captured or not asked.
Result<LoadedModel> in_mode(Result<LoadedModel> loaded, const std::string& mode) {
  if (!loaded || mode.empty()) return loaded;
  for (LoadedModel::Variant& variant : loaded->variants) {
    const Step& step = *variant.step;
    if (step.mode == mode) continue;
    if (step.mode != "train") {
      return fail(
          ErrorCode::kUsage,
          loaded->name + " was captured for " + step.mode + "; capture it with --mode " + mode,
          mark(Setting::kMode));
    }
    Step forward = evaluation_step(step, mode == "inference");
    forward.mode = mode;
    variant.step = std::make_shared<const Step>(std::move(forward));
  }
  return loaded;
}

/// "ResNet-50" -> "resnet".
std::string leading_letters(std::string_view name) {
  const std::string plain = simplified(name);
  const auto digit = std::find_if(plain.begin(), plain.end(), [](char c) { return c < 'a'; });
  return {plain.begin(), digit};
}

/// "efficientnet-b4" -> "efficientnetb".
std::string letters_of(std::string_view name) {
  std::string letters = simplified(name);
  std::erase_if(letters, [](char c) { return c < 'a'; });
  return letters;
}

/// Models of the zoo whose family the name begins with: "bert-large" -> "bert_base".
std::string kin_in_zoo(const std::string& model, const std::vector<std::string>& names) {
  constexpr std::size_t kShortestFamily = 3;
  std::string list;
  for (const std::string& name : names) {
    const std::string family = leading_letters(name.substr(0, name.find_first_of("_-")));
    if (family.size() < kShortestFamily || !leading_letters(model).starts_with(family)) continue;
    list += (list.empty() ? "" : ", ") + name;
  }
  return list;
}

/// Whether `near` is most likely what was meant: "resnet51", not another size of its family.
bool is_slip(const std::string& model, const std::string& near) {
  return leading_letters(model) == leading_letters(near) &&
         simplified(model).size() == simplified(near).size();
}

/// "; by its config.json: hf:google/gemma-2b (...)" of the hub, "; with that library installed:
/// ..." of a library; empty: the family is not known.
std::string library_offer(const std::string& model) {
  const std::string spec = library_name(model);
  if (spec.empty()) return {};
  if (!spec.starts_with(kHub)) return "; with that library installed: " + spec;
  return "; by its config.json: " + spec +
         " (from Stoker's list of well-known ones, the hub's cache here, or a network)";
}

/// What files of other programs hold, by their endings; empty: it is none of them.
std::string_view of_other_programs(const std::string& model) {
  struct Kind {
    std::string_view ending, holds;
  };
  constexpr Kind kKinds[] = {{".onnx", "a graph for inference"},
                             {".tflite", "a graph for inference"},
                             {".engine", "a graph for inference"},
                             {".pb", "a graph of TensorFlow"},
                             {".h5", "a model of Keras"},
                             {".keras", "a model of Keras"},
                             {".pt", "weights"},
                             {".pth", "weights"},
                             {".ckpt", "weights"},
                             {".bin", "weights"},
                             {".safetensors", "weights"},
                             {".gguf", "weights for inference"},
                             {".mar", "an archive of TorchServe"}};
  for (const Kind& kind : kKinds) {
    if (model.ends_with(kind.ending)) return kind.holds;
  }
  return {};
}

/// What to do about a name that stands for no model: the nearest, or its kin, and other sources.
std::string unknown_model(const std::string& model, const std::vector<std::string>& names) {
  std::string kin = kin_in_zoo(model, names);
  if (kin.empty()) kin = zoo_relative(model, names);
  const std::string script = model + ".py";
  std::error_code ignored;
  if (fs::is_regular_file(script, ignored))
    return "unknown model \"" + model + "\"; did you mean the script " + script + "?";
  const std::string near = nearest_name(model, names);
  const bool slip = is_slip(model, near);
  const bool other_size = !kin.empty() && !slip;
  // Another number may be another network of the family; a wrong letter is none.
  std::string offer = slip && letters_of(model) != letters_of(near) ? "" : library_offer(model);
  if (slip && !offer.empty()) offer = " or" + offer.substr(1);
  return "unknown model \"" + model + "\"" +
         (other_size              ? "; of its kind the zoo holds " + kin
          : slip || offer.empty() ? suggestion(model, names)
                                  : std::string()) +
         offer +
         (offer.empty() ? " (`stoker models` lists the zoo; torchvision:NAME, timm:NAME, "
                          "hf:ORG/NAME, FILE.py:FUNCTION or a step file work too)"
                        : "; `stoker models` lists the zoo, FILE.py:FUNCTION is your own");
}

/// The zoo's own spelling of a name; empty when it holds none such.
std::string zoo_spelling(const std::string& model, const std::vector<std::string>& names) {
  const auto known = std::find_if(names.begin(), names.end(), [&](const std::string& n) {
    return simplified(n) == simplified(model);
  });
  return known == names.end() ? zoo_alias(model, names) : *known;
}

}  // namespace

std::vector<LoadedModel::Variant> variants_at_hand(const std::string& named,
                                                   const std::vector<Precision>& wanted,
                                                   const CaptureWishes& wishes,
                                                   const ScenarioTools& tools) {
  std::vector<LoadedModel::Variant> found;
  const std::string model = with_hub(named);
  const auto names = zoo_names();
  // The zoo's captures are eager, and adapters are put on when a model is captured.
  const std::string in_zoo =
      names && !wishes.adapters.any() ? zoo_spelling(model, *names) : std::string();
  if (wishes.compile && !in_zoo.empty()) return found;
  if (in_zoo.empty() && (names_a_step_file(model) || model.find(':') == std::string::npos))
    return found;
  for (const Precision p : wanted) {
    if (in_zoo.empty()) {
      const CaptureOrder order{.spec = model,
                               .precision = p,
                               .mode = wishes.mode,
                               .assumptions = wishes.assumptions,
                               .compile = wishes.compile,
                               .adapters = wishes.adapters,
                               .into = {}};
      if (auto step = recall_capture(remembered_capture(order, tools.interpreter)))
        found.push_back({p, std::make_shared<const Step>(std::move(*step))});
      continue;
    }
    const auto path = zoo_path(in_zoo, capture_precision(p));
    std::error_code ignored;
    if (!path || !fs::is_regular_file(*path, ignored)) continue;
    if (auto step = read_shared(*path)) found.push_back({p, *step});
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
                               ModelDevice device, const CaptureWishes& wishes,
                               const ScenarioTools& tools) {
  const auto names = TRY(zoo_names());
  if (const std::string known = zoo_spelling(model, names); !known.empty()) {
    if (device == ModelDevice::kGpu && !wishes.compile && !wishes.adapters.any()) {
      TRY(check_wishes(wishes, known));
      return in_mode(from_zoo(known, wanted), wishes.mode);
    }
    const auto spec = TRY(spec_of(known, tools.python_package));
    auto loaded = from_spec(spec, wanted, device, wishes, tools);
    if (loaded && !wishes.adapters.any()) loaded->name = known;
    return loaded;
  }
  if (names_a_hub_model(model)) return from_spec(with_hub(model), wanted, device, wishes, tools);
  if (model.ends_with(".ipynb"))
    return fail(ErrorCode::kUnsupported,
                "is a notebook; write it as a script, `jupyter nbconvert --to script " + model +
                    "`, and give that",
                model);
  if (const std::string_view holds = of_other_programs(model); !holds.empty())
    return fail(ErrorCode::kUnsupported,
                "holds " + std::string(holds) +
                    ", from which no training step can be told; give the code that builds the "
                    "network, FILE.py:FUNCTION, or the training script",
                model);
  if (names_a_step_file(model)) {
    TRY(check_wishes(wishes, model));
    const auto loaded = TRY(from_file(model, wanted));
    TRY(check_compiled(wishes, loaded));
    return in_mode(loaded, wishes.mode);
  }
  if (model.find(':') != std::string::npos) return from_spec(model, wanted, device, wishes, tools);
  return fail(ErrorCode::kNotFound, unknown_model(model, names));
}

std::vector<Precision> default_precisions(const PeakRates& peak) {
  std::vector<Precision> list{Precision::kFp32};
  if (peak.tf32_tensor > 0) list.push_back(Precision::kTf32);
  if (peak.bf16_tensor > 0) list.push_back(Precision::kAmpBf16);
  if (peak.fp16_tensor > 0) list.push_back(Precision::kAmpFp16);
  return list;
}

}  // namespace stoker
