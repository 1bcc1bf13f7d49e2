// The peak that nvidia-smi shows, of timm models in fp32 on an A100 with 40 GB.

#include <algorithm>
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

constexpr std::string_view kGpu = "A100-SXM4-40GB";  // DGX Station A100
/// The cheap baseline of docs/models/memory.md: two constants over what fake tensors add up to.
constexpr double kBaselineFactor = 1.14;
constexpr double kBaselineMiB = 1850;

CaptureRequest request_for(const CsvRow& row) {
  return {"timm:" + std::string(row["model"]), "fp32", {}, {}};
}

/// Errors of a column (or a function of columns) on the same rows.
template <class Predict>
Rival rival_of(const std::string& name, const std::vector<const CsvRow*>& rows, Predict&& predict) {
  std::vector<Pair> pairs;
  for (const CsvRow* row : rows) {
    const double value = predict(*row);
    if (std::isfinite(value))
      pairs.push_back({"", "", number(*row, "max_gpu_memory_mib"), value, {}});
  }
  const Score s = score(pairs);
  return {name, s.rows, s.mape, s.mdape, s.p90};
}

/// PyTorch gives up when one block is larger than what is left. A run that died below this share of
/// the card would have had to ask for the rest of it in one piece: it died of something else.
constexpr double kUsedByDeaths = 0.5;

struct Verdicts {
  std::int64_t rows = 0, fits_wrongly = 0, fails_wrongly = 0, unclear = 0;

  void add(bool ran, bool predicted) {
    ++rows;
    fits_wrongly += static_cast<std::int64_t>(predicted && !ran);
    fails_wrongly += static_cast<std::int64_t>(!predicted && ran);
  }
};

/// Largest batch of each model that is known to have run: what failed below it did so for another
/// reason.
std::map<std::string, double> largest_that_ran(const std::vector<const CsvRow*>& rows) {
  std::map<std::string, double> largest;
  for (const CsvRow* row : rows) {
    if ((*row)["status"] != "ok") continue;
    double& batch = largest[std::string((*row)["model"])];
    batch = std::max(batch, number(*row, "batch_size"));
  }
  return largest;
}

constexpr double kBump = 1.1;   // above the line
constexpr double kSame = 0.03;  // peaks of runs that ended at the same place

/// What the table alone says about one peak of a model: `others` are all its rows; `too_much` asks
/// why it is more than was forecast. Activations grow
/// with the batch, so a peak that a larger batch stays below, or that lies above the line between a
/// smaller and a larger batch, is memory that was taken because it was there. A peak on a
/// mostly empty card that is also that of runs which died is where those died.
std::string cause_of(const CsvRow& row, const std::vector<const CsvRow*>& others, double card_mib,
                     bool too_much) {
  const double batch = number(row, "batch_size"), peak = number(row, "max_gpu_memory_mib");
  for (const CsvRow* other : others) {
    const double b = number(*other, "batch_size"), p = number(*other, "max_gpu_memory_mib");
    if ((*other)["status"] == "oom_or_failed" && std::abs(p / peak - 1) < kSame &&
        peak < kUsedByDeaths * card_mib)
      return "died early like other batches of the model, though labelled ok";
    if (!too_much || (*other)["status"] != "ok" || b <= batch) continue;
    if (p * kBump < peak) return "more than a larger batch needs: cudnn.benchmark's trials";
    for (const CsvRow* small : others) {
      const double b0 = number(*small, "batch_size"), p0 = number(*small, "max_gpu_memory_mib");
      if ((*small)["status"] != "ok" || b0 >= batch) continue;
      if ((p0 + (p - p0) * (batch - b0) / (b - b0)) * kBump < peak)
        return "above the line between smaller and larger batches: cudnn.benchmark's trials";
    }
  }
  return {};
}

class TimmA100 {
 public:
  TimmA100(Bench& bench, const Table& table)
      : bench_(bench), rows_(sampled(bench, table)), ran_(largest_that_ran(rows_)) {
    measure_.name = "memory/timm-a100";
    measure_.what = "device peak, fp32 training with timm's train.py, A100 40 GB";
  }

