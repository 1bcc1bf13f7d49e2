#include <array>

#include "json/value.h"
#include "report/json/json_parts.h"

namespace stoker {
namespace {

using Phases = std::array<Nanos, kStepPhases>;

Json by_phase(const Phases& times, const StepTime& t) {
  Json json = Json::object();
  for (std::size_t p = 0; p < kStepPhases; ++p) {
    json[std::string(name_of(static_cast<StepPhase>(p)))] =
        figure_object(with_band(milliseconds(times[p]), t.band, t.basis));
  }
  return json;
}

/// What would take how long, were it alone; the longest bounds the step.
Json bounds(const StepTime& t) {
  Json list = Json::array();
  for (const StepBound& b : step_bounds(t))
    list.push_back({{"value", b.name}, {"what", b.what}, {"ms", milliseconds(b.time)}});
  return list;
}

}  // namespace

Json time_object(const Forecast& f) {
  const StepTime& t = f.time;
  const auto ms = [&](Nanos n) {
    return figure_object(with_band(milliseconds(n), t.band, t.basis));
  };
  Json json{{"step_ms", figure_object(f.step_ms)},
            {"load_ms", figure_object(f.load_ms)},
            {"forward_ms", figure_object(f.forward_ms)},
            {"backward_ms", figure_object(f.backward_ms)},
            {"optimizer_ms", figure_object(f.optimizer_ms)},
            {"kernels_ms", ms(t.device)},
            {"host_ms", figure_object(f.host_ms)},
            {"exposed_host_ms", ms(t.exposed_host)},
            {"copy_ms", ms(t.copy)},
            {"exposed_copy_ms", ms(t.exposed_copy)},
            {"communication_ms", ms(t.communication)},
            {"exposed_communication_ms", ms(t.exposed_communication)},
            {"device_by_phase_ms", by_phase(t.phase_device, t)},
            {"host_by_phase_ms", by_phase(t.phase_host, t)},
            {"kernels_bound_by_ms",
             {{"arithmetic", ms(t.bound_device[static_cast<std::size_t>(Bound::kCompute)])},
              {"memory", ms(t.bound_device[static_cast<std::size_t>(Bound::kMemory)])},
              {"other", ms(t.bound_device[static_cast<std::size_t>(Bound::kLatency)])}}},
            {"bounds", bounds(t)},
            {"uncosted_share", t.uncosted_share}};
  Json passes = Json::array();
  for (const PassTime& pass : f.passes)
    passes.push_back({{"name", pass.name}, {"batch_ms", ms(pass.total)}});
  if (!passes.empty()) json["passes"] = std::move(passes);
  return json;
}

Json run_object(const RunTime& run) {
  Json parts = Json::array();
  for (const RunPart& part : run.start_up)
    parts.push_back({{"name", part.name}, {"seconds", figure_object(part.seconds)}});
  return {{"epochs", run.epochs},
          {"total_s", figure_object(run.seconds_total)},
          {"first_epoch_s", figure_object(run.seconds_first_epoch)},
          {"epoch_s", figure_object(run.seconds_epoch)},
          {"validation_s", figure_object(run.seconds_validation)},
          {"start_up_s", figure_object(run.seconds_start_up)},
          {"start_up", std::move(parts)}};
}

}  // namespace stoker
