// Forward passes in evaluation mode by batch: at small batches the host limits them, at large ones
// the GPU. The only table whose rows are limited by the host.

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "accuracy/common/bench.h"
#include "accuracy/common/step_times.h"
#include "accuracy/time/measures.h"
#include "device/host/host_speed.h"
#include "lower/loop/lower.h"
#include "timing/common/data_sheet.h"

namespace stoker::accuracy {
namespace {

/// A batch is beyond the host's limit when it takes so many times what the smallest batches take.
constexpr double kBeyond = 1.25;
/// Batches whose time says what the host needs: the smallest of a series.
constexpr std::size_t kFloorBatches = 2;
constexpr double kWinogradSaves = 4;

bool is_half(const CsvRow& row) { return row["precision"].starts_with("amp-"); }

CaptureRequest request_for(const CsvRow& row) {
  CaptureRequest request{"timm:" + std::string(row["model"]),
                         is_half(row) ? std::string(row["precision"]) : "fp32"};
  const double pixels = number(row, "image_size");
  if (pixels >= 1) request.image_size = static_cast<std::int64_t>(pixels);
  request.mode = "inference";
  return request;
}

bool has_truth(const CsvRow& row) {
  return number(row, "batch") >= 1 && number(row, "samples_per_s") > 0;
}

/// Model, image, GPU, host and precision: what a series of batches shares.
std::string series_of(const CsvRow& row) {
  std::string name;
  for (const char* column : {"model", "image_size", "gpu", "host_cpu", "precision"})
    name += (name.empty() ? "" : " ") + std::string(row[column]);
  return name;
}

Result<Job> job_of(const CsvRow& row) {
  Job job;
  job.batch = static_cast<std::int64_t>(number(row, "batch"));
  job.precision = TRY(parse_precision(row["precision"]));
  job.tf32_matmul = job.precision == Precision::kTf32;
  job.optimizer.kind = OptimizerKind::kNone;
  job.cudnn = CudnnProfile::kBenchmark;
  job.copy = CopyWay::kOverlapped;  // synthetic batches that lie on the device
  return job;
}

/// What of the host a forecast is told.
enum class Told : std::uint8_t {
  kProcessor,     ///< its name, with what published rows say of it
  kCoreAndClock,  ///< its name, with no row of it seen
  kNothing
};

Status name_host(std::string_view cpu, Told told, Host& host) {
  if (cpu.empty() || told == Told::kNothing) return {};
  const HostSpeed known = TRY(host_speed(cpu));
  host.cpu = known.cpu;
  host.dispatch_speed = known.speed / (told == Told::kCoreAndClock ? known.measured : 1);
  host.dispatch_spread = told == Told::kCoreAndClock ? kListedSpread : known.spread;
  host.dispatch_basis = known.basis;
  return {};
}

/// Milliseconds below which the data sheet allows no forward pass whose operators run one by one:
/// each moves its bytes, or does its arithmetic at the full rate. Convolutions above 1 x 1 count a
/// quarter of theirs: no algorithm of cuDNN saves more than Winograd's F(4x4, 3x3).
double least_ms(const Program& program, const Gpu& gpu) {
  double seconds = 0;
  for (const Instruction& in : program.iteration) {
    if (in.kind != InstructionKind::kLaunch || in.when == When::kFirst) continue;
    const Kernel& kernel = program.kernels[in.value];
    const auto* shape = std::get_if<ConvolutionShape>(&kernel.shape);
    const bool saves = shape != nullptr && *std::ranges::max_element(shape->kernel) > 1;
    const double bytes = static_cast<double>(kernel.read.count() + kernel.written.count());
    const double flops = kernel.flops.count() / (saves ? kWinogradSaves : 1);
    seconds += std::max(flops / nominal_peak(gpu, kernel.unit), bytes / gpu.bandwidth);
  }
  return 1e3 * seconds;
}

struct Forecasted {
  StepTime time;
  double least_ms = 0;
};

Result<Forecasted> forecast(Bench& bench, const CsvRow& row, Told told) {
  const Job job = TRY(job_of(row));
  Machine machine;
  const Gpu gpu = TRY(bench.gpus.find(row["gpu"]));
  machine.device = gpu;
  TRY(name_host(row["host_cpu"], told, machine.host));
  const auto step = TRY(bench.captures.get(request_for(row)));
  const Program program = TRY(lower(*step, job, machine));
  return Forecasted{TRY(time_of(bench, *step, job, machine, Unseen::kNothing)),
                    least_ms(program, gpu)};
}

struct Point {
  double batch = 0, truth = 0, predicted = 0;  ///< ms
};

/// The first batch that takes clearly longer than the smallest ones; 0: none does.
double first_beyond(const std::vector<Point>& series, double Point::*time) {
  double least = 0;
  for (std::size_t i = 0; i < std::min(kFloorBatches, series.size()); ++i)
    least = i == 0 ? series[i].*time : std::min(least, series[i].*time);
  for (const Point& point : series) {
    if (point.*time > kBeyond * least) return point.batch;
  }
  return 0;
}

/// How often the batch from which the GPU limits is right, and right within one doubling.
void add_limits(std::map<std::string, std::vector<Point>>& all, Measure& measure) {
  int series_seen = 0, exact = 0, near = 0;
  for (auto& [name, series] : all) {
    std::sort(series.begin(), series.end(),
              [](const Point& a, const Point& b) { return a.batch < b.batch; });
    const double truth = first_beyond(series, &Point::truth);
    if (truth == 0) continue;
    ++series_seen;
    const double said = first_beyond(series, &Point::predicted);
    exact += said == truth ? 1 : 0;
    const bool right = said > 0 && said <= 2 * truth && 2 * said >= truth;
    near += right ? 1 : 0;
    if (right) continue;
    measure.notes.push_back(name + ": the GPU limits from batch " +
                            std::to_string(static_cast<int>(truth)) + ", forecast " +
                            (said > 0 ? std::to_string(static_cast<int>(said)) : "never"));
  }
  if (series_seen == 0) return;
  measure.shares.emplace_back("series", series_seen);
  measure.shares.emplace_back("gpu_limits_from_exact", 100.0 * exact / series_seen);
  measure.shares.emplace_back("gpu_limits_from_within_one_doubling", 100.0 * near / series_seen);
}

/// A row beside its forecast, with what it belongs to.
struct Scored {
  Pair pair;
  bool host_named = false, host_limits = false, possible = true;
};

bool is_any(const Scored&) { return true; }
bool has_named_host(const Scored& s) { return s.host_named; }
bool has_unnamed_host(const Scored& s) { return !s.host_named; }
bool is_host_limited(const Scored& s) { return s.host_limits; }
bool is_gpu_limited(const Scored& s) { return !s.host_limits; }
bool is_possible(const Scored& s) { return s.possible; }

/// Times that the smallest batches of each series take: below `kBeyond` times that the host limits.
std::map<std::string, double> floors_of(const std::vector<const CsvRow*>& rows) {
  std::map<std::string, std::map<double, double>> series;
  for (const CsvRow* row : rows) {
    if (has_truth(*row))
      series[series_of(*row)][number(*row, "batch")] =
          1e3 * number(*row, "batch") / number(*row, "samples_per_s");
  }
  std::map<std::string, double> floors;
  for (const auto& [name, times] : series) {
    double least = times.begin()->second;
    if (times.size() > 1) least = std::min(least, std::next(times.begin())->second);
    floors[name] = least;
  }
  return floors;
}

Measure part_of(const std::vector<Scored>& scored, std::string_view suffix, std::string_view what,
                bool (*has)(const Scored&)) {
  Measure part;
  part.name = "time/inference-latency" + std::string(suffix);
  part.what = "forward passes in evaluation mode, one GPU" + std::string(what);
  for (const Scored& one : scored) {
    if (has(one)) part.pairs.push_back(one.pair);
  }
  part.score = score(part.pairs);
  return part;
}

}  // namespace

std::vector<CaptureRequest> wanted_inference_latency(const Bench& bench, const Table& table) {
  std::vector<CaptureRequest> requests;
  for (const CsvRow* row : sampled(bench, table)) requests.push_back(request_for(*row));
  return requests;
}

namespace {

/// All rows beside their forecasts.
std::vector<Scored> scored_rows(Bench& bench, const std::vector<const CsvRow*>& rows, Told told,
                                std::map<std::string, std::vector<Point>>& series,
                                std::vector<Unserved>& unserved) {
  const auto floors = floors_of(rows);
  std::vector<Scored> scored;
  for (const CsvRow* row : rows) {
    const std::string name = series_of(*row);
    const std::string label = name + " batch " + std::string((*row)["batch"]);
    if (!has_truth(*row)) {
      unserved.push_back({label, "the row states no batch or no throughput"});
      continue;
    }
    const auto found = forecast(bench, *row, told);
    if (!found) {
      unserved.push_back({label, found.error().text()});
      continue;
    }
    const double batch = number(*row, "batch");
    const double truth = 1e3 * batch / number(*row, "samples_per_s");
    const double said = milliseconds(found->time.total);
    const bool possible = truth >= found->least_ms;
    series[name].push_back({batch, truth, said});
    scored.push_back({{family_of((*row)["model"]), label, truth, said, found->time.band,
                       found->time.host_bound() ? "host-bound" : "device-bound",
                       possible ? "" : "less than the data sheet of the GPU that it names allows"},
                      !(*row)["host_cpu"].empty(),
                      truth < kBeyond * floors.at(name),
                      possible});
  }
  return scored;
}

struct Part {
  const char* suffix;
  const char* what;
  bool (*has)(const Scored&);
};
constexpr std::array kParts{
    Part{"-possible", ", without rows that their GPU's data sheet forbids", is_possible},
    Part{"-host-named", ", whose host's processor the table names", has_named_host},
    Part{"-host-unnamed", ", whose host is unknown", has_unnamed_host},
    Part{"-host-limits", ", batches that take what one sample takes", is_host_limited},
    Part{"-gpu-limits", ", batches that take longer than one sample", is_gpu_limited}};

}  // namespace

std::vector<Measure> run_inference_latency(Bench& bench, const Table& table) {
  const auto rows = sampled(bench, table);
  std::vector<Measure> measures;
  std::vector<Unserved> unserved;
  std::map<std::string, std::vector<Point>> series;
  const auto scored = scored_rows(bench, rows, Told::kProcessor, series, unserved);
  measures.push_back(part_of(scored, "", "", is_any));
  add_limits(series, measures.back());
  measures.back().unserved = std::move(unserved);
  for (const Part& part : kParts)
    measures.push_back(part_of(scored, part.suffix, part.what, part.has));
  for (const auto& [told, suffix, what] :
       {std::tuple(Told::kCoreAndClock, "-host-named/no-row-of-the-processor",
                   ", whose host's processor is named, by its core and clock alone"),
        std::tuple(Told::kNothing, "-host-named/processor-not-said",
                   ", the same rows with the host that such a GPU usually has")}) {
    std::vector<Unserved> again;
    std::map<std::string, std::vector<Point>> others;
    measures.push_back(
        part_of(scored_rows(bench, rows, told, others, again), suffix, what, has_named_host));
    add_limits(others, measures.back());
  }
  std::erase_if(measures, [](const Measure& m) { return m.pairs.empty() && m.unserved.empty(); });
  return measures;
}

}  // namespace stoker::accuracy
