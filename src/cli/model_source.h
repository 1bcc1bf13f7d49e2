#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "program/job.h"
#include "step/step.h"

namespace stoker::cli {

/// Where the step is to run: PyTorch dispatches other operators on a CPU.
enum class ModelDevice : std::uint8_t { kGpu, kCpu };

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
/// unless none remains. The zoo is of GPUs: for a CPU its models are captured on the fly, too.
[[nodiscard]] Result<LoadedModel> load_model(const std::string& model,
                                             const std::vector<Precision>& wanted,
                                             ModelDevice device = ModelDevice::kGpu);

/// What `stoker capture` and the measuring of training steps call a model: of a zoo model the spec that
/// it was captured from, else as it was typed.
[[nodiscard]] Result<std::string> spec_of(const std::string& model);

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