  Result<std::vector<Measure>> run() {
    auto gpu = TRY(bench_.gpus.find(kGpu));
    machine_.device = gpu;
    for (const CsvRow* row : rows_) one(*row);
    finish();
    return std::vector<Measure>{std::move(measure_), verdict_measure()};
  }

 private:
  void one(const CsvRow& row) {
    const std::string model(row["model"]);
    const std::string label = model + " batch " + std::string(row["batch_size"]);
    const auto step = bench_.captures.get(request_for(row));
    if (!step) return measure_.unserved.push_back({label, step.error().text()});
    const auto known = bench_.parameters.find(model);
    const double millions = known == bench_.parameters.end() ? std::nan("") : known->second;
    if (auto same = check_parameters(**step, millions); !same)
      return measure_.unserved.push_back({label, same.error().text()});
    Job job = timm_train_job();
    job.batch = static_cast<std::int64_t>(number(row, "batch_size"));
    const auto program = lower(**step, job, machine_);
    if (!program) return measure_.unserved.push_back({label, program.error().text()});
    const std::string kind = memory_error_case(*program, job, machine_);
    const MemoryForecast forecast = forecast_memory(*program, machine_, {}, bench_.knowledge, kind);
    if (row["status"] == "ok") {
      const Figure& peak = forecast.device_peak;
      const Band band{1 - peak.low / peak.value, peak.high / peak.value - 1};
      measure_.pairs.push_back({family_of(model), label, number(row, "max_gpu_memory_mib"),
                                peak.value / kMebibyte, band, kind});
      measure_.pairs.back().workspace =
          workspace_share(*program, Bytes(static_cast<std::int64_t>(peak.value))) *
          measure_.pairs.back().predicted;
      scored_.push_back(&row);
      outside_ = static_cast<double>(outside_bytes(*program).count()) / kMebibyte;
    }
    add_verdict(row, model, forecast.fits);
  }

  /// Rows whose outcome is certain without looking at any forecast: they ran well below the card's
  /// size, or they died and no larger batch of the model ran. Close to the card's size nobody knows
  /// what happened.
  void add_verdict(const CsvRow& row, const std::string& model, bool fits) {
    if (row["status"] == "ok") {
      full_.add(true, fits);
      return verdicts_.add(true, fits);
    }
    const bool other_reason = ran_.count(model) > 0 && ran_.at(model) > number(row, "batch_size");
    if (row["status"] == "near_cap" || other_reason) return void(++verdicts_.unclear);
    const double used =
        number(row, "max_gpu_memory_mib") / mebibytes(machine_.device->usable_memory);
    if (used >= kUsedByDeaths) full_.add(false, fits);
    if (fits) {
      wrong_fits_.push_back("said to fit: " + model + " batch " + std::string(row["batch_size"]) +
                            ", which died at " + std::to_string(std::lround(100 * used)) +
                            " % of the card");
    }
    verdicts_.add(false, fits);
  }

  void find_causes() {
    std::map<std::string, std::vector<const CsvRow*>> models;
    for (const CsvRow* row : rows_) models[std::string((*row)["model"])].push_back(row);
    for (std::size_t i = 0; i < scored_.size(); ++i) {
      const CsvRow& row = *scored_[i];
      Pair& pair = measure_.pairs[i];
      pair.cause = cause_of(row, models[std::string(row["model"])],
                            mebibytes(machine_.device->usable_memory), pair.predicted < pair.truth);
    }
  }

  /// A batch needs no more than any larger one of its model that ran.
  void find_needs() {
    for (std::size_t i = 0; i < scored_.size(); ++i) {
      Pair& pair = measure_.pairs[i];
      pair.need = pair.truth;
      for (const CsvRow* other : scored_) {
        if ((*other)["model"] == (*scored_[i])["model"] &&
            number(*other, "batch_size") > number(*scored_[i], "batch_size"))
          pair.need = std::min(pair.need, number(*other, "max_gpu_memory_mib"));
      }
    }
  }

