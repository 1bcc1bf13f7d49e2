#include "base/diagnostics.h"

#include <algorithm>

namespace stoker {

void Diagnostics::add(std::string_view name, Severity severity, std::string_view advice,
                      std::int64_t count) {
  const auto it = std::find_if(all_.begin(), all_.end(), [&](const Diagnostic& d) {
    return d.name == name && d.advice == advice;
  });
  if (it != all_.end()) {
    it->count += count;
  } else {
    all_.push_back({std::string(name), severity, std::string(advice), count});
  }
}

void Diagnostics::merge(const Diagnostics& other) {
  for (const Diagnostic& d : other.all_) add(d.name, d.severity, d.advice, d.count);
}

std::int64_t Diagnostics::count(std::string_view name) const {
  std::int64_t sum = 0;
  for (const Diagnostic& d : all_) {
    if (d.name == name) sum += d.count;
  }
  return sum;
}

}  // namespace stoker
