#include "accuracy/common/measured_rows.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/text.h"

namespace stoker::accuracy {
namespace {

/// The number behind a flag of `stoker predict` in the row's "flags"; NaN when it is not there.
double flag_value(const CsvRow& row, std::string_view flag) {
  const auto words = split(std::string(row["flags"]), ' ');
  const auto it = std::find(words.begin(), words.end(), flag);
  if (it == words.end() || it + 1 == words.end()) return std::nan("");
  return std::strtod((it + 1)->c_str(), nullptr);
}

}  // namespace

bool has_flag(const CsvRow& row, std::string_view flag) {
  const auto words = split(std::string(row["flags"]), ' ');
  return std::find(words.begin(), words.end(), flag) != words.end();
}

CaptureRequest measured_request(const CsvRow& row) {
  std::string precision(row["precision"]);
  if (precision == "tf32") precision = "fp32";
  return {std::string(row["spec"]), precision, {}, {}};
}

Result<Job> measured_job(const CsvRow& row) {
  Job job;
  const auto precision = TRY(parse_precision(row["precision"]));
  const auto kind = TRY(parse_optimizer(row["optimizer"]));
  job.precision = precision;
  job.optimizer.kind = kind;
  job.optimizer.loop = default_loop(kind);
  if (!row["optimizer_loop"].empty()) {
    const auto loop = TRY(parse_optimizer_loop(row["optimizer_loop"]));
    job.optimizer.loop = loop;
  }
  const double decay = flag_value(row, "--weight-decay");
  if (std::isfinite(decay)) job.optimizer.weight_decay = decay;
  const double accumulate = flag_value(row, "--accumulate");
  if (std::isfinite(accumulate)) job.accumulate = static_cast<int>(accumulate);
  job.channels_last = has_flag(row, "--channels-last");
  job.clip = has_flag(row, "--clip");
  job.grad_scaler = has_flag(row, "--grad-scaler");
  const bool trials = row["cudnn_benchmark"] == "1" || has_flag(row, "--cudnn-benchmark");
  job.cudnn = trials ? CudnnProfile::kBenchmark : CudnnProfile::kDefault;
  job.batch = static_cast<std::int64_t>(number(row, "batch"));
  return job;
}

std::vector<CaptureRequest> wanted_measured(const Bench& bench, const Table& table) {
  std::vector<CaptureRequest> requests;
  for (const CsvRow* row : sampled(bench, table)) requests.push_back(measured_request(*row));
  return requests;
}

}  // namespace stoker::accuracy
