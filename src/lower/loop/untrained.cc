#include "lower/loop/untrained.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

namespace stoker {
namespace {

constexpr std::size_t kMostModules = 6;

bool within(std::string_view name, std::string_view module) {
  return name == module ||
         (name.substr(0, module.size()) == module && name.substr(module.size(), 1) == ".");
}

/// The outermost module around `name` that has no trained parameter, or the name itself.
std::string outermost(const std::string& name, const std::vector<std::string>& trained) {
  for (std::size_t end = name.find('.'); end != std::string::npos; end = name.find('.', end + 1)) {
    const std::string module = name.substr(0, end);
    const bool untouched = std::none_of(trained.begin(), trained.end(),
                                        [&](const auto& t) { return within(t, module); });
    if (untouched) return module;
  }
  return name;
}

/// "40 %": never rounded to none or to all.
std::string share_words(double share) {
  const auto rounded = static_cast<int>(std::lround(100 * share));
  if (rounded == 100 && share < 1) return "over 99 %";
  return rounded == 0 ? "under 1 %" : std::to_string(rounded) + " %";
}

double elements(const Step& step, const Parameter& parameter) {
  double product = 1;
  for (const Polynomial& side : step.types[static_cast<std::size_t>(parameter.type)].shape)
    product *= static_cast<double>(side.evaluate({}).value_or(0));
  return product;
}

}  // namespace

std::string untrained_words(const Step& step) {
  if (step.mode != "train" || !step.optimizer.in_backward.empty()) return {};
  std::vector<std::string> trained, modules;
  std::vector<const Parameter*> missing;
  double weights = 0, missing_weights = 0;
  for (const Parameter& p : step.parameters) {
    if (!p.requires_grad) continue;
    const double here = elements(step, p);
    weights += here;
    if (p.gradient >= 0) {
      trained.push_back(p.name);
    } else {
      missing.push_back(&p);
      missing_weights += here;
    }
  }
  if (missing.empty() || weights <= 0) return {};
  for (const Parameter* p : missing) {
    std::string module = outermost(p->name, trained);
    if (std::find(modules.begin(), modules.end(), module) == modules.end())
      modules.push_back(std::move(module));
  }
  std::string text = std::to_string(missing.size()) + " of " +
                     std::to_string(missing.size() + trained.size()) +
                     " parameters that require a gradient get none (" +
                     share_words(missing_weights / weights) + " of the weights): ";
  for (std::size_t i = 0; i < std::min(modules.size(), kMostModules); ++i)
    text += (i > 0 ? ", " : "") + modules[i];
  if (modules.size() > kMostModules)
    text += " and " + std::to_string(modules.size() - kMostModules) + " more";
  text += "; memory and time are those of a step that does not train them";
  // A random choice of layers trains others in another step.
  if (!step.reads.empty()) text += "; a value that the model reads, see Assumed, may decide which";
  return text;
}

}  // namespace stoker
