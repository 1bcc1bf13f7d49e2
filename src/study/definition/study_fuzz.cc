#include <cstdint>
#include <string>
#include <string_view>

#include "study/definition/study_file.h"

/// Study files and what flags say of axes and metrics: refused, or a study.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  (void)stoker::study::parse_study(text, "fuzz.toml");
  (void)stoker::study::parse_axis(text);
  (void)stoker::study::parse_metric(text);
  return 0;
}
