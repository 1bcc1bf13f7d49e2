#include "diagnosis/trace/finding_list.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/percent.h"
#include "diagnosis/trace/trace_diagnosis.h"

namespace stoker {
namespace {

struct Words {
  std::string_view finding, words;
  bool cheaper = false;
};
constexpr Words kWords[] = {
    {"loads_in_main_process", "loading in the main process"},
    {"waits_for_data", "waiting for data"},
    {"checkpoint_stalls", "saving"},
    {"garbage_collection", "Python's garbage collection"},
    {"graph_gaps", "gaps between the kernels of CUDA graphs"},
    {"memory_calls", "memory calls of the driver"},
    {"synchronisations", "waits of the host for the GPU"},
    {"optimizer_launching", "launching the optimizer's kernels"},
    {"host_bound_launching", "a host that launches too slowly"},
    {"python_between_operators", "Python between operators"},
    {"pageable_copies", "copies from pageable memory"},
    {"copies_to_the_gpu", "copies to the GPU"},
    {"other_copies", "copies to the host or within the GPU"},
    {"communication", "communication"},
    {"dependencies", "waiting for other streams or GPUs"},
    {"waits_for_slowest_rank", "waiting for the slowest rank"},
    {"transfers", "transfers of collectives"},
    {"fp32_kernels", "matrix products and convolutions in FP32", true},
    {"layout_changes", "changes between channels-first and channels-last", true},
    {"unfused_kernels", "kernels that are not fused", true},
    {"optimizer_kernels", "the optimizer", true},
};

/// " At most +25 % speed.": what a loss that is removed whole brings.
std::string at_most(double lost) {
  constexpr double kLeastLeft = 0.01;  // of the time, so that the bound stays a number
  return fmt::format(" At most {:+.0f} % speed.", kPerCent * lost / std::max(kLeastLeft, 1 - lost));
}

/// A finding of kernels that a setting makes cheaper.
bool is_cheaper(std::string_view finding) {
  const auto at = std::ranges::find(kWords, finding, &Words::finding);
  return at != std::end(kWords) && at->cheaper;
}

void keep(std::vector<JobFinding>& findings, JobFinding finding) {
  if (finding.lost >= kWorthTurning) findings.push_back(std::move(finding));
}

}  // namespace

std::string words_of_finding(std::string_view finding) {
  const auto at = std::ranges::find(kWords, finding, &Words::finding);
  if (at != std::end(kWords)) return std::string(at->words);
  std::string words(finding);
  std::ranges::replace(words, '_', ' ');
  return words;
}

void FindingList::add(std::string name, double lost, std::string evidence, const std::string& cure,
                      std::string setting, Confidence confidence) {
  keep(lost_, {.name = std::move(name),
               .lost = lost,
               .evidence = std::move(evidence),
               .cure = cure + at_most(lost),
               .setting = std::move(setting),
               .gain = {},
               .price = {},
               .confidence = confidence});
}

void FindingList::add_cheaper(std::string name, double share, std::string evidence,
                              std::string cure, std::string setting, Confidence confidence) {
  keep(cheaper_, {.name = std::move(name),
                  .lost = share,
                  .evidence = std::move(evidence),
                  .cure = std::move(cure),
                  .setting = std::move(setting),
                  .gain = {},
                  .price = {},
                  .confidence = confidence});
}

void FindingList::add(JobFinding finding) {
  keep(is_cheaper(finding.name) ? cheaper_ : lost_, std::move(finding));
}

std::vector<JobFinding> FindingList::finish(const std::string& healthy, std::string& verdict) {
  const auto by_time = [](const JobFinding& a, const JobFinding& b) { return a.lost > b.lost; };
  std::ranges::stable_sort(lost_, by_time);
  std::ranges::stable_sort(cheaper_, by_time);
  const bool waits = !lost_.empty();
  std::vector<JobFinding> findings = std::move(lost_);
  findings.insert(findings.end(), cheaper_.begin(), cheaper_.end());
  verdict += findings.empty()
                 ? " " + healthy
                 : fmt::format(" {} {}: {} of the time.",
                               waits ? "Most is lost by" : "What may get cheaper is",
                               words_of_finding(findings[0].name), percent(findings[0].lost));
  return findings;
}

}  // namespace stoker
