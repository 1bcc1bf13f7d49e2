// How much of a card the safe batch leaves unused. Nobody measured largest batches on the A100, so
// cards are made up from its peaks:
//
// A batch b that ran with peak P needs at most P; it also needs no more than any larger batch of
// the model that ran, so its need is the least peak of all batches from b up (a peak above that was
// memory that cuDNN took because it was there). A card with exactly that much memory runs b, and
// nothing larger, unless a larger measured batch needs no more. The safe batch of that card is the
// largest that the forecast says to need no more at most. No forecast decides which rows
// count.

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

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
/// The search for the safe batch ends at this multiple of the largest measured one.
constexpr std::int64_t kFurthest = 4;

/// Forecast peaks of one model by batch; MiB.
class Peaks {
 public:
  Peaks(const Bench& bench, const Step& step, const Machine& machine)
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

  /// The largest batch up to `limit` that `fits`, taken as monotone; 0: none.
  template <class Fits>
  std::int64_t largest(std::int64_t limit, Fits&& fits) {
    std::int64_t low = 0, high = limit + 1;
    while (high - low > 1) {
      const std::int64_t middle = (low + high) / 2;
      (fits(at(middle)) ? low : high) = middle;
    }
    return low;
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

struct Need {
  std::int64_t batch = 0;
  double mebibytes = 0;
};

/// Needs of a model's measured batches, smallest batch first.
std::vector<Need> needs_of(const std::map<std::int64_t, double>& peaks) {
  std::vector<Need> needs;
  double least = INFINITY;
  for (auto it = peaks.rbegin(); it != peaks.rend(); ++it) {
    least = std::min(least, it->second);
    needs.push_back({it->first, least});
  }
  std::reverse(needs.begin(), needs.end());
  return needs;
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
  std::map<std::string, std::map<std::int64_t, double>> ran;
  for (const CsvRow* row : sampled(bench, table)) {
    if ((*row)["status"] == "ok")
      ran[std::string((*row)["model"])][static_cast<std::int64_t>(number(*row, "batch_size"))] =
          number(*row, "max_gpu_memory_mib");
  }
  Answers safe, safe_from_32;
  std::array<Answers, kMargins.size()> with_margin;
  for (const auto& [model, peaks] : ran) {
    const auto step = bench.captures.get({"timm:" + model, "fp32", {}, {}});
    const auto known = bench.parameters.find(model);
    const double millions = known == bench.parameters.end() ? std::nan("") : known->second;
    if (!step || !check_parameters(**step, millions)) continue;  // listed by timm-a100
    Peaks forecast(bench, **step, machine);
    const std::vector<Need> needs = needs_of(peaks);
    const std::int64_t limit = kFurthest * needs.back().batch;
    for (const Need& card : needs) {
      std::int64_t truth = card.batch;
      for (const Need& other : needs) {
        if (other.mebibytes <= card.mebibytes) truth = std::max(truth, other.batch);
      }
      const std::int64_t answer =
          forecast.largest(limit, [&](const Peaks::Peak& p) { return p.needed <= card.mebibytes; });
      safe.add(answer, truth);
      if (truth >= 32) safe_from_32.add(answer, truth);
      for (std::size_t m = 0; m < kMargins.size(); ++m) {
        with_margin[m].add(forecast.largest(limit,
                                            [&](const Peaks::Peak& p) {
                                              return p.value * (1 + kMargins[m]) <= card.mebibytes;
                                            }),
                           truth);
      }
    }
  }
  measure.score.rows = static_cast<std::int64_t>(safe.shares.size());
  report(measure, "safe", std::move(safe));
  report(measure, "safe_where_32_or_more_run", std::move(safe_from_32));
  for (std::size_t m = 0; m < kMargins.size(); ++m) {
    report(measure, "margin_" + std::to_string(std::lround(100 * kMargins[m])) + "_percent",
           std::move(with_margin[m]));
  }
  return {std::move(measure)};
}

}  // namespace stoker::accuracy
