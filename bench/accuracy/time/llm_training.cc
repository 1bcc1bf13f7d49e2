// Language models under FSDP on 8 to 512 GPUs: the time of one optimizer step. The two figures that
// are fitted to these rows are fitted anew without the rows that are scored.

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "accuracy/common/llm_rows.h"
#include "accuracy/time/measures.h"
#include "lower/loop/lower.h"
#include "timing/step/predict_step.h"

namespace stoker::accuracy {
namespace {

/// How well large products are fed, and what share of its rate flash attention reaches
/// (data/coefficients/timing/language_models.json).
constexpr std::size_t kFitted = 2;
using Change = std::array<double, kFitted>;  ///< of their logarithms
constexpr double kStep = 0.05;               ///< for derivatives
/// Relative errors beyond it pull a fit no more than in proportion.
constexpr double kRobust = 0.05;
/// Throughputs of one model that are further apart than this should come out in the right order.
constexpr double kApart = 1.03;

double& fitted(Coefficients& c, std::size_t which) {
  return which == 0 ? c.kernel.tensor_gemm_exponent
                    : c.classes[static_cast<std::size_t>(CostClass::kFlashAttention)].compute;
}

/// A row's time by the coefficients that ship, and how it changes with each that is fitted.
struct Timed {
  Pair pair;
  std::string gpu;
  std::string series;  ///< rows that differ in the number of GPUs alone
  int gpus = 0;
  Change slope{};  ///< of the logarithm

