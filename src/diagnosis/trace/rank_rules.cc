#include "diagnosis/trace/rank_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/counted.h"
#include "base/percent.h"
#include "base/text.h"
#include "base/units.h"
#include "diagnosis/trace/rank_files.h"
#include "diagnosis/trace/trace_rules.h"

namespace stoker {
namespace {

/// A cause that explains less of the lateness is not the cause.
constexpr double kMuchOfIt = 0.25;

std::string seconds_text(double seconds) { return human_time(seconds * kSecond); }

/// What to do about a rank that does more of this than the others, by RankTrace's work.
std::string_view cure_of(std::size_t work) {
  if (work == 0)
    return "the same work for each rank (lengths of sequences, sizes of pictures, tokens of an "
           "expert); else look at that GPU's clock and heat: nvidia-smi -q -d CLOCK,PERFORMANCE.";
  if (work == kRankWork)
    return "profile earlier or more steps: what made it late lies before the trace.";
  if (work == 1)
    return "pin_memory=True and non_blocking=True; else look at that GPU's PCIe link: nvidia-smi "
           "-q, Link Width.";
  switch (static_cast<IdleCause>(work - 2)) {
    case IdleCause::kLoader:
      return "more num_workers, or look at that node's cores and disk with `stoker watch`: the "
             "other ranks' loaders keep up better.";
    case IdleCause::kSaving:
      return "save less often, in a thread, or a shard on each rank "
             "(torch.distributed.checkpoint): the other ranks wait.";
    case IdleCause::kCollecting:
      return "gc.disable() in the loop and gc.collect() in the same step of all ranks.";
    case IdleCause::kGraph:
      return "compare this rank's CUDA graphs and its GPU's clock with another rank's.";
    case IdleCause::kAllocation:
      return "no torch.cuda.empty_cache() in the loop; where sizes vary "
             "PYTORCH_ALLOC_CONF=expandable_segments:True.";
    case IdleCause::kPageableCopy:
      return "pin_memory=True in the DataLoader and .to(device, non_blocking=True).";
    case IdleCause::kSynchronising:
      return "no .item(), .cpu() or print(loss) that only this rank does in every step.";
    case IdleCause::kOptimizer:
    case IdleCause::kLaunching:
    case IdleCause::kLatency:
      return "look at that host's cores: other load, a lower clock, a process bound to few of "
             "them (taskset, numactl).";
    case IdleCause::kPython:
      return "take out of the loop what only this rank does: logging, evaluation, files.";
    case IdleCause::kDependency:
      return "look for stream.wait_stream(), events and CPU offload in what this rank does.";
  }
  return "";
}

std::string a_step(const RanksDiagnosis& d) { return d.per_step ? " a step" : " in all"; }

/// " Beyond the others: computes 3.1 ms a step."
std::string causes_text(const RanksDiagnosis& d, const Straggler& s) {
  std::string text;
  for (const Straggler::Cause& cause : s.causes) {
    if (cause.more_s < kMuchOfIt * s.behind_s) break;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", words_of_rank_work(cause.work),
                        seconds_text(cause.more_s));
  }
  if (text.empty()) return " What it does meanwhile is spread over many causes.";
  return fmt::format(" Beyond the others: {}{}.", text, a_step(d));
}

class RankRules : FindingList {
 public:
  explicit RankRules(RanksDiagnosis& d) : d_(d) {}

