#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/result.h"
#include "input/probe/pipeline_probe.h"
#include "input/probe/probe.h"
#include "input/probe/sample_cost.h"
#include "step/step.h"

namespace stoker::cli {

/// What the user said about the data.
struct DataRequest {
  std::string data;         ///< folder or file of data, or probe file of one or of a pipeline
  std::string sample_cost;  ///< "2.5ms"
  std::optional<std::int64_t> samples;
  std::optional<std::int64_t> image_size;
  bool reprobe = false;
};

struct LoadedData {
  SampleCost sample;
  std::int64_t samples = 0;               ///< of an epoch, 0: unknown
  std::optional<Probe> probe;             ///< of data in files
  std::optional<PipelineProbe> pipeline;  ///< of the user's own Dataset or DataLoader
};

/// Probes the folder (or takes a probe that is remembered and still true), reads a probe file, or
/// takes the given cost. Refuses pictures for a model that takes none; a probe of a pipeline is
/// taken for any model.
[[nodiscard]] Result<LoadedData> load_data(const DataRequest& request, const Step& step,
                                           const std::map<std::string, std::int64_t>& dimensions,
                                           const LoaderProfile& profile);

/// The same where no step says what a sample is: `shape` of a sample, `side` of pictures (0: `taker`,
/// "gpt2 takes sequence", takes none). An empty `taker` takes anything; a line of text then counts as
/// 512 tokens.
[[nodiscard]] Result<LoadedData> load_data_for(const DataRequest& request, const OutputShape& shape,
                                               std::int64_t side, const std::string& taker,
                                               const LoaderProfile& profile);

/// A file that is data itself (a tar shard, a text), not a probe file.
[[nodiscard]] bool is_data_file(const std::string& path);

/// Side of the pictures that a step takes, [batch, 1 | 3 | 4, height, width] of floats or bytes; 0
/// when its first input is none.
[[nodiscard]] std::int64_t picture_side(const Step& step);

/// Probes a folder with progress on stderr from the second second on.
[[nodiscard]] Result<Probe> probe_with_progress(const std::string& folder,
                                                const ProbeOptions& options);

/// "2.5ms", "300us", "0.1 s".
[[nodiscard]] Result<Nanos> parse_time(const std::string& text, const std::string& flag);

}  // namespace stoker::cli
