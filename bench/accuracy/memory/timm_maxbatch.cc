// The largest batch that ran of timm's benchmark.py in AMP on an RTX 3090, among the batches that
// it tries.

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "accuracy/common/bench.h"
#include "accuracy/common/conditions.h"
#include "accuracy/memory/measures.h"
#include "forecast/memory_forecast.h"
#include "lower/gpu/outside.h"
#include "lower/loop/lower.h"
#include "memory/replay/largest_batch.h"
#include "memory/replay/replay.h"

namespace stoker::accuracy {
namespace {

/// timm/utils/decay_batch.py from 512 downwards: what benchmark.py tries after each failure; 0 is
/// "none ran".
constexpr std::array<std::int64_t, 19> kTried{512, 384, 256, 192, 128, 96, 64, 48, 32, 24,
                                              16,  12,  8,   6,   4,   3,  2,  1,  0};
/// Contexts that cross-fitting chooses from.
constexpr std::int64_t kContextFirstMiB = 600, kContextLastMiB = 3000, kContextStepMiB = 100;
constexpr std::size_t kContexts = (kContextLastMiB - kContextFirstMiB) / kContextStepMiB + 1;

std::size_t place_of(double batch) {
  const auto it = std::find(kTried.begin(), kTried.end(), static_cast<std::int64_t>(batch));
  return static_cast<std::size_t>(it - kTried.begin());
}

/// What one row says and what is predicted for it: places in kTried.
struct Answer {
  std::string family, label, layout;
  std::size_t truth = 0;
  std::size_t shipped = 0, safe = 0;        ///< with the context that ships
  std::array<std::size_t, kContexts> at{};  ///< by context
};

/// Programs of one job at the tried batches, made when needed.
class Ladder {
 public:
  Ladder(const Step& step, const Job& job, const Machine& machine)
      : step_(step), job_(job), machine_(machine) {}

  [[nodiscard]] bool fits(std::size_t place, Bytes capacity, CacheFlush flush) {
    if (kTried[place] == 0) return true;
    const Program* program = at(place);
    if (program == nullptr) return false;
    ReplayOptions options;
    options.detail = ReplayDetail::kVerdict;
    if (flush == CacheFlush::kNever) return replay(*program, options).reserved_peak <= capacity;
    options.capacity = capacity;
    options.total = machine_.device->usable_memory;
    return replay(*program, options).fits();
  }

  /// The first that runs, from `from` on.
  [[nodiscard]] std::size_t first_fitting(std::size_t from, Bytes capacity,
                                          CacheFlush flush = CacheFlush::kAllowed) {
    while (!fits(from, capacity, flush)) ++from;
    return from;
  }

  [[nodiscard]] const Program* at(std::size_t place) {
    const auto known = programs_.find(place);
    if (known != programs_.end()) return known->second ? &*known->second : nullptr;
    Job job = job_;
    job.batch = kTried[place];
    auto program = lower(step_, job, machine_);
    if (program) reuse_input(*program);
    auto& kept = programs_[place];
    if (program) kept = std::move(*program);
    return kept ? &*kept : nullptr;
  }

 private:
  const Step& step_;
  Job job_;
  const Machine& machine_;
  std::map<std::size_t, std::optional<Program>> programs_;
};

/// The forecast of a job that needs the capacity at most.
Bytes forecast_that_fills(Bytes capacity, const MemoryErrorCase& error, double workspace_share) {
  constexpr int kRounds = 30;
  Bytes forecast = capacity;
  for (int round = 0; round < kRounds; ++round) {
    forecast = Bytes(static_cast<std::int64_t>(static_cast<double>(capacity.count()) /
                                               (1 + error.need_above(forecast, workspace_share))));
  }
  return forecast;
}

struct Tally {
  double rows = 0, exact = 0, large = 0, small = 0, far = 0;

  void add(std::size_t truth, std::size_t predicted) {
    ++rows;
    exact += static_cast<double>(predicted == truth);
    large += static_cast<double>(predicted < truth);
    small += static_cast<double>(predicted > truth);
    far += static_cast<double>(predicted > truth + 1 || truth > predicted + 1);
  }
  [[nodiscard]] double percent(double of) const { return rows > 0 ? 100 * of / rows : 0; }
};

class TimmMaxBatch {
 public:
  TimmMaxBatch(Bench& bench, const Table& table) : bench_(bench), rows_(sampled(bench, table)) {
    measure_.name = "memory/timm-maxbatch-rtx3090";
    measure_.what = "largest batch of those tried, AMP fp16, PyTorch 1.12, RTX 3090 24 GB";
  }

  Result<std::vector<Measure>> run() {
    for (const CsvRow* row : rows_) {
      TRY(one(*row));
    }
    finish();
    return std::vector<Measure>{std::move(measure_)};
  }

 private:
  Status one(const CsvRow& row) {
    const std::string model(row["model"]);
    const std::string layout(row["layout"]);
    const std::string label = model + " " + layout + " " + std::string(row["img_size"]) + " px";
    Machine machine;
    const std::string card(row["gpu"]);
    auto gpu = bench_.gpus.find(card.substr(0, card.find('_')));  // "rtx3090_24gb"
    if (!gpu) return tl::unexpected(gpu.error());
    machine.device = *gpu;
    const std::size_t truth = place_of(number(row, "batch_fits"));
    if (truth >= kTried.size() - 1)
      return measure_.unserved.push_back({label, "its batch is none of those tried"}), Status{};
    const auto captured = bench_.captures.get(timm_benchmark_request(row));
    if (!captured) return measure_.unserved.push_back({label, captured.error().text()}), Status{};
    if (auto same = check_parameters(**captured, number(row, "param_count_m")); !same) {
      return measure_.unserved.push_back({label, same.error().text()}), Status{};
    }
    const Step step = with_autocast_until_end(**captured);
    answer(row, step, machine, {family_of(model), label, layout, truth, 0, 0, {}});
    return {};
  }