  void finish() {
    measure_.score = score(measure_.pairs);
    find_causes();
    find_needs();
    const auto fake = [](const CsvRow& row) {
      return std::max({number(row, "faketensor_after_forward_mib"),
                       number(row, "faketensor_after_backward_mib"),
                       number(row, "faketensor_final_mib")});
    };
    const Rival plain = rival_of("fake-tensor sum", scored_, fake);
    const Rival line =
        rival_of("1.14 x fake-tensor sum + 1850 MiB", scored_,
                 [&](const CsvRow& row) { return kBaselineFactor * fake(row) + kBaselineMiB; });
    measure_.rival = line.mdape < plain.mdape ? line : plain;
    measure_.shares.emplace_back("fake_tensor_mdape", plain.mdape);
    cross();
  }

  void cross() {
    std::vector<Pair> bare = measure_.pairs;
    for (Pair& p : bare) p.predicted -= outside_;
    const auto offsets = cross_fit(bare, fitted_offset,
                                   [](Pair p, double offset) { return p.predicted += offset, p; });
    const auto judged = [&](BandGrowth growth) {
      return score(cross_fit(
          offsets, [&](const std::vector<Pair>& pairs) { return bands_by_kind(pairs, growth); },
          [](Pair p, const auto& bands) {
            const auto own = bands.find(p.kind);
            p.band = (own == bands.end() ? bands.at("") : own->second).at(p.predicted);
            return p;
          }));
    };
    measure_.cross_fitted = judged(BandGrowth::kFitted);
    for (const auto& [name, growth] : {std::pair{"proportional", BandGrowth::kProportional},
                                       {"constant_width", BandGrowth::kConstant}}) {
      const Score s = judged(growth);
      measure_.shares.emplace_back(std::string(name) + "_band_holds", s.coverage.value_or(0));
      measure_.shares.emplace_back(std::string(name) + "_band_width", s.width.value_or(0));
      measure_.shares.emplace_back(std::string(name) + "_band_score", s.interval_score.value_or(0));
    }
    measure_.shares.emplace_back("fitted_context_mib", bare.empty() ? 0 : fitted_offset(bare));
    measure_.shares.emplace_back("shipped_context_mib", outside_);
  }

  Measure verdict_measure() const {
    Measure m;
    m.name = "memory/timm-a100-verdict";
    m.what = "does it run on 40 GB (simulation under capacity, no margin)";
    const double rows = std::max<double>(1, static_cast<double>(verdicts_.rows));
    m.score.rows = verdicts_.rows;
    m.notes = wrong_fits_;
    m.shares = {{"fits_wrongly", 100 * static_cast<double>(verdicts_.fits_wrongly) / rows},
                {"fails_wrongly", 100 * static_cast<double>(verdicts_.fails_wrongly) / rows},
                {"fits_wrongly_but_for_deaths_on_an_empty_card",
                 100 * static_cast<double>(full_.fits_wrongly) /
                     std::max<double>(1, static_cast<double>(full_.rows))},
                {"rows_but_for_deaths_on_an_empty_card", static_cast<double>(full_.rows)},
                {"unclear_rows", static_cast<double>(verdicts_.unclear)}};
    return m;
  }

  Bench& bench_;
  std::vector<const CsvRow*> rows_;
  std::map<std::string, double> ran_;
  Machine machine_;
  Measure measure_;
  std::vector<const CsvRow*> scored_;
  Verdicts verdicts_;
  Verdicts full_;  ///< without deaths that left most of the card unused
  std::vector<std::string> wrong_fits_;
  double outside_ = 0;
};

}  // namespace

std::vector<CaptureRequest> wanted_timm_a100(const Bench& bench, const Table& table) {
  std::vector<CaptureRequest> requests;
  for (const CsvRow* row : sampled(bench, table)) requests.push_back(request_for(*row));
  return requests;
}

std::vector<Measure> run_timm_a100(Bench& bench, const Table& table) {
  return or_note(TimmA100(bench, table).run(), "memory/timm-a100");
}

}  // namespace stoker::accuracy
