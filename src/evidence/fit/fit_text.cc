#include <fmt/core.h>

#include <cmath>

#include "evidence/fit/fit.h"
#include "json/value.h"

namespace stoker {
namespace {

using Json = json::Value;

double rounded(double value, double digits) {
  const double scale = std::pow(10, digits);
  return std::round(value * scale) / scale;
}

Json json_of(const GpuFit& fit, const FitError& e) {
  return {{"measure", "fit/" + (e.group.empty() ? "all" : e.group)},
          {"gpu", fit.gpu},
          {"split", "cross-validated by shape and model"},
          {"rows", e.rows},
          {"mape_before", rounded(e.mean_before, 2)},
          {"mdape_before", rounded(e.median_before, 2)},
          {"mape", rounded(e.mean_after, 2)},
          {"mdape", rounded(e.median_after, 2)},
          {"used", e.kept}};
}

std::string line_of(const FitError& e, const std::string& name) {
  return fmt::format("  {:<14}{:>5} rows   {:6.1f} / {:<6.1f} -> {:6.1f} / {:<6.1f}{}\n", name,
                     e.rows, e.mean_before, e.median_before, e.mean_after, e.median_after,
                     e.kept ? "" : "  no better: not used");
}

}  // namespace

std::string fit_json(const FitResult& result, const std::string& source) {
  Json root;
  root["format"] = "stoker-timing-coefficients";
  root["schema_version"] = {1, 0};
  root["provenance"] = {{"rows", source}, {"made_by", "stoker fit"}};
  root["measured_error"] = Json::array();
  root["gpus"] = Json::object();
  for (const GpuFit& fit : result.gpus) {
    for (const FitError& e : fit.groups) root["measured_error"].push_back(json_of(fit, e));
    if (fit.patch.values.empty()) continue;
    root["measured_error"].push_back(json_of(fit, fit.all));
    Json& gpu = root["gpus"][fit.gpu];
    gpu["basis"] = fit.patch.basis;
    for (const auto& [name, value] : fit.patch.values) {
      const auto dot = name.find('.');
      const std::string group = name.substr(0, dot), key = name.substr(dot + 1);
      (group == "spread" ? gpu[group] : gpu["classes"][group])[key] = rounded(value, 6);
    }
  }
  return root.dump(1) + "\n";
}

std::string fit_text(const FitResult& result) {
  std::string text =
      "Error in percent, mean / median, as shipped -> fitted, each row by a fit that saw neither "
      "its "
      "shape nor its model\n";
  for (const GpuFit& fit : result.gpus) {
    text += fit.gpu + "\n";
    for (const FitError& e : fit.groups) text += line_of(e, e.group);
    if (!fit.patch.values.empty() && fit.groups.size() > 1) text += line_of(fit.all, "all used");
  }
  return text;
}

}  // namespace stoker
