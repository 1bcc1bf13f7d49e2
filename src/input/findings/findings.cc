#include "input/findings/findings.h"

#include <algorithm>
#include <charconv>

#include "input/findings/finding_rules.h"

namespace stoker {

StartMethod default_start_method(std::string_view version) {
  constexpr int kMajor = 3, kMinor = 14;  // the first Python that does not fork on Linux
  int major = 0, minor = 0;
  const char* end = version.data() + version.size();
  const auto [dot, error] = std::from_chars(version.data(), end, major);
  if (error != std::errc() || dot == end || *dot != '.') return StartMethod::kFork;
  std::from_chars(dot + 1, end, minor);
  const bool newer = major > kMajor || (major == kMajor && minor >= kMinor);
  return newer ? StartMethod::kForkserver : StartMethod::kFork;
}

std::vector<Finding> diagnose(const LoaderCase& loader) {
  const rules::Diagnosis diagnosis{
      loader, simulate_loader(loader.settings, loader.sample, loader.host, loader.consumer)};
  std::vector<Finding> findings;
  for (const auto* list : {&rules::host_rules(), &rules::speed_rules(), &rules::epoch_rules()}) {
    for (const rules::Rule rule : *list) {
      if (auto finding = rule(diagnosis)) findings.push_back(std::move(*finding));
    }
  }
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    return a.severity == Severity::kWarning && b.severity != Severity::kWarning;
  });
  return findings;
}

}  // namespace stoker
