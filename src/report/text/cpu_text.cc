#include "report/text/cpu_text.h"

#include <fmt/core.h>

#include "base/text.h"
#include "report/text/layout.h"
#include "report/text/memory_words.h"

namespace stoker {
namespace {

using namespace layout;

/// "operators 41.2 ms (arithmetic 61 %, memory 35 %, other 4 %), PyTorch around them 3.5 ms"
std::string operator_words(const StepTime& t) {
  const auto part = [&](Bound b) { return t.bound_device[static_cast<std::size_t>(b)].count(); };
  const double all = part(Bound::kCompute) + part(Bound::kMemory) + part(Bound::kLatency);
  std::string text = fmt::format("operators {} ms", number(milliseconds(t.device)));
  if (all > 0) {
    text +=
        fmt::format(" (arithmetic {}, memory {}, other {})", percent(part(Bound::kCompute) / all),
                    percent(part(Bound::kMemory) / all), percent(part(Bound::kLatency) / all));
  }
  if (t.host.count() > 0)
    text += fmt::format("; PyTorch and Python around them {} ms", number(milliseconds(t.host)));
  return text;
}

}  // namespace

std::string threads_text(int threads) {
  return fmt::format("{} thread{}", threads, threads == 1 ? "" : "s");
}

std::string cpu_time_block(const Forecast& f) {
  std::string text = fmt::format("Step      {}\n", millis(f.step_ms));
  text += fmt::format(
      "          forward {} ms, backward {} ms, optimizer {} ms{}\n", number(f.forward_ms.value),
      number(f.backward_ms.value), number(f.optimizer_ms.value),
      f.load_ms.value > 0 ? fmt::format(", batch and loop {} ms", number(f.load_ms.value)) : "");
  text += continued(operator_words(f.time));
  for (const PassTime& pass : f.passes)
    text +=
        fmt::format("          {}: {} ms a batch\n", pass.name, number(milliseconds(pass.total)));
  return text + fmt::format("CPU       {}, {} of its FP32 peak\n", threads_text(f.job.threads),
                            percent(f.mfu.value));
}

std::string cpu_memory_block(const Forecast& f) {
  const MemoryForecast& m = f.memory;
  return fmt::format("Memory    resident {}; tensors {}\n", gib(m.device_peak),
                     gib(m.allocated_peak)) +
         continued(fmt::format("at the peak ({}): {}", m.peak_words, live_words(m))) +
         continued(fmt::format("besides tensors: {}; lost between them {}", outside_words(m),
                               human_bytes(m.outcome.fragmentation)));
}

}  // namespace stoker
