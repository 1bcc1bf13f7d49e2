// Forward passes in evaluation mode by batch: at small batches the host limits them, at large ones
// the GPU. The only table whose rows are limited by the host.

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "accuracy/common/bench.h"
#include "accuracy/common/step_times.h"
#include "accuracy/time/measures.h"

namespace stoker::accuracy {
namespace {

/// A batch is beyond the host's limit when it takes so many times what the smallest batches take.
constexpr double kBeyond = 1.25;
/// Batches whose time says what the host needs: the smallest of a series.
constexpr std::size_t kFloorBatches = 2;

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

Result<StepTime> forecast(Bench& bench, const CsvRow& row) {
  const Job job = TRY(job_of(row));
  Machine machine;
  machine.device = TRY(bench.gpus.find(row["gpu"]));
  const auto step = TRY(bench.captures.get(request_for(row)));
  return time_of(bench, *step, job, machine, Unseen::kNothing);
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
  bool host_named = false, host_limits = false;
};

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

std::vector<Measure> run_inference_latency(Bench& bench, const Table& table) {
  const auto rows = sampled(bench, table);
  const auto floors = floors_of(rows);
  std::vector<Scored> scored;
  std::vector<Unserved> unserved;
  std::map<std::string, std::vector<Point>> series;
  for (const CsvRow* row : rows) {
    const std::string name = series_of(*row);
    const std::string label = name + " batch " + std::string((*row)["batch"]);
    if (!has_truth(*row)) {
      unserved.push_back({label, "the row states no batch or no throughput"});
      continue;
    }
    const auto time = forecast(bench, *row);
    if (!time) {
      unserved.push_back({label, time.error().text()});
      continue;
    }
    const double batch = number(*row, "batch");
    const double truth = 1e3 * batch / number(*row, "samples_per_s");
    const double said = milliseconds(time->total);
    series[name].push_back({batch, truth, said});
    scored.push_back({{family_of((*row)["model"]), label, truth, said, time->band,
                       time->host_bound() ? "host-bound" : "device-bound"},
                      !(*row)["host_cpu"].empty(),
                      truth < kBeyond * floors.at(name)});
  }
  std::vector<Measure> measures;
  measures.push_back(part_of(scored, "", "", [](const Scored&) { return true; }));
  add_limits(series, measures.back());
  measures.back().unserved = std::move(unserved);
  measures.push_back(part_of(scored, "-host-named", ", whose host's CPU the table names",
                             [](const Scored& s) { return s.host_named; }));
  measures.push_back(part_of(scored, "-host-unnamed", ", whose host is unknown",
                             [](const Scored& s) { return !s.host_named; }));
  measures.push_back(part_of(scored, "-host-limits", ", batches that take what one sample takes",
                             [](const Scored& s) { return s.host_limits; }));
  measures.push_back(part_of(scored, "-gpu-limits", ", batches that take longer than one sample",
                             [](const Scored& s) { return !s.host_limits; }));
  std::erase_if(measures, [](const Measure& m) { return m.pairs.empty() && m.unserved.empty(); });
  return measures;
}

}  // namespace stoker::accuracy
