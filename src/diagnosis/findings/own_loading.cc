#include "diagnosis/findings/own_loading.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/percent.h"

namespace stoker::findings {
namespace {

/// Answers of the kernel from which shares of the code are told: with fewer, chance alone moves a
/// share by more than a tenth of the time.
constexpr double kEnoughAnswers = 50;
/// Seconds of the loop from which its own loading is told.
constexpr double kEnoughSeconds = 2;
/// Half of a 90 % band of a share that was counted, in its standard deviations.
constexpr double kDeviations = 1.645;
/// Share of the time that is left to the step at least, whatever loading takes.
constexpr double kLeastRest = 0.02;
/// A training process that reads more bytes a second than this reads data.
constexpr double kReadsData = 2e5;

AloneTimeline alone_of(const JobCase& c) {
  AloneTimeline sum;
  for (const RankTimeline& rank : c.ranks) {
    sum.seconds += rank.alone.seconds;
    sum.cpu += rank.alone.cpu;
    sum.queued += rank.alone.queued;
    sum.reads += rank.alone.reads;
    sum.beside += rank.alone.beside;
    for (std::size_t i = 0; i < kCodeKinds; ++i) sum.code[i] += rank.alone.code[i];
  }
  return sum;
}

/// Parts of the main thread's code, 0 to 1.
struct CodeShares {
  double answers = 0, data = 0, math = 0, device = 0, both = 0;
};

CodeShares shares_of(const std::array<double, kCodeKinds>& code) {
  const double all = std::accumulate(code.begin(), code.end(), 0.0);
  const auto part = [&](CodeKind kind) {
    return all > 0 ? code[static_cast<std::size_t>(kind)] / all : 0;
  };
  return {all, part(CodeKind::kData), part(CodeKind::kMath), part(CodeKind::kDevice),
          part(CodeKind::kInterpreter) + part(CodeKind::kOther)};
}

/// Throughput when loading that took this share of the time runs beside the step, over that before,
/// minus one: the longer of the two decides.
double most_gained(double share, int workers) {
  return 1 / std::max({kLeastRest, 1 - share, share / workers}) - 1;
}

int workers_wanted(const JobCase& c, double share) {
  const double free = std::max(1.0, std::floor(c.cores - static_cast<double>(c.ranks.size())));
  return static_cast<int>(
      std::clamp(std::ceil(share / std::max(kLeastRest, 1 - share)), 1.0, free));
}

/// Loading takes between `low` and `high` of the time.
JobFinding loads_itself(const JobCase& c, double share, double low, double high) {
  const int wanted = workers_wanted(c, share);
  JobFinding f;
  f.name = "loads_in_main_process";
  f.lost = share;
  f.cure = fmt::format("num_workers={}, so that loading runs beside the step.", wanted);
  f.setting = fmt::format("num_workers={}", wanted);
  // With loading all there is, or none, workers bring little; they bring most where both sides take
  // as long.
  double least = most_gained(share, wanted), most = least;
  const double even = std::clamp(static_cast<double>(wanted) / (wanted + 1), low, high);
  for (const double one : {low, even, high}) {
    least = std::min(least, most_gained(one, wanted));
    most = std::max(most, most_gained(one, wanted));
  }
  // Handing a batch over costs some of the gain again, and where the step computes on the same
  // cores both are slower.
  constexpr double kHandOver = 0.85;
  const bool crowded = c.own + wanted > c.cores;
  f.gain =
      Figure{most_gained(share, wanted) * kHandOver,
             (1 + (crowded ? 0.0 : 0.5 * least)) / (1 + kLeastError) - 1,
             (1 + most) * (1 + kLeastError) - 1, "the longer of loading and the rest of the step"};
  f.price = "each worker is a copy of the process, and its batches lie in shared memory (/dev/shm)";
  return f;
}

/// As the loop tells: without workers, all of next() is loading.
void add_told(const JobCase& c, std::vector<JobFinding>& out) {
  const double waits = c.at_most_idle(*c.told->waits);
  if (waits < kLeastShare) return;
  JobFinding f = loads_itself(c, waits, waits, waits);
  f.evidence = fmt::format(
      "There are no workers: the loop itself is in the loader's next() for {} of its time, {:.3g} "
      "ms of a step of {:.3g} ms.",
      percent(waits), 1e3 * c.told->step_s * waits, 1e3 * c.told->step_s);
  f.confidence = Confidence::kHigh;
  out.push_back(std::move(f));
}

void add_by_code(const JobCase& c, const OwnLoading& own, std::vector<JobFinding>& out) {
  const double value = c.at_most_idle(*own.value);
  if (value < kLeastShare || hides_loading(c)) return;
  const CodeShares code = shares_of(alone_of(c).code);
  JobFinding f =
      loads_itself(c, value, std::min(value, own.low), std::max(value, c.at_most_idle(own.high)));
  f.evidence = fmt::format(
      "There are no workers. Of the main thread's time on a core {} is in code that decodes or "
      "unpacks data, {} in that of tensors and the GPU, the rest in what serves both (Python, the "
      "C library, NumPy): loading takes about {} of the loop's time, {} to {}.",
      percent(code.data), percent(code.math + code.device), percent(value), percent(own.low),
      percent(own.high));
  f.confidence = own.low > value / 2 ? Confidence::kMedium : Confidence::kLow;
  out.push_back(std::move(f));
}

/// What it waits for storage is seen, and that it reads.
void add_by_reading(const JobCase& c, double most, std::vector<JobFinding>& out) {
  double chars = 0, seconds = 0;
  for (const RankTimeline& rank : c.ranks) {
    chars += rank.read_chars;
    seconds += rank.job.all();
  }
  const double waits = c.share(JobState::kReads);
  const double rate = seconds > 0 ? chars / seconds : 0;
  if (waits < kLeastShare && rate < kReadsData) return;
  JobFinding f;
  f.name = "loads_in_main_process";
  f.lost = std::max(waits, 0.0);
  f.evidence = fmt::format(
      "There are no workers, and the training process reads {:.1f} MB/s itself; it waits for "
      "storage {} of its time. What it computes for samples is not told apart from the step from "
      "outside: loading takes at most {} of the time.",
      rate * 1e-6, percent(waits), percent(most));
  f.cure =
      "num_workers=2 or more, so that loading runs beside the step; stoker.observe_step tells "
      "how much of the loop it is.";
  f.setting = "num_workers=2";
  f.confidence = waits > kClearShare ? Confidence::kHigh : Confidence::kLow;
  out.push_back(std::move(f));
}

}  // namespace

std::optional<OwnLoading> own_loading_of(const JobCase& c) {
  const AloneTimeline alone = alone_of(c);
  if (c.workers_each > 0 || alone.seconds < kEnoughSeconds) return std::nullopt;
  const double awake = (alone.cpu + alone.queued) / alone.seconds;
  const double reads = alone.reads / alone.seconds;
  const CodeShares code = shares_of(alone.code);
  OwnLoading own;
  if (code.answers < kEnoughAnswers) {
    own.low = std::min(1.0, reads);
    own.high = std::min(1.0, reads + awake - alone.beside / alone.seconds);
    return own;
  }
  // With a GPU, tensors on the CPU are samples that are transformed, or kernels that are launched.
  const bool gpu = code.device > 0;
  const double most = code.data + code.both + (gpu ? code.math : 0);
  // The more there is of what serves both, the less the rest tells of it: half of it is loading
  // where nothing else is known.
  constexpr double kUntold = 0.25;
  const double known = code.data + code.math + code.device, untold = kUntold * code.both;
  const double part = known + untold > 0 ? (code.data + untold) / (known + 2 * untold) : 0;
  const double value = code.data + code.both * part;
  const auto error = [&](double share) {
    return kDeviations * std::sqrt(std::max(0.0, share * (1 - share)) / code.answers);
  };
  own.by_code = true;
  own.value = std::min(1.0, reads + awake * value);
  own.low = std::clamp(reads + awake * (code.data - error(code.data)), 0.0, 1.0);
  own.high = std::min(1.0, reads + awake * (most + error(most)));
  return own;
}

bool hides_loading(const JobCase& c) {
  if (!c.own_loading || (c.told && c.told->waits)) return false;
  const OwnLoading& own = *c.own_loading;
  const double most = c.at_most_idle(own.high);
  if (!own.by_code) return most >= kClearShare;
  // A band so wide that begins near nothing leaves everything open.
  constexpr double kTooWide = 0.3;
  return own.low < kLeastShare && most - own.low > kTooWide;
}

void own_loading_rules(const JobCase& c, std::vector<JobFinding>& out) {
  if (c.workers_each > 0) return;
  if (c.told && c.told->waits) return add_told(c, out);
  if (c.own_loading && c.own_loading->by_code) return add_by_code(c, *c.own_loading, out);
  add_by_reading(c, c.own_loading ? c.own_loading->high : 1, out);
}

}  // namespace stoker::findings