  [[nodiscard]] double error() const { return std::log(pair.predicted / pair.truth); }
};

Result<Timed> timed(Bench& bench, const LlmRow& llm) {
  const auto step = TRY(llm_step(bench, llm));
  if (std::isnan(llm.step_ms)) return fail(ErrorCode::kNotFound, "no throughput");
  const Program program = TRY(lower(*step, llm.job, llm.machine));
  const Coefficients shipped = TRY(bench.knowledge.timing.for_device(llm.machine.device));
  const StepTimeOptions options{
      .copy = llm.job.copy, .gpus = llm.machine.gpu_count, .nodes = llm.job.nodes};
  const StepTime time = predict_step(program, llm.machine, shipped, options);
  const CsvRow& row = *llm.row;
  Timed result{
      {std::string(row["model"]), llm.label, llm.step_ms, milliseconds(time.total), time.band},
      std::string(row["gpu"]),
      std::string(row["model"]) + "/" + std::string(row["seq_len"]) + "/" +
          std::string(row["micro_batch"]) + "/" + std::string(row["accumulate"]) + "/" +
          std::string(row["gpu"]),
      llm.job.gpus};
  for (std::size_t i = 0; i < kFitted; ++i) {
    Coefficients moved = shipped;
    fitted(moved, i) *= std::exp(kStep);
    const StepTime other = predict_step(program, llm.machine, moved, options);
    result.slope[i] = std::log(other.total / time.total) / kStep;
  }
  return result;
}

/// Least squares of logarithms, in which large errors count less; to first order.
Change fit(const std::vector<const Timed*>& rows) {
  Change change{};
  for (int round = 0; round < 20; ++round) {
    double a = 0, b = 0, c = 0, u = 0, v = 0;
    for (const Timed* row : rows) {
      const double e = row->error() + row->slope[0] * change[0] + row->slope[1] * change[1];
      const double weight = 1 / std::max(1.0, std::abs(e) / kRobust);
      a += weight * row->slope[0] * row->slope[0], b += weight * row->slope[0] * row->slope[1];
      c += weight * row->slope[1] * row->slope[1];
      u -= weight * row->slope[0] * row->error(), v -= weight * row->slope[1] * row->error();
    }
    const double determinant = a * c - b * b;
    if (!(determinant > 0)) return {};
    change = {(u * c - v * b) / determinant, (a * v - b * u) / determinant};
  }
  return change;
}

Pair moved(const Timed& row, const Change& change) {
  Pair pair = row.pair;
  pair.predicted *= std::exp(row.slope[0] * change[0] + row.slope[1] * change[1]);
  return pair;
}

/// Each row by coefficients that saw none of the rows that `name` gives the same name.
std::vector<Pair> left_out(const std::vector<Timed>& rows,
                           const std::function<std::string(const Timed&)>& name) {
  std::set<std::string> names;
  for (const Timed& row : rows) names.insert(name(row));
  std::vector<Pair> pairs;
  for (const std::string& out : names) {
    std::vector<const Timed*> others;
    for (const Timed& row : rows) {
      if (name(row) != out) others.push_back(&row);
    }
    const Change change = fit(others);
    for (const Timed& row : rows) {
      if (name(row) == out) pairs.push_back(moved(row, change));
    }
  }
  return pairs;
}

/// "A100" of "A100-SXM4-80GB": boards with one chip are left out together.
std::string chip_of(const Timed& row) { return row.gpu.substr(0, row.gpu.find('-')); }

/// Pairs of rows that differ in the number of GPUs alone and whose throughputs are apart.
void add_order(const std::vector<Timed>& rows, Measure& measure) {
  double all = 0, right = 0;
  for (const Timed& few : rows) {
    for (const Timed& many : rows) {
      if (few.series != many.series || few.gpus >= many.gpus) continue;
      const double truth = many.pair.truth / few.pair.truth;
      if (std::max(truth, 1 / truth) < kApart) continue;
      ++all;
      right += (truth > 1) == (many.pair.predicted > few.pair.predicted) ? 1 : 0;
    }
  }
  if (all == 0) return;
  measure.shares.emplace_back("numbers of GPUs apart", all);
  measure.shares.emplace_back("in order", 100 * right / all);
}

Measure measure_of(std::string name, std::string what, std::vector<Pair> pairs) {
  Measure measure;
  measure.name = std::move(name);
  measure.what = std::move(what);
  measure.score = score(pairs);
  measure.pairs = std::move(pairs);
  return measure;
}

}  // namespace

std::vector<Measure> run_llm_training(Bench& bench, const Table& table) {
  const auto shapes = llm_shapes(bench);
  std::vector<Timed> rows;
  std::vector<Pair> otherwise;
  std::vector<Unserved> unserved;
  for (const CsvRow* row : sampled(bench, table)) {
    const auto llm = llm_row(bench, *row, shapes);
    auto one = llm ? timed(bench, *llm) : tl::unexpected(llm.error());
    if (one && llm->is_otherwise) otherwise.push_back(one->pair);
    else if (one) rows.push_back(std::move(*one));
    else unserved.push_back({llm ? llm->label : std::string((*row)["model"]), one.error().text()});
  }
  std::vector<Pair> shipped;
  std::map<std::string, std::vector<Pair>> parts;
  std::vector<const Timed*> all;
  for (const Timed& row : rows) {
    shipped.push_back(row.pair);
    parts[row.gpu].push_back(row.pair);
    all.push_back(&row);
  }
  std::vector<Measure> measures;
  measures.push_back(measure_of("time/llm-training",
                                "ms of an optimizer step of language models under FSDP", shipped));
  measures[0].unserved = std::move(unserved);
  for (const auto& [name, pairs] : parts)
    measures[0].shares.emplace_back("mape " + name, score(pairs).mape);
  add_order(rows, measures[0]);
  const Change best = fit(all);
  measures[0].shares.emplace_back("best change of tensor_gemm_exponent", 100 * best[0]);
  measures[0].shares.emplace_back("best change of flash_attention.compute", 100 * best[1]);
  measures.push_back(
      measure_of("time/llm-training/size-left-out",
                 "the same; the two fitted figures without any row of the model, to first order",
                 left_out(rows, [](const Timed& row) { return row.pair.group; })));
  measures.push_back(measure_of("time/llm-training/gpu-left-out",
                                "the same without any row of the GPU's chip",
                                left_out(rows, chip_of)));
  if (otherwise.empty()) return measures;
  measures.push_back(measure_of("time/llm-training/compiled-or-selective",
                                "the same under torch.compile, or with single operators computed "
                                "again (selective); nothing was fitted",
                                std::move(otherwise)));
  return measures;
}

}  // namespace stoker::accuracy
