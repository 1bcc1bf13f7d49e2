#pragma once

#include <optional>

#include "base/figure.h"
#include "device/machine.h"

namespace stoker {

/// Electricity of the GPU boards alone (not the host, its cooling or the power supply), as an
/// estimate from data sheets; no row here was measured.
struct EnergyForecast {
  Figure watts;  ///< of all GPUs together, mean while the job runs
  Figure joules_per_sample;
  Figure epoch_kwh;  ///< 0 when the data set's size is unknown
  Figure run_kwh;    ///< with the start-up, in which boards wait; 0 when nobody asked
};

/// What of a forecast the estimate follows from.
struct EnergyInput {
  int gpus = 1;
  Figure busy;           ///< share of time in which a kernel runs, 0..1
  Figure samples_per_s;  ///< of the whole job
  Figure epoch_s;        ///< 0: unknown
  Figure run_s;          ///< of all epochs with the start-up; 0: nobody asked
  Figure start_up_s;     ///< of those, before the first step
};

/// nullopt for a GPU whose TDP is unknown: there is nothing to estimate from.
[[nodiscard]] std::optional<EnergyForecast> estimate_energy(const DeviceFacts& device,
                                                            const EnergyInput& input);

/// Mean draw of one board that runs kernels for this share of the time; 0 when its TDP is unknown.
[[nodiscard]] double mean_watts(const DeviceFacts& device, double busy);

}  // namespace stoker
