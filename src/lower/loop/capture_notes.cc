#include "lower/loop/capture_notes.h"

#include <string>

namespace stoker {

void note_capture(const Step& step, const DeviceBackend& device, Diagnostics& d) {
  device.note(step, d);
  for (const auto& [name, count] : step.decomposed) {
    d.add("decomposed_operator", Severity::kWarning,
          name + " was captured in pieces; memory may read high", count);
  }
  if (step.math_attention > 0) {
    d.add("math_attention", Severity::kWarning,
          "attention was captured as plain products; flash attention would need less memory",
          step.math_attention);
  }
  if (step.item_calls > 0 && device.is_apart()) {
    d.add("host_synchronisation", Severity::kWarning,
          "the model reads values on the host (.item()): each one waits for the GPU",
          step.item_calls);
  }
  for (const std::string& sentence : step.warnings)
    d.add("captured_training", Severity::kWarning, sentence);
  for (const std::string& sentence : step.unfaithful)
    d.add("unfaithful_capture", Severity::kWarning, sentence);
}

}  // namespace stoker
