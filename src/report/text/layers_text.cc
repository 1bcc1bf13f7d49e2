#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "report/model/layers_report.h"
#include "report/text/layout.h"

namespace stoker {
namespace {

using namespace layout;

constexpr std::size_t kMostLines = 24;

std::string millis_of(Nanos time) { return fmt::format("{:.3f}", milliseconds(time)); }

Nanos sum_of(const LayerGroup& group) {
  return group.alone * static_cast<double>(group.modules.size());
}

/// The lines to show, in the network's order: all, or those that add most.
std::vector<std::size_t> shown_of(const LayerSum& layers) {
  std::vector<std::size_t> order(layers.groups.size());
  std::iota(order.begin(), order.end(), 0);
  if (order.size() <= kMostLines) return order;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return sum_of(layers.groups[a]) > sum_of(layers.groups[b]);
  });
  order.resize(kMostLines);
  std::sort(order.begin(), order.end());
  return order;
}

std::string layer_table(const LayerSum& layers, const Step& step) {
  std::vector<std::vector<std::string>> rows{
      {"layer", "times", "forward", "loss", "backward", "update", "launch+wait", "alone", "all"}};
  const auto shown = shown_of(layers);
  Nanos rest = layers.sum;
  for (const std::size_t i : shown) {
    const LayerGroup& g = layers.groups[i];
    rest -= sum_of(g);
    rows.push_back({name_of(g, step), std::to_string(g.modules.size()), millis_of(g.forward),
                    millis_of(g.loss), millis_of(g.backward), millis_of(g.update),
                    millis_of(g.overhead), millis_of(g.alone), millis_of(sum_of(g))});
  }
  if (shown.size() < layers.groups.size()) {
    rows.push_back({fmt::format("{} cheaper kinds", layers.groups.size() - shown.size()), "", "",
                    "", "", "", "", "", millis_of(rest)});
  }
  return table(rows, {0});
}

std::string reason(LayerTerm term, const LayerSum& layers) {
  switch (term) {
    case LayerTerm::kBenchmarkOnly:
      return "a loss for each layer, and input gradients that the step has no use for";
    case LayerTerm::kLaunchAndWait:
      return fmt::format("launched and waited for {} times instead of once", layers.layers);
    case LayerTerm::kUpdateByLayer:
      return "the optimizer called for each layer instead of once for all";
    case LayerTerm::kHostAhead:
      return "waits at the end of a step, where a run lets the host go ahead";
    case LayerTerm::kOutsideOfLayers:
      break;
  }
  return "work of the step that is in no layer (its own loss, additions, the input's copy)";
}

}  // namespace

std::string layers_text(const LayerSum& layers, const ReportContext& context) {
  std::string text = context.model_line + "\n";
  text += "Each layer as a network of its own, waited for at the end of its step; ms\n";
  text += layer_table(layers, *context.step);
  std::vector<std::vector<std::string>> rows{
      {fmt::format("sum of {} layers", layers.layers), millis_of(layers.sum), ""}};
  for (std::size_t i = 0; i < kLayerTerms; ++i) {
    const Nanos term = layers.terms[i];
    if (millis_of(term) == "0.000" || millis_of(term) == "-0.000") continue;
    rows.push_back({term.count() > 0 ? "less" : "plus", millis_of(term.count() > 0 ? term : -term),
                    reason(static_cast<LayerTerm>(i), layers)});
  }
  rows.push_back({"the whole step", millis_of(layers.step.total),
                  fmt::format("[{:.3f}-{:.3f}]; the sum is {:.2f} times the step",
                              milliseconds(layers.step.total) * (1 - layers.step.band.below),
                              milliseconds(layers.step.total) * (1 + layers.step.band.above),
                              layers.factor())});
  text += "\n" + table(rows, {0, 2});
  text += diagnostics(layers.step.diagnostics);
  text += footer({layers.step.basis}, context.assumed);
  return text;
}

}  // namespace stoker
