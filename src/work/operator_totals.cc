#include "work/operator_totals.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace stoker {

std::vector<OperatorTotal> operator_totals(const Step& step, const Sizes& sizes) {
  std::map<std::tuple<NameId, bool, KernelClass>, OperatorTotal> totals;
  std::vector<Work> work;
  bool backward = false;
  for (const Event& event : step.events) {
    if (event.kind == EventKind::kPhase && Phase(event.value) == Phase::kBackward) backward = true;
    if (event.kind != EventKind::kOperator) continue;
    const Operator& op = step.operators[event.value];
    work.clear();
    append_work(step, op, sizes, work);
    for (const Work& w : work) {
      OperatorTotal& total = totals[{op.name, backward, w.kernel_class}];
      total.name = step.operator_name(op);
      total.backward = backward;
      total.kernel_class = w.kernel_class;
      total.kernels += w.launches;
      total.flops += w.flops;
      total.read += w.read;
      total.written += w.written;
    }
  }
  std::vector<OperatorTotal> sorted;
  sorted.reserve(totals.size());
  for (const auto& [key, total] : totals) sorted.push_back(total);
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.flops.count(), (a.read + a.written).count()) >
           std::tuple(b.flops.count(), (b.read + b.written).count());
  });
  return sorted;
}

}  // namespace stoker
