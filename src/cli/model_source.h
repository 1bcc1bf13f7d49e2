#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "lower/job.h"
#include "step/step.h"

namespace stoker::cli {

/// A model in the precisions that were asked for.
struct LoadedModel {
  std::string name;
  struct Variant {
    Precision precision;
    std::shared_ptr<const Step> step;
  };
  std::vector<Variant> variants;
};

/// Finds what MODEL means: a step file (one precision), a zoo name, or a spec for `stoker capture`
/// (torchvision:NAME, timm:NAME, FILE.py:FUNCTION) that is captured on the fly and cached.
/// `wanted`: precisions in order of preference; those that a step file does not hold are left out,
/// unless none remains.
[[nodiscard]] Result<LoadedModel> load_model(const std::string& model,
                                             const std::vector<Precision>& wanted);

/// The model in those of `wanted` that are captured already: in the zoo, or remembered from an
/// earlier call. Empty for a step file. Captures nothing.
[[nodiscard]] std::vector<LoadedModel::Variant> variants_at_hand(
    const std::string& model, const std::vector<Precision>& wanted);

/// Names of the zoo, sorted.
[[nodiscard]] Result<std::vector<std::string>> zoo_names();
/// Path of a zoo model's step file; it need not exist.
[[nodiscard]] Result<std::string> zoo_path(const std::string& name, std::string_view precision);

/// Runs `python -m stoker capture` with these arguments, output on the terminal. The exit code.
[[nodiscard]] Result<int> run_capture(const std::vector<std::string>& arguments);

}  // namespace stoker::cli
