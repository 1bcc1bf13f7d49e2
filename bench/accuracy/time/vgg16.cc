// VGG-16 in FP32 by batch, pass and optimizer, as TensorFlow 1 ran it.

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "accuracy/common/bench.h"
#include "accuracy/common/step_times.h"
#include "accuracy/time/measures.h"
#include "base/files.h"
#include "step/step_reader.h"

namespace stoker::accuracy {
namespace {

/// "sgd" of the table has no momentum, "momentum" is SGD with it.
Status set_optimizer(std::string_view name, Job& job) {
  job.optimizer = {};
  if (name == "none") {
    job.optimizer.kind = OptimizerKind::kNone;
    return {};
  }
  const auto kind = TRY(parse_optimizer(name == "momentum" ? "sgd" : std::string(name)));
  job.optimizer.kind = kind;
  if (name == "sgd") job.optimizer.momentum = 0;
  return {};
}

Result<Pair> vgg_row(const Bench& bench, const Step& step, const CsvRow& row,
                     const std::string& label) {
  const auto gpu = TRY(bench.gpus.find(row["gpu"]));
  Machine machine;
  machine.device = gpu;
  Job job;
  job.batch = static_cast<std::int64_t>(number(row, "batch"));
  job.cudnn = CudnnProfile::kBenchmark;  // TensorFlow tries all algorithms
  job.copy = CopyWay::kOverlapped;       // the batch is on the GPU
  TRY(set_optimizer(row["optimizer"], job));
  const auto time = TRY(time_of(bench, step, job, machine));
  Nanos predicted = time.total;
  if (row["pass"] == "fwd")
    predicted = time.phase_elapsed[static_cast<std::size_t>(StepPhase::kForward)];
  return Pair{std::string(row["pass"]), label, number(row, "time_ms"), milliseconds(predicted),
              time.band};
}

/// The constant time of a call that makes the least mean error of the logarithm, in milliseconds.
double constant_of(const std::vector<Pair>& pairs) {
  constexpr double kMost = 100, kStep = 0.25;
  double best = 0, least = HUGE_VAL;
  for (double constant = 0; constant <= kMost; constant += kStep) {
    double loss = 0;
    for (const Pair& pair : pairs)
      loss += std::abs(std::log((pair.predicted + constant) / pair.truth));
    if (loss < least) least = loss, best = constant;
  }
  return best;
}

/// The same rows with a constant for each pass, fitted on every other batch size and scored on
/// those between, both ways: the table's times go to 20 ms (forward) and 60 ms (training) at batch
/// 0, which no arithmetic and no traffic on the GPU explains, since the parameters are read in half
/// a millisecond.
Measure with_constants(const std::map<std::string, std::vector<Pair>>& by_pass) {
  Measure measure;
  measure.name = "time/vgg16-v100/constant-from-other-batches";
  measure.what = "the same with one constant a pass, fitted on the other half of the batch sizes";
  for (const auto& [pass, pairs] : by_pass) {
    std::vector<Pair> sorted = pairs, scored;
    std::sort(sorted.begin(), sorted.end(),
              [](const Pair& a, const Pair& b) { return a.truth < b.truth; });
    for (const std::size_t held : {0, 1}) {
      std::vector<Pair> others;
      for (std::size_t i = 1 - held; i < sorted.size(); i += 2) others.push_back(sorted[i]);
      const double constant = constant_of(others);
      for (std::size_t i = held; i < sorted.size(); i += 2) {
        scored.push_back(sorted[i]);
        scored.back().predicted += constant;
      }
    }
    measure.shares.emplace_back(pass, score(scored).mape);
    std::move(scored.begin(), scored.end(), std::back_inserter(measure.pairs));
  }
  measure.score = score(measure.pairs);
  return measure;
}

}  // namespace

std::vector<Measure> run_vgg16(Bench& bench, const Table& table) {
  Measure measure;
  measure.name = "time/vgg16-v100";
  measure.what = "VGG-16, TensorFlow 1, FP32, by batch, pass and optimizer, V100; never fitted on";
  const auto folder = data_folder();
  const auto step = folder ? read_step_file(*folder / "zoo" / "vgg16.fp32.step.gz")
                           : Result<Step>(tl::unexpected(folder.error()));
  if (!step) return or_note(tl::unexpected(step.error()), measure.name);
  std::map<std::string, std::vector<Pair>> by_pass;
  for (const CsvRow* row : sampled(bench, table)) {
    const std::string label = std::string((*row)["pass"]) + " " + std::string((*row)["optimizer"]) +
                              " batch " + std::string((*row)["batch"]);
    if (auto pair = vgg_row(bench, *step, *row, label)) {
      by_pass[pair->group].push_back(*pair);
      measure.pairs.push_back(std::move(*pair));
    } else {
      measure.unserved.push_back({label, pair.error().text()});
    }
  }
  for (const auto& [pass, pairs] : by_pass) measure.shares.emplace_back(pass, score(pairs).mape);
  measure.score = score(measure.pairs);
  return {measure, with_constants(by_pass)};
}

}  // namespace stoker::accuracy
