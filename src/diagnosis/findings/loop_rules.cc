#include <fmt/format.h>

#include <algorithm>

#include "base/percent.h"
#include "base/saturating.h"
#include "base/text.h"
#include "diagnosis/findings/job_case.h"

namespace stoker::findings {
namespace {

/// A part of the time beyond this is reckoned as this: the gain of sparing nearly all has no bound.
constexpr double kMostLost = 0.95;

/// Speed without a part of the time, over that with it, minus one: `low` and `high` are how much of
/// the part the cure may leave, and what a run differs from the next.
Figure without(double part, double least_left, double most_left) {
  const auto speed = [&](double left) { return 1 / (1 - part * (1 - left)); };
  return {speed((least_left + most_left) / 2) - 1, speed(most_left) / (1 + kRunToRun) - 1,
          speed(least_left) * (1 + kRunToRun) - 1, "the time that it took"};
}

/// Stops are known only while the rhythm is; the rest of the time is taken to be like that.
double over_all(const RankTimeline& rank) {
  return rank.judged > 0 ? std::max(1.0, rank.job.all() / rank.judged) : 1;
}

/// Workers are started anew for each epoch.
void add_epoch_edges(const JobCase& c, std::vector<JobFinding>& out) {
  std::size_t starts = 0;
  double first = 0, all_first = 0, again = 0;
  int counted = 0;
  // Where steps that warm up are left out, the first start is too.
  const bool warm = std::ranges::any_of(c.ranks, &RankTimeline::warm);
  for (const RankTimeline& rank : c.ranks) {
    starts = std::max(starts, rank.generations.size());
    for (const Generation& g : rank.generations) {
      if (!g.seen_from_start || g.first_batch < 0) continue;
      first += g.first_batch;
      ++counted;
      // The first start is every job's.
      all_first += g.first_batch;
      if (&g != &rank.generations.front()) again += g.first_batch;
    }
  }
  if (starts < 2 || counted == 0) return;
  JobFinding f;
  f.name = "workers_restarted";
  f.lost = c.share(JobState::kStartsWorkers) * (warm ? 1 : all_first > 0 ? again / all_first : 0);
  f.evidence = fmt::format(
      "The workers were started {} times; each time the first batch came {:.2g} s later, together "
      "{} of the time.",
      starts, first / counted, percent(f.lost));
  f.cure = "persistent_workers=True: they live on between epochs.";
  f.setting = "persistent_workers=True";
  // The window drains at an epoch's end all the same: the time of one batch stays. A long run
  // hardly knows its first start.
  double batch = 0;
  std::size_t costs = 0;
  for (const RankTimeline& rank : c.ranks) {
    for (const BatchCost& one : rank.costs) batch += one.cpu + one.wait, ++costs;
  }
  const double usual = costs > 0 ? batch / static_cast<double>(costs) : 0;
  constexpr double kMostLeft = 0.6;
  const double left = std::min(kMostLeft, usual * counted / std::max(1e-9, first));
  const double starts_share = c.share(JobState::kStartsWorkers);
  const double later = f.lost / std::max(1 - kMostLost, 1 - (starts_share - f.lost));
  f.gain = without(std::min(kMostLost, later), left / 2, std::min(kMostLeft, 2 * left + 0.1));
  f.price = "the workers' memory between epochs";
  f.confidence = Confidence::kHigh;
  out.push_back(std::move(f));
}

void add_saves(const JobCase& c, std::vector<JobFinding>& out) {
  double written = 0, times = 0, around = 0;
  for (const RankTimeline& rank : c.ranks) {
    written += rank.written;
    times += rank.saves;
    around += std::max(rank.around_saves * over_all(rank), rank.job[JobState::kSaves]);
  }
  if (times <= 0) return;
  JobFinding f;
  f.name = "checkpoint_stalls";
  f.lost = around / c.job.all();
  f.evidence = fmt::format(
      "The training loop stood still {:.0f} times to write a checkpoint or the like, {:.2g} s "
      "each, {} in all.",
      times, around / times, human_bytes(Bytes(saturating_whole(written))));
  f.cure =
      "save less often, less (weights only), or in the background "
      "(torch.distributed.checkpoint.async_save).";
  constexpr double kHalfLeft = 0.5;
  f.gain = without(std::min(kMostLost, f.lost), 0.0, kHalfLeft);
  f.confidence = Confidence::kHigh;
  out.push_back(std::move(f));
}

/// The loop does something else than steps, again and again.
void add_between_steps(const JobCase& c, std::vector<JobFinding>& out) {
  double stalled = 0, longest = 0, usual = 0, all = 0;
  int times = 0;
  for (const RankTimeline& rank : c.ranks) {
    stalled += rank.stalled * over_all(rank);
    times += rank.stalls;
    longest = std::max(longest, rank.longest_stall);
    usual = std::max(usual, rank.usual_step);
    all += rank.job.all();
  }
  // What the loop itself says of validation is better known.
  const bool told = c.told && c.told->validation && *c.told->validation >= kClearShare;
  if (times == 0 || all <= 0 || told) return;
  JobFinding f;
  f.name = "validation_or_logging_stalls";
  f.lost = stalled / all;
  f.evidence = fmt::format(
      "{} time{} the loop asked for no batch for up to {:.2g} s, where it usually asks for one "
      "every {:.2g} s, and did not wait for one: it does something else than training steps.",
      times, times == 1 ? "" : "s", longest, usual);
  f.cure =
      "validate, log and draw less often, or on a part of the data; `py-spy dump --pid PID` prints "
      "which line it is at.";
  constexpr double kHalfLeft = 0.5;
  f.gain = without(std::min(kMostLost, f.lost), 0.0, kHalfLeft);
  f.confidence = times > 1 ? Confidence::kMedium : Confidence::kLow;
  out.push_back(std::move(f));
}

/// The main thread waits for storage although workers load.
void add_main_reads(const JobCase& c, std::vector<JobFinding>& out) {
  const double waits = c.share(JobState::kReads);
  if (c.workers_each == 0 || waits < kLeastShare) return;
  JobFinding f;
  f.name = "main_process_waits_for_storage";
  f.lost = waits;
  f.evidence =
      fmt::format("The training loop itself waits for storage {} of its time.", percent(waits));
  f.cure = "move reading (labels, logs, caches) into the Dataset, or into memory.";
  out.push_back(std::move(f));
}

/// Ranks meet in every step: those that are early wait for the last one.
bool add_slow_rank(const JobCase& c, std::vector<JobFinding>& out) {
  const auto waits = [](const RankTimeline& r) {
    const double meets = r.job[JobState::kWaitsForThread] + r.job[JobState::kTalks] +
                         r.job[JobState::kWaitsForDevice];
    return r.job.all() > 0 ? meets / r.job.all() : 0;
  };
  if (c.ranks.size() < 2) return false;
  const auto [least, most] = std::ranges::minmax_element(c.ranks, std::less<>(), waits);
  if (waits(*most) - waits(*least) < kClearShare) return false;
  const auto name = [](const RankTimeline& r) {
    return r.rank >= 0 ? fmt::format("rank {}", r.rank) : fmt::format("process {}", r.pid);
  };
  double all = 0;
  for (const RankTimeline& rank : c.ranks) all += waits(rank);
  JobFinding f;
  f.name = "waits_for_other_processes";
  f.lost = all / static_cast<double>(c.ranks.size());
  f.evidence = fmt::format(
      "The ranks wait for each other: {} for {} of its time, {} for {} only: that one is the last "
      "to arrive.",
      name(*most), percent(waits(*most)), name(*least), percent(waits(*least)));
  f.cure =
      fmt::format("see what {} does more of or slower: its share of the data, its GPU, its cores.",
                  name(*least));
  f.confidence = Confidence::kMedium;
  out.push_back(std::move(f));
  return true;
}

/// Ranks that wait alike wait for what they exchange, behind threads of the library that does it.
bool add_exchange(const JobCase& c, std::vector<JobFinding>& out) {
  if (c.ranks.size() < 2) return false;
  // Exchanging gradients is part of such a step; from here on it is worth a word.
  constexpr double kExchange = 0.2;
  const double waits = c.share(JobState::kWaitsForThread) + c.share(JobState::kTalks);
  if (waits < kExchange) return true;
  JobFinding f;
  f.name = "waits_for_other_processes";
  f.lost = waits;
  f.evidence = fmt::format(
      "All {} ranks alike wait {} of their time outside of the loader, at sockets and for threads "
      "that do not compute: they exchange gradients, or wait for other nodes.",
      c.ranks.size(), percent(waits));
  f.cure =
      "fewer and larger exchanges (a larger batch, gradient accumulation under no_sync(), a larger "
      "bucket_cap_mb of DistributedDataParallel); see which with `py-spy dump --pid PID`.";
  f.confidence = Confidence::kLow;
  out.push_back(std::move(f));
  return true;
}

/// Blocked on its own threads or at sockets, with neither workers nor a device to wait for.
void add_stalls(const JobCase& c, std::vector<JobFinding>& out) {
  if (add_slow_rank(c, out) || add_exchange(c, out)) return;
  const double locked = c.share(JobState::kWaitsForThread);
  if (locked >= kClearShare) {
    JobFinding f;
    f.name = "waits_for_threads";
    f.lost = locked;
    f.evidence = fmt::format(
        "The loop waits for locks or other threads of its process {} of its "
        "time, while none of them computes.",
        percent(locked));
    f.cure =
        "see which with `py-spy dump --pid PID`: queues of its own, logging, Python's global lock "
        "(GIL).";
    f.confidence = Confidence::kLow;
    out.push_back(std::move(f));
  }
  const double talks = c.share(JobState::kTalks);
  if (talks >= kClearShare) {
    JobFinding f;
    f.name = "waits_for_other_processes";
    f.lost = talks;
    f.evidence = fmt::format(
        "The loop waits at sockets, pipes or for children {} of its time, "
        "outside of the loader.",
        percent(talks));
    f.cure = "look for requests (logging services, downloads) within the loop.";
    f.confidence = Confidence::kLow;
    out.push_back(std::move(f));
  }
}

}  // namespace

void loop_rules(const JobCase& c, std::vector<JobFinding>& out) {
  add_epoch_edges(c, out);
  add_saves(c, out);
  add_between_steps(c, out);
  add_main_reads(c, out);
  add_stalls(c, out);
}

}  // namespace stoker::findings
