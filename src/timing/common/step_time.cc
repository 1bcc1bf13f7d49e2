#include "timing/common/step_time.h"

#include <algorithm>
#include <map>
#include <utility>

namespace stoker {

std::vector<StepBound> step_bounds(const StepTime& t) {
  // What the compute stream executes itself adds to the kernels.
  std::vector<StepBound> bounds{{"kernels", "kernels", t.device},
                                {"host", "launching them (Python and CPU)", t.host},
                                {"communication", "communication", t.communication},
                                {"copy", "copies of the batch", t.copy}};
  std::erase_if(bounds, [](const StepBound& b) { return b.time.count() <= 0; });
  std::stable_sort(bounds.begin(), bounds.end(),
                   [](const StepBound& a, const StepBound& b) { return a.time > b.time; });
  return bounds;
}

std::vector<OperatorTime> slowest_operators(const Program& program, const StepTime& step_time,
                                            std::size_t n) {
  // Kernels that the captured step does not contain are told apart by class.
  std::map<std::pair<std::uint32_t, KernelClass>, double> sums;
  program.for_each_launch([&](const Kernel& kernel, std::uint32_t k, std::int64_t times) {
    if (k >= step_time.kernel_times.size()) return;
    sums[{kernel.source, kernel.kernel_class}] +=
        step_time.kernel_times[k].count() * static_cast<double>(times);
  });
  std::vector<OperatorTime> all;
  all.reserve(sums.size());
  for (const auto& [key, time] : sums) all.push_back({key.first, key.second, Nanos(time)});
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(std::min(n, all.size()));
  std::partial_sort(all.begin(), middle, all.end(),
                    [](const OperatorTime& a, const OperatorTime& b) { return a.time > b.time; });
  all.erase(middle, all.end());
  return all;
}

}  // namespace stoker
