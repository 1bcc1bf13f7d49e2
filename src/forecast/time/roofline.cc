#include "forecast/time/roofline.h"

#include <algorithm>
#include <map>
#include <set>

#include "lower/loop/lower.h"
#include "timing/common/data_sheet.h"

namespace stoker {
namespace {

std::string label_of(const Step& step, std::uint32_t source, KernelClass kernel_class) {
  if (source >= step.operators.size()) return std::string(name_of(kernel_class));
  const Operator& op = step.operators[source];
  std::string label(step.operator_name(op));
  const std::string& module = step.module_names[index(op.module)];
  return module.empty() ? label : label + " (" + module + ")";
}

}  // namespace

Result<Roofline> roofline_of(const Scenario& s, const StepTime& time, std::size_t most) {
  Roofline out;
  const Gpu* gpu = s.machine.device.gpu();
  if (gpu == nullptr) return out;
  const auto prepared = TRY(prepare(*s.step, s.job));
  const auto program = TRY(lower(prepared, s.job, s.machine));
  std::map<std::pair<std::uint32_t, KernelClass>, RooflinePoint> sums;
  program.for_each_launch([&](const Kernel& k, std::uint32_t kernel, std::int64_t times) {
    if (kernel >= time.kernel_times.size()) return;
    RooflinePoint& p = sums[{k.source, k.kernel_class}];
    // The kernel that computes most names the unit.
    if (p.flops <= k.flops) p.unit = k.unit;
    p.source = k.source;
    p.kernel_class = k.kernel_class;
    p.phase = k.phase;
    p.flops += k.flops * static_cast<double>(times);
    p.bytes += (k.read + k.written) * times;
    p.time += time.kernel_times[kernel] * static_cast<double>(times);
  });
  for (const auto& [key, point] : sums) {
    if (point.flops.count() > 0 && point.bytes.count() > 0 && point.time.count() > 0)
      out.points.push_back(point);
  }
  std::sort(out.points.begin(), out.points.end(),
            [](const RooflinePoint& a, const RooflinePoint& b) { return a.time > b.time; });
  if (out.points.size() > most) out.points.resize(most);
  std::set<MathUnit> units;
  for (RooflinePoint& p : out.points) {
    p.label = label_of(prepared.runs(), p.source, p.kernel_class);
    units.insert(p.unit);
  }
  for (const MathUnit unit : units) {
    const double peak = nominal_peak(*gpu, unit);
    if (peak > 0) out.peaks.emplace_back(unit, peak);
  }
  out.bandwidth = gpu->bandwidth;
  return out;
}

}  // namespace stoker
