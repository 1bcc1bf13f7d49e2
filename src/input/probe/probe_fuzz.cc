#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "input/probe/cache_what_if.h"
#include "input/probe/probe_io.h"
#include "input/probe/sample_cost.h"

/// Whatever parses must also survive being written, read again and used.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const stoker::Result<stoker::Probe> probe = stoker::parse_probe(text, "fuzz");
  if (!probe) return 0;
  if (!stoker::parse_probe(stoker::probe_to_json(*probe))) std::abort();
  const stoker::SampleCost cost = stoker::sample_cost_from_probe(*probe, {});
  if (!(cost.mean_cpu().count() >= 0)) std::abort();
  for (const stoker::CacheWhatIf& row :
       stoker::cache_what_if(*probe, cost, {stoker::kGiB, 1000 * stoker::kGiB})) {
    if (!(row.cached >= 0 && row.cached <= 1) || !std::isfinite(row.later_per_s)) std::abort();
  }
  return 0;
}
