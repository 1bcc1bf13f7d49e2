#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "input/loader/loader_simulation.h"
#include "input/pipeline/pipeline_probe.h"

/// Whatever parses gives a cost that a loader can be simulated with.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const stoker::Result<stoker::PipelineProbe> probe = stoker::parse_pipeline_probe(text, "fuzz");
  if (!probe) return 0;
  const stoker::SampleCost cost = stoker::sample_cost_from_pipeline(*probe, {});
  if (!(cost.mean_cpu().count() >= 0)) std::abort();
  const stoker::LoaderForecast out =
      stoker::simulate_loader({.batch = 4, .workers = 2}, cost, {.cores = 2}, stoker::kMillisecond);
  if (!std::isfinite(out.samples_per_s)) std::abort();
  return 0;
}
