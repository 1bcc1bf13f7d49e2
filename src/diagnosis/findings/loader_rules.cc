#include <fmt/format.h>

#include <cmath>

#include "base/percent.h"
#include "base/saturating.h"
#include "base/text.h"
#include "diagnosis/findings/job_case.h"
#include "diagnosis/timeline/receive_track.h"
#include "diagnosis/timeline/times.h"

namespace stoker::findings {
namespace {

/// Workers at work for less than this share of the loop's waiting have made what it waits for.
constexpr double kAtWork = 0.7;
/// The lesser of computing and reading is named too from this share of both.
constexpr double kAlsoCounts = 0.3;

/// A cure that brings less is none.
constexpr double kWorthTurning = 0.04;
/// Two settings this near are equally fast; the smaller one is named.
constexpr double kSame = 0.02;
/// More of the waiting than this with one worker at work: the others have nothing to do.
constexpr double kMostlyOne = 0.5;
/// A share of all batches' time, taken by the dearest twentieth of them, that makes them the
/// matter.
constexpr double kDearTail = 0.30;

/// A batch so many times as dear as the usual one is a matter of its own.
constexpr double kFarDearer = 8;

/// What the workers did while the loop waited, as shares of the time that they spent on batches.
struct Making {
  double cpu = 0, queued = 0, storage = 0, sleeps = 0, locked = 0;
};

Making making_of(const JobCase& c) {
  const WorkerSeconds& w = c.while_waiting;
  const double all = w.cpu + w.queued + w.storage + w.sleeps + w.locked;
  if (all <= 0) return {1, 0, 0, 0, 0};
  return {w.cpu / all, w.queued / all, w.storage / all, w.sleeps / all, w.locked / all};
}

std::string workers_words(const JobCase& c) {
  return fmt::format("{} worker{}", c.workers_each, c.workers_each == 1 ? "" : "s");
}

/// Setting with its gain.
struct Better {
  LoaderSettings settings;
  Figure gain;
};

/// The fewest workers that bring nearly the most.
std::optional<Better> best_workers(const JobCase& c) {
  if (!c.loader) return std::nullopt;
  const int now = c.loader->settings.workers;
  // Workers beyond those that fill the cores would only take turns, or other jobs' cores.
  double cpu = 0, wait = 0;
  for (std::size_t i = 0; i < c.loader->cost.cpu.size(); ++i)
    cpu += c.loader->cost.cpu[i].count(), wait += c.loader->cost.wait[i].count();
  const double on_core = cpu + wait > 0 ? std::max(0.02, cpu / (cpu + wait)) : 1;
  constexpr double kNearlyWhole = 0.2;  // of a worker, which another one would not be worth
  const double fill = std::ceil(c.cores / c.loader->host.ranks / on_core - kNearlyWhole);
  const int most = static_cast<int>(std::min(64.0, fill));
  std::optional<Better> best;
  for (int workers = now + 1; workers <= most; workers += std::max(1, workers / 8)) {
    Better one{c.loader->settings, {}};
    one.settings.workers = workers;
    one.gain = gain_of(*c.loader, one.settings);
    if (!best || one.gain.value > best->gain.value + kSame) best = one;
  }
  if (!best || best->gain.value < kWorthTurning) return std::nullopt;
  return best;
}

std::string memory_price(const JobCase& c, int more) {
  double one = 0;
  int counted = 0;
  for (const ProcessSample& p : c.timeline.last().processes) {
    const auto& all = c.timeline.processes();
    if (p.serial == 0 || p.serial > all.size()) continue;
    if (all[p.serial - 1].role != ProcessRole::kWorker || p.anonymous <= 0) continue;
    one += static_cast<double>(p.anonymous);
    ++counted;
  }
  if (counted == 0 || more <= 0) return {};
  constexpr double kMegabyte = 1e6;
  return fmt::format(
      "about {:.0f} MB of memory for each further worker, and room for its batches in shared "
      "memory (/dev/shm)",
      one / counted / kMegabyte);
}

/// Batches of very different cost: which part of all time the dearest twentieth takes.
double dear_tail(const WatchedLoader& loader) {
  std::vector<double> all;
  double sum = 0;
  for (std::size_t i = 0; i < loader.cost.cpu.size(); ++i) {
    all.push_back(loader.cost.cpu[i].count() + loader.cost.wait[i].count());
    sum += all.back();
  }
  std::ranges::sort(all, std::greater<>());
  const auto dear = std::max<std::size_t>(1, all.size() / 20);
  double tail = 0;
  for (std::size_t i = 0; i < dear; ++i) tail += all[i];
  return sum > 0 ? tail / sum : 0;
}

/// The dearest batch over the usual one.
double dearest_over_usual(const WatchedLoader& loader) {
  std::vector<double> all;
  for (std::size_t i = 0; i < loader.cost.cpu.size(); ++i)
    all.push_back(loader.cost.cpu[i].count() + loader.cost.wait[i].count());
  std::ranges::sort(all);
  const double usual = all.empty() ? 0 : all[all.size() / 2];
  return usual > 0 ? all.back() / usual : 1;
}

/// A few batches, or workers that have nothing to do beside one, hold the line.
void add_uneven(const JobCase& c, double lost, std::vector<JobFinding>& out) {
  JobFinding f;
  f.lost = lost;
  const double tail = c.loader ? dear_tail(*c.loader) : 0;
  std::optional<Better> deeper, unordered;
  if (c.loader) {
    Better d{c.loader->settings, {}};
    d.settings.prefetch = std::min(16, 4 * d.settings.prefetch);
    d.gain = gain_of(*c.loader, d.settings);
    deeper = d;
    Better u{c.loader->settings, {}};
    u.settings.in_order = false;
    u.gain = gain_of(*c.loader, u.settings);
    unordered = u;
  }
  const bool rare = tail > kDearTail || (c.loader && dearest_over_usual(*c.loader) > kFarDearer);
  f.name = rare ? "slow_samples" : "window_too_small";
  f.evidence = fmt::format(
      "While the loop waited, at most one of {} was making a batch {} of the time; the others had "
      "made all that they may make ahead",
      workers_words(c), percent(c.waits_for_one));
  if (c.loader)
    f.evidence +=
        fmt::format(". The slowest 5 % of the batches take {} of the time of all", percent(tail));
  f.evidence += ".";
  if (rare) {
    f.cure =
        "find the slow samples (their size, their file), or let batches that are ready overtake "
        "them: DataLoader(in_order=False), PyTorch 2.6 and later.";
    f.setting = "in_order=False";
    if (unordered) f.gain = unordered->gain;
    f.price = "the order of the samples depends on timing";
  } else if (deeper) {
    f.cure = fmt::format("let workers make more batches ahead: prefetch_factor={} instead of {}.",
                         deeper->settings.prefetch, c.loader->settings.prefetch);
    f.setting = fmt::format("prefetch_factor={}", deeper->settings.prefetch);
    f.gain = deeper->gain;
    f.price = "shared memory (/dev/shm) for that many more batches";
  } else {
    f.cure = "let workers make more batches ahead: a larger prefetch_factor.";
    f.setting = "prefetch_factor";
  }
  f.confidence = rare ? Confidence::kHigh : Confidence::kMedium;
  out.push_back(std::move(f));
}

/// Workers spend their time on a core.
void add_preparing(const JobCase& c, double lost, const Making& made,
                   std::vector<JobFinding>& out) {
  JobFinding f;
  f.lost = lost;
  const auto better = best_workers(c);
  f.evidence = fmt::format(
      "The loop waits for data {} of its time; of the time that {} {} to make batches then, {} is "
      "computing",
      percent(c.share(JobState::kWaitsForData)), workers_words(c),
      c.workers_each == 1 ? "takes" : "take", percent(made.cpu));
  if (made.queued > kLeastShare)
    f.evidence += fmt::format(" and {} waiting for a core", percent(made.queued));
  f.evidence +=
      fmt::format("; {:.1f} of {:g} usable cores are busy.", c.own + c.contending, c.cores);
  if (better) {
    f.name = "too_few_workers";
    f.setting = fmt::format("num_workers={}", better->settings.workers);
    f.cure = fmt::format("num_workers={} instead of {}.", better->settings.workers,
                         c.loader->settings.workers);
    f.gain = better->gain;
    f.price = memory_price(c, better->settings.workers - c.loader->settings.workers);
    f.confidence = Confidence::kHigh;
  } else {
    f.name = "preparation_bound";
    f.cure =
        "samples that take less computing: smaller files, a faster decoder, fewer transforms or "
        "whole batches at once, or some of them on the GPU; or more cores. More workers bring "
        "nothing.";
    if (c.loader) {
      f.gain = gain_of_costs(*c.loader, 0.5, 1);
      f.cure += " The gain is that of halving a sample's CPU time.";
    }
    f.confidence = c.loader ? Confidence::kHigh : Confidence::kMedium;
  }
  out.push_back(std::move(f));
}

/// What storage did for the workers.
struct Storage {
  double disks_a_s = 0;  ///< bytes that the machine's disks delivered
  double a_reader = 0;   ///< bytes a second, to a worker that waits for them
  double read = 0;       ///< bytes that one call asks for
  bool local = false;    ///< the data came from disks of this machine
};

Storage storage_of(const JobCase& c) {
  const HostSample& first = c.timeline.first_host();
  const HostSample& last = c.timeline.last_host();
  const double disks = grown(first.disk_read_bytes, last.disk_read_bytes);
  double bytes = 0, calls = 0;
  for (const RankTimeline& rank : c.ranks) {
    bytes += rank.read_bytes;
    calls += rank.batches * std::max(0.0, rank.worker_reads_a_batch -
                                              hand_over_reads(tensors_of(rank.reads_a_batch)));
  }
  Storage s;
  s.disks_a_s = disks / std::max(1e-9, c.timeline.host_seconds());
  s.a_reader = bytes / std::max(1e-9, c.workers.storage);
  // Files that are mapped are read without calls, as far ahead as the kernel does.
  constexpr double kAhead = 128 << 10, kMostAsked = 1 << 20;
  s.read = calls > 0 && bytes / calls < kMostAsked ? bytes / calls : kAhead;
  constexpr double kMostOfIt = 0.5;
  s.local = bytes > 0 && disks > kMostOfIt * bytes;
  return s;
}

/// A disk that gives a reader less than half of what a hard disk gives a lone one has a queue, or a
/// limit set upon it: more readers would only wait longer.
bool at_its_limit(const Storage& s) {
  constexpr double kSeek = 12e-3, kBytesASecond = 100e6;  // of a hard disk
  return s.local && s.a_reader < 0.5 * s.read / (kSeek + s.read / kBytesASecond);
}

void cure_reading(const JobCase& c, const Making& made, const Storage& storage, JobFinding& f) {
  f.cure = "data nearer to the job: a local disk, memory (page cache), fewer and larger files.";
  // Whether the storage has more to give is not seen from outside, unless it is slower than any.
  f.confidence = made.storage > made.sleeps ? Confidence::kMedium : Confidence::kHigh;
  if (made.storage > made.sleeps && at_its_limit(storage)) {
    f.evidence += fmt::format(
        " A worker that waits gets {:.1f} MB/s, less than a hard disk gives one reader: the "
        "storage has a queue or a limit, and more workers would only wait longer.",
        storage.a_reader * 1e-6);
    if (!c.loader) return;
    f.gain = gain_of_costs(*c.loader, 1, 0.5);
    f.cure += " The gain is that of halving the time that a sample waits.";
    return;
  }
  const auto better = best_workers(c);
  if (!better) return;
  f.setting = fmt::format("num_workers={}", better->settings.workers);
  f.cure = fmt::format("num_workers={} instead of {}, since waiting needs no core; or ",
                       better->settings.workers, c.loader->settings.workers) +
           f.cure;
  f.gain = better->gain;
  f.price = memory_price(c, better->settings.workers - c.loader->settings.workers);
  if (made.storage > made.sleeps) f.gain->low = std::min(f.gain->low, -kRunToRun);
}

/// Workers spend their time asleep: storage, network, whatever a sample waits for.
void add_reading(const JobCase& c, double lost, const Making& made, std::vector<JobFinding>& out) {
  JobFinding f;
  f.name = "reading_bound";
  f.lost = lost;
  const Storage storage = storage_of(c);
  f.evidence = fmt::format(
      "The loop waits for data {} of its time; of the time that workers take for a batch then, {} "
      "is waiting for storage and {} is sleeping otherwise (network, timers); the disks deliver "
      "{:.1f} MB/s.",
      percent(c.share(JobState::kWaitsForData)), percent(made.storage), percent(made.sleeps),
      storage.disks_a_s * 1e-6);
  double data = 0, cached = 0;
  for (const RankTimeline& rank : c.ranks) {
    if (rank.data_bytes > data) data = rank.data_bytes, cached = rank.data_cached;
  }
  if (data > 0)
    f.evidence.insert(f.evidence.size() - 1, fmt::format("; of {} in open files {} are in memory",
                                                         human_bytes(Bytes(saturating_whole(data))),
                                                         percent(cached / data)));
  cure_reading(c, made, storage, f);
  out.push_back(std::move(f));
}

/// Workers that made batches while the loop waited, mean.
double at_work(const JobCase& c) {
  double waiting = 0;
  for (const RankTimeline& rank : c.ranks) waiting += rank.waiting_with_workers;
  return waiting > 0 ? c.while_waiting.making() / waiting : 1;
}

/// The loop waits although nobody makes a batch: what it waits for is on its way.
void add_transport(const JobCase& c, double lost, std::vector<JobFinding>& out) {
  JobFinding f;
  f.name = "transport_bound";
  f.lost = lost;
  f.evidence = fmt::format(
      "The loop waits for data {} of its time, and meanwhile {:.1f} of {} on average make a batch: "
      "the batches are finished and being handed over, from the workers to the loop (queues, file "
      "descriptors, the thread of pin_memory).",
      percent(c.share(JobState::kWaitsForData)), at_work(c), workers_words(c));
  f.cure =
      "fewer and larger messages: a larger batch_size, tensors instead of lists and arrays, "
      "one tensor instead of many.";
  f.confidence = Confidence::kLow;
  out.push_back(std::move(f));
}

/// A cure that brings nothing does not cure what was lost.
void drop_if_useless(std::vector<JobFinding>& out, std::size_t from) {
  for (std::size_t i = out.size(); i-- > from;) {
    if (out[i].gain && out[i].gain->value < kSame) out.erase(out.begin() + static_cast<long>(i));
  }
}

}  // namespace

void loader_rules(const JobCase& c, std::vector<JobFinding>& out) {
  const double waits = c.at_most_idle(c.share(JobState::kWaitsForData));
  if (waits <= 0 || c.workers_each == 0) return;
  const Making made = making_of(c);
  const double foreign = made.queued * c.foreign_part();
  double rest = waits * (1 - foreign);
  const std::size_t before = out.size();
  const double busy = std::min(1.0, at_work(c));
  if (busy < kAtWork) {
    add_transport(c, waits * (1 - busy) * (1 - c.foreign_part()), out);
    rest *= busy;
  }
  if (c.workers_each > 1 && c.waits_for_one > kMostlyOne) {
    add_uneven(c, rest * c.waits_for_one, out);
    rest *= 1 - c.waits_for_one;
  }
  const double asleep = made.storage + made.sleeps;
  const double awake = made.cpu + made.queued * (1 - c.foreign_part()) + made.locked;
  const double both = std::max(1e-9, asleep + awake);
  if (asleep > awake) {
    add_reading(c, rest * asleep / both, made, out);
    if (awake / both > kAlsoCounts) add_preparing(c, rest * awake / both, made, out);
  } else {
    add_preparing(c, rest * awake / both, made, out);
    if (asleep / both > kAlsoCounts) add_reading(c, rest * asleep / both, made, out);
  }
  drop_if_useless(out, before);
}

}  // namespace stoker::findings
