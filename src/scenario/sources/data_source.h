#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/result.h"
#include "device/machine.h"
#include "input/pipeline/pipeline_probe.h"
#include "input/probe/probe.h"
#include "input/probe/sample_cost.h"
#include "scenario/request/request.h"
#include "scenario/sources/tools.h"
#include "step/step.h"

namespace stoker {

struct LoadedData {
  SampleCost sample;
  std::int64_t samples = 0;               ///< of an epoch, 0: unknown
  std::optional<Probe> probe;             ///< of data in files
  std::optional<PipelineProbe> pipeline;  ///< of the user's own Dataset or DataLoader
  bool well_known = false;                ///< published figures alone; nothing was measured
};

/// What takes the samples.
struct SampleTaker {
  OutputShape shape;      ///< of a sample as the loader hands it over
  std::int64_t side = 0;  ///< of images; 0: it takes none
  /// "gpt2 takes sequence", for a refusal of other data; "": anything is taken, and a line of text
  /// counts as 512 tokens.
  std::string who;
};

/// Probes the folder (or takes a probe that is remembered and still true), reads a probe file, or
/// takes the given cost. Refuses images for a model that takes none; a probe of a pipeline is
/// taken for any model.
[[nodiscard]] Result<LoadedData> load_data(const DataRequest& request, const Step& step,
                                           const std::map<std::string, std::int64_t>& dimensions,
                                           const LoaderProfile& profile,
                                           const ScenarioTools& tools);

/// Loads the data where no step says what a sample is.
[[nodiscard]] Result<LoadedData> load_data_for(const DataRequest& request, const SampleTaker& taker,
                                               const LoaderProfile& profile,
                                               const ScenarioTools& tools);

/// A well-known data set's cost is that of the loader profile's machine: scaled to the processor of
/// the host, where that is known. Anything else was measured where it runs.
void take_processor(const LoadedData& data, const Host& host, SampleCost& sample);

/// Where the data will lie, if it was said: the kind's figures on the host, and what one reader
/// sees in the sample.
[[nodiscard]] Status take_storage(const DataRequest& request, Host& host, SampleCost& sample);

/// A file that is data itself (a tar shard, a text), not a probe file.
[[nodiscard]] bool is_data_file(const std::string& path);

}  // namespace stoker