  void waiting() {
    std::string evidence, cure;
    if (d_.straggler) {
      const Straggler& s = *d_.straggler;
      const auto at = std::ranges::find(d_.ranks, s.rank, &RankShares::rank);
      evidence = fmt::format(
          "Rank {} comes last to {} of {}, {}{} behind the others' median: {} of all "
          "waiting.{}",
          s.rank, with_commas(at->last_at), counted(at->collectives, "collective"),
          seconds_text(s.behind_s), a_step(d_), percent(at->blamed), causes_text(d_, s));
      const bool known = !s.causes.empty() && s.causes[0].more_s >= kMuchOfIt * s.behind_s;
      cure = fmt::format("rank {}: ", s.rank);
      cure += known ? cure_of(s.causes[0].work)
                    : "compare its profile with another rank's: `stoker explain` of each file.";
    } else {
      const auto most = std::ranges::max_element(d_.ranks, {}, &RankShares::blamed);
      evidence = fmt::format("No rank stands out: {} comes last most often, for {} of the waiting.",
                             most->rank, percent(most->blamed));
      cure =
          "even work from step to step: samples of like length in a batch, no evaluation, "
          "logging or garbage collection that ranks do at different times.";
    }
    add("waits_for_slowest_rank", d_.waiting, evidence, cure, "",
        d_.straggler ? Confidence::kHigh : Confidence::kMedium);
  }

  void transfer() {
    std::string largest;
    if (!d_.kinds.empty())
      largest = fmt::format(" Most take {}: {}, {} each.", d_.kinds[0].kind,
                            with_commas(d_.kinds[0].count), seconds_text(d_.kinds[0].transfer_s));
    add("transfers", d_.transfer,
        fmt::format("Collectives take {} of the time after the last rank has come, with nothing "
                    "computed beside.{}",
                    percent(d_.transfer), largest),
        "more micro-batches under no_sync(), a larger batch, gradients in bf16, or a faster link.",
        "accumulate", Confidence::kMedium);
  }

  /// What the ranks' own diagnoses have in common, by the mean over all ranks.
  void shared_findings() {
    struct Shared {
      double lost = 0;
      std::vector<std::int64_t> ranks;
      const JobFinding* largest = nullptr;
    };
    std::map<std::string, Shared> by_name;
    for (const RankShares& rank : d_.ranks) {
      for (const JobFinding& f : rank.findings) {
        if (f.name == "communication") continue;
        Shared& shared = by_name[f.name];
        shared.lost += f.lost / static_cast<double>(d_.ranks.size());
        shared.ranks.push_back(rank.rank);
        if (!shared.largest || f.lost > shared.largest->lost) shared.largest = &f;
      }
    }
    for (const auto& [name, shared] : by_name) {
      if (shared.lost < kWorthTurning) continue;
      JobFinding finding = *shared.largest;
      finding.lost = shared.lost;
      if (d_.ranks.size() > 1) {
        const bool all = shared.ranks.size() == d_.ranks.size();
        finding.evidence = fmt::format(
            "On {}, at most {}: {}",
            all ? std::string("all ranks")
                : (shared.ranks.size() == 1 ? "rank " : "ranks ") + number_list(shared.ranks),
            percent(shared.largest->lost), finding.evidence);
      }
      add(std::move(finding));
    }
  }

  void finish() {
    d_.verdict = state();
    d_.findings = FindingList::finish("Nothing keeps the ranks waiting.", d_.verdict);
    if (!d_.findings.empty() && d_.findings[0].name == "waits_for_slowest_rank" && d_.straggler)
      d_.verdict += fmt::format(" That is rank {}.", d_.straggler->rank);
  }

 private:
  [[nodiscard]] std::string state() const {
    const std::string who = counted(static_cast<std::int64_t>(d_.ranks.size()), "rank");
    if (!d_.gpus)
      return fmt::format("No GPU worked; {} are within operators {} of the time.", who,
                         percent(d_.compute));
    return fmt::format(
        "{} compute {} of the time, wait for the slowest {}, transfer {} and idle {}.", who,
        percent(d_.compute), percent(d_.waiting), percent(d_.transfer), percent(d_.idle));
  }

  RanksDiagnosis& d_;
};

}  // namespace

void add_rank_findings(RanksDiagnosis& d) {
  RankRules rules(d);
  rules.waiting();
  rules.transfer();
  rules.shared_findings();
  rules.finish();
}

}  // namespace stoker
