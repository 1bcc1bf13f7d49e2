// How much of a card the safe batch leaves unused. Nobody measured largest batches on the A100, so
// cards are made up from its peaks:
//
// A batch b that ran with peak P needs at most P; it also needs no more than any larger batch of
// the model that ran, so its need is the least peak of all batches from b up (a peak above that was
// memory that cuDNN took because it was there). A card with exactly that much memory runs b, and
// nothing larger, unless a larger measured batch needs no more. The safe batch of that card is the
// largest that the forecast says to need no more at most. No forecast decides which rows
// count. Beside it stands what nobody could know better: the line through two other measured
// batches of the same model, which errs only by what the allocator and cuDNN do unevenly.

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "accuracy/common/bench.h"
#include "accuracy/common/conditions.h"
#include "accuracy/memory/device_peaks.h"
#include "accuracy/memory/measures.h"
#include "forecast/memory_forecast.h"
#include "lower/loop/lower.h"
#include "memory/replay/replay.h"

namespace stoker::accuracy {
namespace {

constexpr std::string_view kGpu = "A100-SXM4-40GB";
/// Margins to compare with: shares of the forecast.
constexpr std::array<double, 5> kMargins{0, 0.02, 0.04, 0.06, 0.10};
/// The case whose share of what exceeds the context is the margin over two other measured batches.
constexpr std::string_view kCase = "cnn-fp32-benchmark";
/// The search for the safe batch ends at this multiple of the largest measured one.
constexpr std::int64_t kFurthest = 4;

/// The largest batch up to `limit` that `fits`, taken as monotone; 0: none.
template <class Fits>
std::int64_t largest(std::int64_t limit, Fits&& fits) {
  std::int64_t low = 0, high = limit + 1;
  while (high - low > 1) {
    const std::int64_t middle = (low + high) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

/// Forecast peaks of one model by batch; MiB.
class ForecastPeaks {
 public:
  ForecastPeaks(const Bench& bench, const Step& step, const Machine& machine)
      : bench_(bench), step_(step), machine_(machine) {}

  struct Peak {
    double value = 0, needed = 0;
  };

  /// Infinite when the batch cannot be lowered.
  const Peak& at(std::int64_t batch) {
    const auto known = peaks_.find(batch);
    if (known != peaks_.end()) return known->second;
    Peak& peak = peaks_[batch];
    Job job = timm_train_job();
    job.batch = batch;
    const auto program = lower(step_, job, machine_);
    if (!program) return peak = {INFINITY, INFINITY}, peak;
    ReplayOptions options;
    options.detail = ReplayDetail::kVerdict;
    const Bytes bytes = replay(*program, options).reserved_peak + outside_bytes(*program);
    const MemoryErrorCase error =
        bench_.knowledge.memory_case(memory_error_case(*program, job, machine_));
    peak.value = mebibytes(bytes);
    peak.needed = peak.value * (1 + error.need_above(bytes, workspace_share(*program, bytes)));
    return peak;
  }

 private:
  const Bench& bench_;
  const Step& step_;
  const Machine& machine_;
  std::map<std::int64_t, Peak> peaks_;
};

/// Shares of what the card truly runs, and how often the answer was more than that.
struct Answers {
  std::vector<double> shares;
  std::int64_t too_large = 0;

  void add(std::int64_t answer, std::int64_t truth) {
    shares.push_back(static_cast<double>(answer) / static_cast<double>(truth));
    too_large += static_cast<std::int64_t>(answer > truth);
  }
};

void report(Measure& measure, const std::string& name, Answers answers) {
  if (answers.shares.empty()) return;
  std::sort(answers.shares.begin(), answers.shares.end());
  const auto rows = static_cast<double>(answers.shares.size());
  measure.shares.emplace_back(name + "_median_of_true", 100 * quantile(answers.shares, 0.5));
  measure.shares.emplace_back(name + "_too_large",
                              100 * static_cast<double>(answers.too_large) / rows);
}

using Peaks = std::map<std::int64_t, double>;  ///< measured, of one model, by batch; MiB

struct Need {
  std::int64_t batch = 0;
  double mebibytes = 0;
};

/// Needs of a model's measured batches, smallest batch first.
std::vector<Need> needs_of(const Peaks& peaks) {
  std::vector<Need> needs;
  double least = INFINITY;
  for (auto it = peaks.rbegin(); it != peaks.rend(); ++it) {
    least = std::min(least, it->second);
    needs.push_back({it->first, least});
  }
  std::reverse(needs.begin(), needs.end());
  return needs;
}

/// The line through the needs of the two measured batches that are nearest to `needs[own]`, which
/// is left out itself.
struct Line {
  double fixed = 0, of_a_sample = 0;  ///< MiB

  [[nodiscard]] double at(std::int64_t batch) const {
    return fixed + of_a_sample * static_cast<double>(batch);
  }
};

/// nullopt where there are no two other batches, or the larger one needs no more.
std::optional<Line> line_of_neighbours(const std::vector<Need>& needs, std::size_t own) {
  std::vector<Need> others = needs;
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(own));
  if (others.size() < 2) return std::nullopt;
  const auto distance = [&](const Need& need) {
    return std::abs(
        std::log(static_cast<double>(need.batch) / static_cast<double>(needs[own].batch)));
  };
  std::stable_sort(others.begin(), others.end(),
                   [&](const Need& a, const Need& b) { return distance(a) < distance(b); });
  Line line;
  line.of_a_sample = (others[1].mebibytes - others[0].mebibytes) /
                     static_cast<double>(others[1].batch - others[0].batch);
  line.fixed = others[0].mebibytes - line.of_a_sample * static_cast<double>(others[0].batch);
  return line.of_a_sample > 0 ? std::optional(line) : std::nullopt;
}

/// The largest measured batch that a card of exactly this much memory runs.
std::int64_t truth_of(const std::vector<Need>& needs, const Need& card) {
  std::int64_t truth = card.batch;
  for (const Need& other : needs) {
    if (other.mebibytes <= card.mebibytes) truth = std::max(truth, other.batch);
  }
  return truth;
}

/// What two other measured batches of the same model say of each card: a forecast without an error
/// of its own, so its errors are those of segments, trials and whole batches. Needs no captures.
void report_neighbours(Measure& measure, const std::map<std::string, Peaks>& ran,
                       const MemoryErrorCase& error) {
  Answers bare, with_share;
  for (const auto& [model, peaks] : ran) {
    const std::vector<Need> needs = needs_of(peaks);
    const std::int64_t limit = kFurthest * needs.back().batch;
    for (std::size_t own = 0; own < needs.size(); ++own) {
      const auto line = line_of_neighbours(needs, own);
      if (!line) continue;
      const double card = needs[own].mebibytes;
      const std::int64_t truth = truth_of(needs, needs[own]);
      bare.add(largest(limit, [&](std::int64_t batch) { return line->at(batch) <= card; }), truth);
      with_share.add(largest(limit,
                             [&](std::int64_t batch) {
                               const double peak = std::max(1.0, line->at(batch));
                               const Bytes bytes(static_cast<std::int64_t>(peak * kMebibyte));
                               return peak * (1 + error.need_above(bytes, 0)) <= card;
                             }),
                     truth);
    }
  }
  measure.shares.emplace_back("two_other_batches_rows", static_cast<double>(bare.shares.size()));
  report(measure, "two_other_batches", std::move(bare));
  report(measure, "two_other_batches_and_share", std::move(with_share));
}

}  // namespace

std::vector<Measure> run_safe_batch(Bench& bench, const Table& table) {
  Measure measure;
  measure.name = "memory/timm-a100-safe-batch";
  measure.what = "safe largest batch on made-up cards that just run a measured one";
  const auto gpu = bench.gpus.find(kGpu);
  if (!gpu) return or_note(tl::unexpected(gpu.error()), measure.name);
  Machine machine;
  machine.device = *gpu;
  std::map<std::string, Peaks> ran;
  for (const CsvRow* row : sampled(bench, table)) {
    if ((*row)["status"] == "ok")
      ran[std::string((*row)["model"])][static_cast<std::int64_t>(number(*row, "batch_size"))] =
          number(*row, "max_gpu_memory_mib");
  }
  Answers safe, safe_from_32;
  std::map<std::int64_t, Answers> by_truth;
  std::array<Answers, kMargins.size()> with_margin;
  for (const auto& [model, peaks] : ran) {
    const auto step = bench.captures.get({"timm:" + model, "fp32", {}, {}});
    const auto known = bench.parameters.find(model);
    const double millions = known == bench.parameters.end() ? std::nan("") : known->second;
    if (!step || !check_parameters(**step, millions)) continue;  // listed by timm-a100
    ForecastPeaks forecast(bench, **step, machine);
    const std::vector<Need> needs = needs_of(peaks);
    const auto largest_with = [&](auto&& fits) {
      return largest(kFurthest * needs.back().batch,
                     [&](std::int64_t batch) { return fits(forecast.at(batch)); });
    };
    for (const Need& card : needs) {
      const std::int64_t truth = truth_of(needs, card);
      const std::int64_t answer =
          largest_with([&](const auto& peak) { return peak.needed <= card.mebibytes; });
      safe.add(answer, truth);
      by_truth[truth].add(answer, truth);
      if (truth >= 32) safe_from_32.add(answer, truth);
      for (std::size_t m = 0; m < kMargins.size(); ++m) {
        with_margin[m].add(largest_with([&](const auto& peak) {
                             return peak.value * (1 + kMargins[m]) <= card.mebibytes;
                           }),
                           truth);
      }
    }
  }
  measure.score.rows = static_cast<std::int64_t>(safe.shares.size());
  report(measure, "safe", std::move(safe));
  report(measure, "safe_where_32_or_more_run", std::move(safe_from_32));
  for (auto& [truth, answers] : by_truth)
    report(measure, "safe_where_" + std::to_string(truth) + "_run", std::move(answers));
  for (std::size_t m = 0; m < kMargins.size(); ++m) {
    report(measure, "margin_" + std::to_string(std::lround(100 * kMargins[m])) + "_percent",
           std::move(with_margin[m]));
  }
  report_neighbours(measure, ran, bench.knowledge.memory_case(std::string(kCase)));
  return {std::move(measure)};
}

}  // namespace stoker::accuracy
