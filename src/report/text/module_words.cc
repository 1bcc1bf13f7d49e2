#include "report/text/module_words.h"

#include <algorithm>
#include <map>

namespace stoker {

std::string module_name(const Step& step, ModuleId id) {
  if (index(id) >= step.module_names.size()) return "(other)";
  const std::string& name = step.module_names[index(id)];
  return name.empty() ? "(model)" : name;
}

std::string shortened(const Step& step, ModuleId id, int parts) {
  if (index(id) >= step.module_names.size()) return "(other)";
  const std::string& name = step.module_names[index(id)];
  std::size_t end = std::string::npos;
  for (std::size_t from = 0; parts > 0; --parts, from = end + 1) {
    end = name.find('.', from);
    if (end == std::string::npos) break;
  }
  return name.empty() ? "(model)" : name.substr(0, end);
}

int telling_parts(const Step& step, const std::vector<ModuleBytes>& modules) {
  constexpr double kMost = 0.6;
  constexpr int kFewest = 2;
  constexpr int kLongest = 4;
  for (int parts = kFewest; parts < kLongest; ++parts) {
    std::map<std::string, double> groups;
    double total = 0;
    for (const ModuleBytes& m : modules) {
      groups[shortened(step, m.module, parts)] += static_cast<double>(m.bytes.count());
      total += static_cast<double>(m.bytes.count());
    }
    const auto most =
        std::max_element(groups.begin(), groups.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    if (groups.empty() || most->second <= kMost * total) return parts;
  }
  return kLongest;
}

}  // namespace stoker
