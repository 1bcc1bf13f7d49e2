#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "program/job.h"
#include "scenario/request/request.h"
#include "scenario/sources/tools.h"
#include "step/step.h"

namespace stoker {

/// A model in the precisions that were asked for.
struct LoadedModel {
  std::string name;
  struct Variant {
    Precision precision;
    std::shared_ptr<const Step> step;
  };
  std::vector<Variant> variants;
};

/// Finds what a model's name means: a step file (one precision), a zoo name, or a spec for `stoker
/// capture` (torchvision:NAME, timm:NAME, FILE.py:FUNCTION) that is captured on the fly and cached.
/// `wanted`: precisions in order of preference; those that a step file does not hold are left out,
/// unless none remains. The zoo is captured for GPUs: for a CPU its models are captured on the fly,
/// too. A remembered capture is used only while all that it was made from is as it was.
[[nodiscard]] Result<LoadedModel> load_model(const std::string& model,
                                             const std::vector<Precision>& wanted,
                                             ModelDevice device, const CaptureWishes& wishes,
                                             const ScenarioTools& tools);

/// The spec that a zoo model was captured from, as `stoker capture` and the measuring of training
/// steps take it; any other model as it was named. `python_package`: ScenarioTools::python_package.
[[nodiscard]] Result<std::string> spec_of(const std::string& model,
                                          const std::filesystem::path& python_package);

/// The model in those of `wanted` that are captured already: in the zoo, or remembered from an
/// earlier call. Empty for a step file. Captures nothing.
[[nodiscard]] std::vector<LoadedModel::Variant> variants_at_hand(
    const std::string& model, const std::vector<Precision>& wanted, const CaptureWishes& wishes,
    const ScenarioTools& tools);

/// Names of the zoo, sorted.
[[nodiscard]] Result<std::vector<std::string>> zoo_names();
/// Path of a zoo model's step file; it need not exist.
[[nodiscard]] Result<std::string> zoo_path(const std::string& name, std::string_view precision);

/// The precisions to consider on a GPU when none was named: the plainest first, since a later one
/// must be faster to be chosen.
[[nodiscard]] std::vector<Precision> default_precisions(const PeakRates& peak);

}  // namespace stoker
