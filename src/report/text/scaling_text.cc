#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "report/model/report.h"
#include "report/model/scaling_report.h"
#include "report/text/layout.h"

namespace stoker {
namespace {

using namespace layout;

std::string gpus_words(int gpus) { return gpus == 1 ? "1 GPU" : fmt::format("{} GPUs", gpus); }

std::string verdict_words(const ScalingPoint& p) {
  if (!p.fits) return "DOES NOT FIT; ";
  return p.verdict == MemoryVerdictWord::kRisky ? "RISKY; " : "";
}

std::string headline(const Scaling& s) {
  if (s.stops_at == 0) {
    const std::string cost = s.why.empty() ? "" : fmt::format("\n  Costs most there: {}", s.why);
    return fmt::format("ANSWER: more GPUs pay up to {}, the most asked for{}\n", s.pays_up_to,
                       cost);
  }
  std::string text =
      fmt::format("ANSWER: more GPUs stop paying after {}\n", gpus_words(s.pays_up_to));
  const auto stop = std::find_if(s.points.begin(), s.points.end(),
                                 [&](const ScalingPoint& p) { return p.gpus == s.stops_at; });
  if (stop == s.points.end() || !stop->impossible.empty())
    return text + fmt::format("  {}: {}\n", gpus_words(s.stops_at), s.why);
  const std::string adds = stop->marginal < 0 ? "the whole job becomes slower"
                                              : fmt::format("each adds {} of what one alone does",
                                                            percent(stop->marginal));
  return text +
         fmt::format("  On the way to {} {}\n  Costs most there: {}\n", s.stops_at, adds, s.why);
}

std::string share_words(const Scaling& s) {
  if (s.strong)
    return fmt::format("Strong scaling: a global batch of {} shared out",
                       with_commas(s.global_batch));
  return fmt::format("Weak scaling: {} samples a step for each GPU", with_commas(s.global_batch));
}

std::string points_table(const Scaling& s, const ReportContext& context) {
  std::vector<std::vector<std::string>> rows{{"GPUs", "nodes", "batch", "accumulate", "step ms",
                                              context.sample_word + "/s", "efficiency", "adds",
                                              "exposed ms", "costs most"}};
  for (const ScalingPoint& p : s.points) {
    if (!p.impossible.empty()) {
      rows.push_back({std::to_string(p.gpus), "", "", "", "", "", "", "", "", p.impossible});
      continue;
    }
    rows.push_back({std::to_string(p.gpus), std::to_string(p.nodes), std::to_string(p.batch),
                    std::to_string(p.accumulate), number(p.step_ms.value), rate(p.samples_per_s),
                    percent(p.efficiency), p.gpus > 1 ? percent(p.marginal) : "",
                    number(p.exposed_communication_ms), verdict_words(p) + p.loss});
  }
  return table(rows, {9}, "  ", {1, 3, 8, 9, 7});
}

std::string alternatives(const Scaling& s) {
  if (s.alternatives.size() < 2) return {};
  std::vector<std::string> items;
  for (const ScalingAlternative& a : s.alternatives)
    items.push_back(fmt::format("{} {} ms{}", name_of(a.parallel), number(a.step_ms.value),
                                a.fits ? "" : " (does not fit)"));
  return labelled("Parallel",
                  {fmt::format("of {}, fastest first (below 5 % apart the order is open): {}",
                               gpus_words(s.pays_up_to), fmt::join(items, ", "))});
}

}  // namespace

std::string scaling_text(const Scaling& s, const ReportContext& context) {
  std::string text = context.model_line + "\n\n" + headline(s) + "\n" + share_words(s) + "\n";
  text += points_table(s, context);
  text += "\n" + alternatives(s);
  text += labelled(
      "Reading",
      {"adds: samples/s that each GPU beyond the line above adds, over those of one alone; "
       "more pay from " +
           percent(kLeastMarginal) + " on",
       "exposed: what a GPU waits for communication and for the slowest GPU"});
  return text + footer(context.rests_on, context.assumed, context.excluded) +
         diagnostics(context.data);
}

}  // namespace stoker
