#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "cli/request/run_options.h"
#include "diagnosis/next_run/observed_run.h"
#include "scenario/request/request.h"

namespace stoker::cli {

/// One GPU of several in --gpu, and where in that list it stands.
struct NamedGpu {
  std::string name;
  std::size_t position = 0;
  int count = 0;  ///< of "4xa100-80gb"; 0: the name says nothing of how many
};
/// The GPUs that --gpu names: "a100-80gb", or "4xa100-80gb" for four of them.
[[nodiscard]] std::vector<NamedGpu> named_gpus(const RunOptions& o);
/// Refuses to compare a GPU with itself: "t4,t4" is how two in one machine are written elsewhere.
[[nodiscard]] Status check_different(const std::vector<NamedGpu>& gpus);

/// How a model that is captured on the fly is captured.
[[nodiscard]] CaptureWishes capture_wishes(const RunOptions& o);

/// What the flags ask for on one GPU, without --gpus, --batch and --precision, whose forms differ
/// by verb.
[[nodiscard]] Result<RunRequest> run_request(const RunOptions& o, const NamedGpu& gpu);

/// A recording tells what samples cost, so that nothing else may.
[[nodiscard]] Status check_from(const RunOptions& o);

/// What the recording of --from teaches; --batch says how many samples a batch of it had where the
/// recording does not tell.
[[nodiscard]] Result<ObservedRun> observed_in(const RunOptions& o);

/// The request for exactly these settings: with one number of GPUs and one precision.
[[nodiscard]] Result<RunRequest> exact_request(const RunOptions& o, const NamedGpu& gpu);

/// What the flags say of the training loop and of how GPUs share it.
[[nodiscard]] Result<JobRequest> job_request(const JobOptions& o);

/// "seq_len=128" of --dim, and --seq-len.
[[nodiscard]] Result<std::map<std::string, std::int64_t>> parse_dimensions(
    const std::string& seq_len, const std::vector<std::string>& texts);

/// "64", or "max" for the largest safe batch; "": nothing was said.
[[nodiscard]] Result<std::optional<BatchRequest>> parse_batch(const std::string& text);

/// The one number of GPUs that --gpu or --gpus names; 1 when neither does.
[[nodiscard]] Result<int> gpus_of(const RunOptions& o, const NamedGpu& gpu);
/// "1", "1,2,4" or "1..8" -> counts in rising order.
[[nodiscard]] Result<std::vector<int>> parse_counts(const std::string& text);

/// A price per GPU and hour; any number, whose range is the scenario's to check.
[[nodiscard]] Result<double> parse_price(const std::string& text);

/// "2.5ms", "300us", "0.1 s".
[[nodiscard]] Result<Nanos> parse_time(const std::string& text, const std::string& flag);

}  // namespace stoker::cli
