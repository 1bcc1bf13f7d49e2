#include "lower/loop/capture_notes.h"

#include <string>

#include "base/percent.h"
#include "lower/loop/untrained.h"
#include "step/lost_compiler.h"

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
  if (step.compiled_graphs == kCompilerLost) {
    d.add(kEagerForCompiled, Severity::kWarning,
          "the script compiles this step, and the forecast is of the eager one: compiled it may "
          "take " +
              percent(kLeastTimeCompiled) + " of the time and " + percent(kLeastMemoryCompiled) +
              " to " + percent(kMostMemoryCompiled) + " of the memory, which the bands hold");
  }
  // A capture's own sentences say why; a script's has none, and a file may lack them.
  const std::string untrained = untrained_words(step);
  for (const std::string& sentence : step.warnings)
    d.add(kNotTrained, Severity::kWarning, sentence);
  if (step.warnings.empty() && !untrained.empty())
    d.add(kNotTrained, Severity::kWarning, untrained);
  for (const std::string& sentence : step.unfaithful)
    d.add("unfaithful_capture", Severity::kWarning, sentence);
}

}  // namespace stoker
