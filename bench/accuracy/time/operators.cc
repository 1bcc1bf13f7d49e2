// Single operators in FP32, each called alone on an idle GPU: GEMM, element-wise and norms, 3x3
// convolution.

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "accuracy/common/bench.h"
#include "accuracy/time/measures.h"
#include "accuracy/time/row_offset.h"
#include "base/text.h"
#include "timing/gpu/kernel_cost.h"
#include "timing/learned/residual_features.h"

namespace stoker::accuracy {
namespace {

/// An operator's time on an idle GPU never falls below what the host needs to issue it (the floor);
/// beyond, it is a gap, this share of the floor, and the kernel: T = max(floor, gap + kernel).
constexpr double kGap = 0.55;
/// Floors in microseconds where the table has no small rows of the host: median of the hosts, and
/// what operators take relative to `add`. Both from the rows of NeuSight's tables.
constexpr double kHostFloor = 26.4;
const std::map<std::string_view, double> kOperatorFloor{
    {"pow", 1.02},  {"tanh", 0.98},  {"addu", 1.17}, {"mulu", 1.17}, {"divu", 1.17},
    {"powu", 1.12}, {"relu", 1.2},   {"gelu", 1.15}, {"ln", 1.8},    {"softmax", 1.27},
    {"bmm", 1.18},  {"linear", 2.0}, {"conv", 2.0}};
/// Rows whose kernels take less than this by the plain rules show the floor alone.
constexpr Seconds kSmallKernel{1.5e-6};
constexpr std::size_t kRowsOfFloor = 10;
/// The operator whose rows hold an offset.
constexpr std::string_view kWithOffset = "conv";
/// The two large tables are scored at every so many shapes, by hash: some 20,000 rows tell enough.
constexpr std::uint64_t kEvery = 4;
/// Arithmetic of `pow` for an element; others 1.
constexpr double kPowFlops = 16;

struct OperatorRow {
  std::string gpu, op;
  Kernel kernel;
  double milliseconds = 0;
  std::uint64_t shape = 0;
};

Kernel fp32_kernel(KernelClass kernel_class, double flops, double read, double written) {
  Kernel kernel;
  kernel.kernel_class = kernel_class;
  kernel.flops = Flops(flops);
  kernel.read = Bytes(static_cast<std::int64_t>(4 * read));
  kernel.written = Bytes(static_cast<std::int64_t>(4 * written));
  kernel.elements = static_cast<std::int64_t>(written);
  return kernel;
}

/// The table's N is the contracted dimension.
std::optional<Kernel> gemm_kernel(const CsvRow& row) {
  const double b = number(row, "B"), m = number(row, "M"), k = number(row, "N"),
               n = number(row, "K");
  if (!(b * m * n * k > 0)) return std::nullopt;
  const bool linear = row["op"] == "linear";
  const double read = linear ? b * m * k + n * k + n : b * (m * k + n * k);
  Kernel kernel = fp32_kernel(KernelClass::kGemm, 2 * b * m * n * k, read, b * m * n);
  const auto whole = [](double x) { return static_cast<std::int64_t>(x); };
  kernel.shape = linear ? GemmShape{1, whole(b * m), whole(n), whole(k), false, true}
                        : GemmShape{whole(b), whole(m), whole(n), whole(k), false, false};
  return kernel;
}

std::optional<Kernel> vector_kernel(const CsvRow& row) {
  const double rows = number(row, "B"), width = number(row, "H"), n = rows * width;
  if (!(n > 0)) return std::nullopt;
  const std::string_view op = row["op"];
  const bool two = op == "add" || op == "mul" || op == "div" || op == "pow";
  const KernelClass kernel_class = op == "ln"        ? KernelClass::kNormalization
                                   : op == "softmax" ? KernelClass::kSoftmax
                                                     : KernelClass::kElementwise;
  Kernel kernel =
      fp32_kernel(kernel_class, n * (op.starts_with("pow") ? kPowFlops : 1), two ? 2 * n : n, n);
  if (kernel_class != KernelClass::kElementwise)
    kernel.shape = RowShape{static_cast<std::int64_t>(rows), static_cast<std::int64_t>(width)};
  return kernel;
}

std::optional<Kernel> convolution_kernel(const CsvRow& row) {
  const double b = number(row, "B"), in = number(row, "Cin"), out = number(row, "Cout"),
               taps = number(row, "ksize"), side = number(row, "in_size"),
               stride = number(row, "stride"), pad = number(row, "pad");
  const double end = std::floor((side + 2 * pad - taps) / stride) + 1;
  if (!(b * in * out * taps * end > 0)) return std::nullopt;
  Kernel kernel = fp32_kernel(KernelClass::kConvolution, 2 * b * end * end * in * out * taps * taps,
                              b * in * side * side + in * out * taps * taps, b * out * end * end);
  const auto whole = [](double x) { return static_cast<std::int64_t>(x); };
  ConvolutionShape shape{.batch = whole(b), .in_channels = whole(in), .out_channels = whole(out)};
  shape.in = {whole(side), whole(side), 1}, shape.out = {whole(end), whole(end), 1};
  shape.kernel = {whole(taps), whole(taps), 1}, shape.stride = {whole(stride), whole(stride), 1};
  kernel.shape = shape;
  return kernel;
}

using KernelOf = std::optional<Kernel> (*)(const CsvRow&);

/// Floors by (GPU, operator) in microseconds: of each host where the table shows it.
using Floors = std::map<std::pair<std::string, std::string>, double>;

double floor_of(const Floors& floors, const OperatorRow& row) {
  if (const auto found = floors.find({row.gpu, row.op}); found != floors.end())
    return found->second;
  const auto ratio = kOperatorFloor.find(row.op);
  return kHostFloor * (ratio == kOperatorFloor.end() ? 1 : ratio->second);
}

struct Subject {
  std::vector<OperatorRow> rows;
  Floors floors;
};

Subject subject_of(const Bench& bench, const Table& table, KernelOf kernel_of,
                   std::uint64_t every) {
  Subject subject;
  std::map<std::string, ResidualFeatures> features;
  std::map<std::pair<std::string, std::string>, std::vector<double>> small;
  for (const CsvRow& row : table) {
    auto kernel = row["dtype"] == "fp32" ? kernel_of(row) : std::nullopt;
    const auto gpu = bench.gpus.find(row["gpu"]);
    const double milliseconds = number(row, "time_ms");
    if (!kernel || !gpu || !(milliseconds > 0)) continue;
    const auto input = features.try_emplace(gpu->name, *gpu).first->second.of(*kernel);
    OperatorRow entry{gpu->name, std::string(row["op"]), *kernel, milliseconds, 0};
    if (input) {
      entry.shape = input->shape;
      if (input->plain < kSmallKernel) small[{entry.gpu, entry.op}].push_back(1e3 * milliseconds);
    }
    // Folds are chosen by the hash's remainder; the sample must not be.
    if (entry.shape / 64 % every == 0) subject.rows.push_back(std::move(entry));
  }
  for (auto& [key, times] : small) {
    if (times.size() < kRowsOfFloor) continue;
    std::sort(times.begin(), times.end());
    subject.floors[key] = quantile(times, 0.5);
  }
  return subject;
}

struct Forecast {
  const OperatorRow* row;
  OffsetForecast time;
};

std::vector<Forecast> forecasts_of(const Bench& bench, const Subject& subject, Unseen unseen,
                                   std::vector<Unserved>& unserved) {
  std::vector<Forecast> forecasts;
  std::map<std::string, CostModel> models;
  for (const OperatorRow& row : subject.rows) {
    auto model = models.find(row.gpu);
    if (model == models.end()) {
      const auto gpu = bench.gpus.find(row.gpu);
      const auto coefficients = bench.timing_for(unseen, row.gpu).for_device(*gpu);
      if (!coefficients) {
        unserved.push_back({row.gpu, coefficients.error().text()});
        continue;
      }
      model = models.emplace(row.gpu, CostModel(*gpu, *coefficients)).first;
    }
    const double floor = floor_of(unseen == Unseen::kGpu ? Floors{} : subject.floors, row);
    const double kernel = model->second.cost_of(row.kernel).time.count() / 1e3 -
                          model->second.coefficients().kernel.floor.count();
    const double span = row.op == kWithOffset ? offset_span(row.gpu, unseen != Unseen::kGpu) : 0;
    forecasts.push_back(
        {&row, {row.shape, 1e3 * row.milliseconds, floor, kGap * floor + kernel, span}});
  }
  return forecasts;
}

/// Scores forecasts whose times, in microseconds, are `times`.
Measure scored(const std::vector<Forecast>& forecasts, const std::vector<double>& times) {
  Measure measure;
  std::map<std::string, std::vector<Pair>> by_gpu;
  for (std::size_t i = 0; i < forecasts.size(); ++i) {
    const OperatorRow& row = *forecasts[i].row;
    by_gpu[row.gpu].push_back(
        {row.op, row.op + " " + row.gpu, row.milliseconds, times[i] / 1e3, std::nullopt});
  }
  for (auto& [gpu, pairs] : by_gpu) {
    measure.shares.emplace_back(gpu, score(pairs).mape);
    std::move(pairs.begin(), pairs.end(), std::back_inserter(measure.pairs));
  }
  std::map<std::string, std::vector<Pair>> by_op;
  for (const Pair& pair : measure.pairs) by_op[pair.group].push_back(pair);
  for (const auto& [op, pairs] : by_op) measure.shares.emplace_back(op, score(pairs).mape);
  measure.score = score(measure.pairs);
  measure.pairs.clear();  // tens of thousands, of interest only together
  measure.notes.push_back("shares are mean errors by GPU and by operator");
  return measure;
}

std::vector<Measure> run(const Bench& bench, const Table& table, KernelOf kernel_of,
                         const std::string& name, std::uint64_t every) {
  const Subject subject = subject_of(bench, table, kernel_of, every);
  std::vector<Measure> measures;
  struct Variant {
    Unseen unseen;
    const char* suffix;
    const char* what;
  };
  for (const auto& [unseen, suffix, what] :
       {Variant{Unseen::kNothing, "", "coefficients as shipped"},
        Variant{Unseen::kShape, "/unseen-shapes", "trees that saw no such shape"},
        Variant{Unseen::kGpu, "/gpu-left-out", "nothing of the GPU seen, not even its host"}}) {
    if (unseen != Unseen::kNothing && bench.folds.empty()) continue;
    std::vector<Unserved> unserved;
    const auto forecasts = forecasts_of(bench, subject, unseen, unserved);
    std::vector<OffsetForecast> forecast_times;
    std::vector<double> times;
    for (const Forecast& f : forecasts) {
      forecast_times.push_back(f.time);
      times.push_back(f.time.unknowing());
    }
    const auto add = [&, suffix = suffix, what = what](const std::vector<double>& said,
                                                       const char* more, const char* means) {
      measures.push_back(scored(forecasts, said));
      measures.back().name = "time/operators-" + name + suffix + more;
      measures.back().what = std::string("single operators, FP32, idle GPU; ") + what + means;
    };
    add(times, "", "");
    measures.back().unserved = std::move(unserved);
    const bool has_offsets = std::any_of(forecast_times.begin(), forecast_times.end(),
                                         [](const OffsetForecast& f) { return f.span > 0; });
    if (has_offsets && unseen != Unseen::kGpu)
      add(told_by_others(forecast_times), "/offset-told",
          "; other GPUs' rows tell the shape's offset");
  }
  return measures;
}

}  // namespace

std::vector<Measure> run_operator_gemm(Bench& bench, const Table& table) {
  return run(bench, table, gemm_kernel, "gemm", kEvery);
}

std::vector<Measure> run_operator_vector(Bench& bench, const Table& table) {
  return run(bench, table, vector_kernel, "elementwise-norm", kEvery);
}

std::vector<Measure> run_operator_convolution(Bench& bench, const Table& table) {
  return run(bench, table, convolution_kernel, "convolution", 1);
}

}  // namespace stoker::accuracy
