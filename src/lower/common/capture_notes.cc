#include "lower/common/capture_notes.h"

#include <string>

#include "lower/cpu/cpu.h"

namespace stoker {

void note_capture(const Step& step, const Gpu& gpu, Diagnostics& d) {
  if (gpu.is_cpu()) {
    note_cpu(step, d);
  } else if (step.provenance.capture == CaptureKind::kFakeCpu) {
    d.add("captured_on_cpu", Severity::kWarning,
          "the model was captured with the CPU's dispatch (no compiler for the CUDA shim); bands "
          "are wider");
  }
  for (const auto& [name, count] : step.decomposed) {
    d.add("decomposed_operator", Severity::kWarning,
          name + " was captured in pieces; memory may read high", count);
  }
  if (step.math_attention > 0) {
    d.add("math_attention", Severity::kWarning,
          "attention was captured as plain products; flash attention would need less memory",
          step.math_attention);
  }
  if (step.item_calls > 0 && !gpu.is_cpu()) {
    d.add("host_synchronisation", Severity::kWarning,
          "the model reads values on the host (.item()): each one waits for the GPU",
          step.item_calls);
  }
  for (const std::string& sentence : step.unfaithful)
    d.add("unfaithful_capture", Severity::kWarning, sentence);
}

}  // namespace stoker
