#include "base/percent.h"

#include <cstdio>

namespace stoker {
namespace {

std::string in_per_cent(const char* format, double share) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, format, kPerCent * share);
  return buffer;
}

}  // namespace

std::string percent(double share) { return in_per_cent("%.0f %%", share); }

std::string exact_percent(double share) { return in_per_cent("%.1f %%", share); }

std::string fine_percent(double share) {
  return share < 0.1 ? exact_percent(share) : percent(share);
}

std::string signed_percent(double change) { return in_per_cent("%+.1f %%", change); }

}  // namespace stoker
