#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "forecast/forecast.h"
#include "input/pipeline/pipeline_probe.h"
#include "input/probe/probe.h"
#include "scenario/request/request.h"
#include "step/step.h"

namespace stoker {

/// What an answer must be judged in: what it rests on, what was assumed and left out. Sentences
/// name settings by their marks (base/setting.h).
struct Facts {
  std::string model;        ///< as the user named it
  std::string step_hash;    ///< of the captured events
  std::string sample_word;  ///< "img", "seq", "sample"
  std::string host_name;
  double host_cores = 0;
  std::int64_t dataset_samples = 0;
  std::vector<std::string> rests_on, assumed, excluded;
  Diagnostics data;                    ///< what was odd about the data and the calibration
  const Step* step = nullptr;          ///< not owned
  bool cpu = false;                    ///< the device is a CPU
  std::vector<MathUnit> stated_rates;  ///< FLOP/s that a machine file gives, no data sheet
};

/// Where the costs of a sample come from; either may be absent.
struct ProbesOfData {
  const Probe* folder = nullptr;
  const PipelineProbe* pipeline = nullptr;
  bool well_known = false;  ///< published figures of a data set by name
};

/// The facts of a resolved scenario, the searched settings left out.
[[nodiscard]] Facts facts_of(const RunRequest& request, const Scenario& scenario,
                             const ProbesOfData& probes);

/// The facts of an answer that needed no model.
[[nodiscard]] Facts facts_of_machine(const Machine& machine);

/// "host = this machine, 8 cores ({host})"; `settings` that could say otherwise, where it is this
/// machine by default.
[[nodiscard]] std::string host_words(const Host& host, const std::string& settings);

/// What was odd when the data was probed.
void add_data_notes(const ProbesOfData& probes, Diagnostics& data);

}  // namespace stoker
