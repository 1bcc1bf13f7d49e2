#include <cstdint>
#include <cstdlib>
#include <string>

#include "trace/event_reader.h"
#include "trace/trace_timeline.h"

/// Bytes as a trace: refused, or read into columns that hold together.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  (void)stoker::rank_in_name(text);
  stoker::TraceTimeline timeline;
  if (!stoker::read_trace_events(text, "fuzz", timeline)) return 0;
  timeline.finish();
  const auto& host = timeline.host();
  if (timeline.outer().size() != host.size()) std::abort();
  for (std::size_t i = 0; i < host.size(); ++i) {
    const std::int32_t outer = timeline.outer()[i];
    if (outer >= static_cast<std::int32_t>(i) || host[i].time.end < host[i].time.start)
      std::abort();
    if (timeline.name(host[i].name).size() > size) std::abort();
  }
  for (const auto& [device, spans] : timeline.gpus()) {
    for (std::size_t i = 1; i < spans.size(); ++i)
      if (spans[i].time.start < spans[i - 1].time.start) std::abort();
    for (const stoker::GpuSpan& span : spans) (void)timeline.launch(span.correlation);
  }
  return 0;
}
