#include "timing/learned/calibration.h"

#include <algorithm>
#include <cmath>

#include "timing/gpu/kernel_cost.h"
#include "timing/learned/class_fit.h"
#include "timing/learned/measured_operator.h"

namespace stoker {
namespace {

constexpr double kMeasuredHostSpread = 0.25;  ///< one figure stands for all operators

Result<std::vector<TimedKernel>> compare(const Calibration& calibration, const Gpu& gpu,
                                         const Coefficients& before) {
  const CostModel model(gpu, before);
  std::vector<TimedKernel> rows;
  for (const MeasuredOperator& measured : calibration.operators) {
    const auto kernel = TRY(kernel_of(measured, gpu));
    TRY(check_physics(measured, kernel, gpu, Micros(calibration.launch_floor_us)));
    const KernelCost cost = model.cost_of(kernel);
    rows.push_back({cost.cost_class, Micros(measured.time_us), beyond_floor(cost, kernel, before),
                    measured.spread});
  }
  return rows;
}

class Calibrator {
 public:
  Calibrator(const Calibration& calibration, const Gpu& gpu, const Coefficients& before)
      : calibration_(calibration), gpu_(gpu), before_(before) {}

  Result<CoefficientPatch> run() {
    auto rows = TRY(compare(calibration_, gpu_, before_));
    const Micros gap = launch_gap(Micros(calibration_.launch_floor_us), rows);
    for (const TimedKernel& timed : rows) {
      if (auto row = class_row(timed, gap)) rows_.push_back(std::move(*row));
    }
    if (!rows_.empty()) {
      auto classes = fit_classes(rows_, before_);
      if (!classes) {
        classes.error().where = calibration_.operators.front().where;
        return tl::unexpected(classes.error());
      }
      patch_ = std::move(*classes);
    }
    set_host();
    set_copies();
    patch_.basis = basis();
    return patch_;
  }

 private:
  void set(std::string name, double value) { patch_.values.emplace_back(std::move(name), value); }

  void set_host() {
    const Micros measured(calibration_.host_dispatch_us);
    const HostCoefficients& host = before_.host;
    // What was measured: a module's call around one element-wise operator that records its graph.
    const Micros same = host.forward + host.autograd + host.module;
    if (measured <= Micros(0) || same <= Micros(0)) return;
    // The other host times keep their proportion to it.
    const double factor = measured / same;
    for (const char* name :
         {"host.forward_us", "host.autograd_us", "host.module_us", "host.backward_us",
          "host.library_us", "host.product_us", "host.rows_us", "host.attention_us",
          "host.conversion_us", "host.optimizer_us", "host.view_us", "host.launch_us",
          "host.step_us", "host.list_us", "host.update_us"}) {
      if (const auto old = value_of(before_, name)) set(name, *old * factor);
    }
    set("host.speed", 1);
    set("host.spread", std::min(before_.host.spread, kMeasuredHostSpread));
  }

  void set_copies() {
    const double pcie = gpu_rates(gpu_, before_).pcie;
    if (calibration_.pinned_gbs > 0) set("pcie.pinned", calibration_.pinned_gbs * 1e9 / pcie);
    if (calibration_.pageable_gbs > 0) set("pcie.pageable", calibration_.pageable_gbs * 1e9 / pcie);
  }

  [[nodiscard]] std::string basis() const {
    std::string text;
    const auto add = [&](const std::string& what) { text += (text.empty() ? "" : ", ") + what; };
    if (!rows_.empty()) {
      const bool one = rows_.size() == 1;
      add(std::to_string(rows_.size()) + (one ? " operator" : " operators") +
          " measured on this GPU");
    }
    const std::size_t launches = calibration_.operators.size() - rows_.size();
    if (launches > 0) add(std::to_string(launches) + " more too short to tell anything");
    if (calibration_.host_dispatch_us > 0) add("its host's dispatch");
    if (calibration_.pinned_gbs > 0 || calibration_.pageable_gbs > 0) add("its copies");
    return text + "; the rest: " + before_.basis;
  }

  const Calibration& calibration_;
  const Gpu& gpu_;
  const Coefficients& before_;
  std::vector<ClassRow> rows_;
  CoefficientPatch patch_;
};

}  // namespace

Result<CoefficientPatch> calibrate(const Calibration& calibration, const Gpu& gpu,
                                   const Coefficients& before) {
  return Calibrator(calibration, gpu, before).run();
}

}  // namespace stoker