  void answer(const CsvRow& row, const Step& step, const Machine& machine, Answer a) {
    const Job job = timm_benchmark_job(row["layout"] == "nhwc");
    Ladder ladder(step, job, machine);
    const Bytes usable = machine.device->usable_memory;
    const Program* smallest = ladder.at(kTried.size() - 2);
    if (smallest == nullptr)
      return measure_.unserved.push_back({a.label, "cannot be lowered at batch 1"});
    const Bytes outside = outside_bytes(*smallest);
    shipped_context_ = mebibytes(outside);
    a.shipped = ladder.first_fitting(0, usable - outside);
    const MemoryErrorCase error =
        bench_.knowledge.memory_case(memory_error_case(*smallest, job, machine));
    // As `plan` and `predict` answer: the allocator need not give its cache back.
    const Program* largest = ladder.at(a.shipped);
    const double share = workspace_share(largest != nullptr ? *largest : *smallest, usable);
    a.safe = ladder.first_fitting(a.shipped, forecast_that_fills(usable, error, share) - outside,
                                  CacheFlush::kNever);
    std::size_t place = 0;
    for (std::size_t c = 0; c < kContexts; ++c) {
      const Bytes context((kContextFirstMiB + static_cast<std::int64_t>(c) * kContextStepMiB)
                          << 20);
      a.at[c] = place = ladder.first_fitting(place, usable - context);
    }
    answers_.push_back(std::move(a));
  }

  void finish() {
    for (const Answer& a : answers_) {
      measure_.pairs.push_back({a.family,
                                a.label,
                                static_cast<double>(kTried[a.truth]),
                                static_cast<double>(kTried[a.shipped]),
                                {}});
    }
    measure_.score = score(measure_.pairs);
    report("", "", [](const Answer& a) { return a.shipped; });
    report_safe();
    const auto crossed = [&](const Answer& a) { return a.at[context_of(1 - half_of(a.family))]; };
    contexts_ = {best_context(0), best_context(1), best_context(-1)};
    report("cross_fitted_", "", crossed);
    for (const std::string layout : {"nchw", "nhwc"})
      report("cross_fitted_" + layout + "_", layout, crossed);
    measure_.shares.emplace_back("shipped_context_mib", shipped_context_);
    measure_.shares.emplace_back("fitted_context_mib", context_mib(contexts_[2]));
  }

  static double context_mib(std::size_t c) {
    return static_cast<double>(kContextFirstMiB + static_cast<std::int64_t>(c) * kContextStepMiB);
  }
  std::size_t context_of(int half) const { return contexts_[static_cast<std::size_t>(half)]; }

  /// The context with which most of that half's answers are exact (the middle of the best stretch);
  /// -1: all.
  std::size_t best_context(int half) const {
    std::array<double, kContexts> exact{};
    for (const Answer& a : answers_) {
      if (half >= 0 && half_of(a.family) != half) continue;
      for (std::size_t c = 0; c < kContexts; ++c)
        exact[c] += static_cast<double>(a.at[c] == a.truth);
    }
    const double best = *std::max_element(exact.begin(), exact.end());
    std::vector<std::size_t> among;
    for (std::size_t c = 0; c < kContexts; ++c) {
      if (exact[c] == best) among.push_back(c);
    }
    return among[among.size() / 2];
  }

  template <class Predict>
  void report(const std::string& prefix, const std::string& layout, Predict&& predict) {
    Tally tally;
    for (const Answer& a : answers_) {
      if (layout.empty() || a.layout == layout) tally.add(a.truth, predict(a));
    }
    if (tally.rows == 0) return;
    measure_.shares.emplace_back(prefix + "exact", tally.percent(tally.exact));
    measure_.shares.emplace_back(prefix + "too_large", tally.percent(tally.large));
    measure_.shares.emplace_back(prefix + "too_small", tally.percent(tally.small));
    measure_.shares.emplace_back(prefix + "off_by_more_than_a_step", tally.percent(tally.far));
  }

  void report_safe() {
    double ran = 0, near = 0;
    for (const Answer& a : answers_) {
      ran += static_cast<double>(a.safe >= a.truth);
      near += static_cast<double>(a.safe == a.truth || a.safe == a.truth + 1);
    }
    const double rows = std::max<double>(1, static_cast<double>(answers_.size()));
    measure_.shares.emplace_back("safe_ran", 100 * ran / rows);
    measure_.shares.emplace_back("safe_exact_or_one_lower", 100 * near / rows);
  }

  Bench& bench_;
  std::vector<const CsvRow*> rows_;
  std::vector<Answer> answers_;
  std::array<std::size_t, 3> contexts_{};  ///< best for half 0, half 1, all
  double shipped_context_ = 0;
  Measure measure_;
};

}  // namespace

std::vector<Measure> run_timm_maxbatch(Bench& bench, const Table& table) {
  return or_note(TimmMaxBatch(bench, table).run(), "memory/timm-maxbatch-rtx3090");
}

}  // namespace stoker::accuracy
