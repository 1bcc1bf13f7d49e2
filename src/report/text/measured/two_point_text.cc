#include <fmt/core.h>

#include "base/text.h"
#include "report/model/two_point_report.h"
#include "report/text/layout.h"

namespace stoker {

std::string two_point_text(const TwoPointAnswer& a) {
  const TwoPointEstimate& e = a.estimate;
  std::string text = fmt::format("TWO READINGS: batch {} per GPU ({} with 1 GiB kept back)\n",
                                 e.batch, e.batch_at_least_kept);
  for (std::size_t i = 0; i < a.readings.size(); ++i) {
    text += fmt::format("  {} at batch {}, {}\n", human_bytes(a.readings[i].bytes),
                        a.readings[i].batch, a.simulated[i] ? "simulated" : "as given");
  }
  const auto size = [](double bytes) {
    const std::string magnitude =
        human_bytes(Bytes(static_cast<std::int64_t>(bytes < 0 ? -bytes : bytes)));
    return bytes < 0 ? "-" + magnitude : magnitude;
  };
  text += fmt::format(
      "  I + O + 2Y = {} a sample, X = {} without any; ({} - {} - X) / (I + O + 2Y) = {}\n",
      size(e.per_sample_bytes), size(e.fixed_bytes), human_bytes(a.gpu_memory),
      human_bytes(kKeptBackMost), e.batch);
  if (e.fixed_bytes < 0)
    text += "  X below 0: memory grows faster than the batch; read at larger batches\n";
  if (e.gpus > 1) text += fmt::format("  times {} GPUs: {}\n", e.gpus, e.global_batch());
  if (a.simulated_largest > 0) {
    text += fmt::format("SIMULATED: batch {} per GPU runs, {} is safe\n", a.simulated_largest,
                        a.simulated_safe);
    text += layout::labelled("  Because", a.reasons);
  }
  return text;
}

}  // namespace stoker
