#include "timing/cpu/cpu_step.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/percent.h"
#include "timing/common/data_sheet.h"
#include "timing/cpu/cpu_model.h"

namespace stoker {
namespace {

// Standard deviations of logarithms. What rows do not know: an operator in a step against the same
// alone, the clock over minutes.
constexpr double kCommon = 0.06;
constexpr double kDisturbed = 0.1;  ///< added where others used the machine during the calibration
/// Instead, where nothing was measured: for a shorter step, and for a longer one the root mean
/// square of the logarithms of measured over forecast of nine scripts, 0.94 to 2.7 times as long
/// (docs/accuracy/cpu.md, "Scripts").
constexpr double kNoRows = 0.3, kNoRowsLonger = 0.66;
constexpr double kHostMeasured = 0.12, kHostPrior = 0.35;
constexpr double kFaults = 0.3;
constexpr double k90 = 1.645;  ///< standard deviations of a normal distribution's 90 %
constexpr double kPage = 4096;
/// Optimizers that end a parameter's update with a quotient count its steps in a tensor, which they
/// raise and read (torch/optim/adam.py, _single_tensor_adam): two more operators.
constexpr double kCountsSteps = 2;
/// An optimizer's dispatch in a step over one measured over and over: the step pushes the
/// interpreter's data out of the caches. By nine networks on one machine.
constexpr double kColdOptimizer = 1.4;
/// Share of a dispatch from Python or by the engine's queue that is left where C++ calls the next
/// operator itself: by a GRU of 30 steps.
constexpr double kChained = 0.45;
/// MKL's vector square root takes so long for each zero, forty times what another number takes. An
/// embedding's rows without tokens have no second moment.
constexpr Seconds kZeroRoot{6e-9};
constexpr std::int64_t kRootGrain = 32768;  ///< elements to a thread at least

/// What one launch costs the host.
class Dispatch {
 public:
  explicit Dispatch(const CpuHost& host) : host_(host) {}

  Nanos of(const Kernel& kernel, std::string_view function) {
    const bool same = kernel.source != Kernel::kSynthesized && kernel.source == last_;
    last_ = kernel.source;
    if (same) return Nanos(0);  // the second half of one call
    return as_nanos(
        std::max(host_.call * (kernel.chained ? kChained : 1), operator_time(kernel, function)) +
        host_.view * kernel.views);
  }

 private:
  [[nodiscard]] Seconds operator_time(const Kernel& kernel, std::string_view function) const {
    if (kernel.phase == StepPhase::kOptimizer) {
      const double more = function == "addcdiv_" ? kCountsSteps : 0;
      return kColdOptimizer * host_.optimizer *
             (std::max(1.0, static_cast<double>(kernel.listed)) + more);
    }
    return (kernel.chained ? kChained : 1) *
           (kernel.phase == StepPhase::kBackward ? host_.backward : host_.forward);
  }

  const CpuHost& host_;
  std::uint32_t last_ = Kernel::kSynthesized;
};

bool runs(const Kernel& kernel) { return kernel.kernel_class != KernelClass::kHostToDevice; }

/// Pages are touched first where results are written that have memory of their own; small ones lie
/// on pages that others have touched (glibc's least mmap threshold is 128 KiB).
double fresh_writes(const Kernel& kernel, std::string_view function) {
  constexpr double kSmallOutput = 128 * 1024;
  const auto written = static_cast<double>(kernel.written.count());
  return function.ends_with('_') || written < kSmallOutput ? 0 : written;
}

/// What lives through a step and the most that lives in it beside.
double touched_bytes(const Program& program) {
  double live = 0, most = 0;
  const auto walk = [&](const std::vector<Instruction>& instructions) {
    for (const Instruction& in : instructions) {
      if (in.value >= program.buffers.size()) continue;
      const auto bytes = static_cast<double>(program.buffers[in.value].bytes.count());
      if (in.kind == InstructionKind::kAllocate && in.when != When::kLater) live += bytes;
      if (in.kind == InstructionKind::kFree && in.when != When::kLater) live -= bytes;
      most = std::max(most, live);
    }
  };
  walk(program.setup);
  walk(program.iteration);
  return most;
}

class CpuStep {
 public:
  CpuStep(const Program& program, const Cpu& cpu, const Host& host, const StepTimeOptions& options,
          std::shared_ptr<const CpuModel> model)
      : program_(program),
        cpu_(cpu),
        options_(options),
        model_(std::move(model)),
        threads_(threads_of(cpu, options.threads)),
        host_(cpu_host(cpu, threads_, host.relative_core_speed)),
        estimator_(*model_, threads_, touched_bytes(program)) {}

  StepTime run() {
    estimate_kernels();
    add_launches();
    add_utilization();
    add_band();
    add_basis();
    count_oddities();
    return std::move(out_);
  }

 private:
  void estimate_kernels() {
    estimates_.reserve(program_.kernels.size());
    for (const Kernel& kernel : program_.kernels)
      estimates_.push_back(estimator_.estimate(kernel, program_.function_of(kernel)));
    add_zero_roots();
    double writes = 0;
    program_.for_each_launch([&](const Kernel& kernel, std::uint32_t, std::int64_t times) {
      if (runs(kernel)) writes += fresh_writes_of(kernel) * static_cast<double>(times);
    });
    faults_ = as_nanos(host_.fault) * static_cast<double>(options_.fresh.count()) / kPage;
    const Nanos each = writes > 0 ? faults_ / writes : Nanos(0);  // a byte
    if (writes <= 0) faults_ = Nanos(0);
    out_.kernel_times.reserve(estimates_.size());
    for (std::size_t k = 0; k < estimates_.size(); ++k) {
      const Kernel& kernel = program_.kernels[k];
      const bool copy = kernel.kernel_class == KernelClass::kHostToDevice;
      const Nanos time = copy ? Nanos(0) : estimates_[k].time + each * fresh_writes_of(kernel);
      out_.kernel_times.push_back(time * options_.pace);
    }
  }

  /// Tokens are taken to be drawn evenly: of n rows e^(-tokens / n) of all get none.
  void add_zero_roots() {
    std::map<std::int64_t, double> zeros;  ///< by elements of the table
    for (const Kernel& kernel : program_.kernels) {
      if (program_.function_of(kernel) != "embedding_dense_backward") continue;
      const double size = size_of(kernel.dtype);
      const auto table = static_cast<double>(kernel.elements);
      const double touched = static_cast<double>(kernel.written.count()) / size - table;
      if (touched <= 0 || table <= touched) continue;
      zeros[kernel.elements] = table * std::exp(-touched / table);
    }
    if (zeros.empty()) return;
    for (std::size_t k = 0; k < program_.kernels.size(); ++k) {
      const Kernel& kernel = program_.kernels[k];
      if (kernel.phase != StepPhase::kOptimizer || program_.function_of(kernel) != "sqrt") continue;
      const auto found = zeros.find(kernel.elements);
      if (found == zeros.end()) continue;
      const int parts = threads_for(kernel.elements, kRootGrain, threads_);
      estimates_[k].time += as_nanos(kZeroRoot) * found->second / parts;
    }
  }

  [[nodiscard]] double fresh_writes_of(const Kernel& kernel) const {
    return fresh_writes(kernel, program_.function_of(kernel));
  }

  void add_launches() {
    Dispatch dispatch(host_);
    double without_rule = 0;
    program_.for_each_launch([&](const Kernel& kernel, std::uint32_t k, std::int64_t count) {
      if (!runs(kernel)) return;
      const auto times = static_cast<double>(count);
      const CpuEstimate& e = estimates_[k];
      const Nanos time = out_.kernel_times[k] * times;
      const Nanos host = dispatch.of(kernel, program_.function_of(kernel)) * options_.pace * times;
      const auto phase = static_cast<std::size_t>(kernel.phase);
      out_.device += time;
      out_.host += host;
      out_.phase_device[phase] += time;
      out_.phase_host[phase] += host;
      out_.phase_elapsed[phase] += time + host;
      out_.class_device[static_cast<std::size_t>(kernel.kernel_class)] += time;
      const Nanos hidden = std::min(time, std::max(e.compute, e.memory) * options_.pace * times);
      const Bound bound = e.compute > e.memory ? Bound::kCompute : Bound::kMemory;
      out_.bound_device[static_cast<std::size_t>(bound)] += hidden;
      out_.bound_device[static_cast<std::size_t>(Bound::kLatency)] += time - hidden;
      if (!e.has_rule && !e.has_rows) {
        without_rule += time.count();
        uncosted_ += count;
      }
      estimator_.count(kernel, e, times);
    });
    const Nanos loop = as_nanos(host_.step) * options_.pace;
    const auto load = static_cast<std::size_t>(StepPhase::kLoad);
    out_.host += loop;
    out_.phase_host[load] += loop;
    out_.phase_elapsed[load] += loop;
    out_.exposed_host = out_.host;
    out_.total = out_.device + out_.host;
    if (out_.device.count() > 0) out_.uncosted_share = without_rule / out_.device.count();
  }

  void add_utilization() {
    double flops = 0;
    program_.for_each_launch([&](const Kernel& kernel, std::uint32_t, std::int64_t times) {
      if (runs(kernel)) flops += kernel.flops.count() * static_cast<double>(times);
    });
    out_.busy = 1;
    if (out_.total.count() > 0) out_.mfu = flops / (seconds(out_.total) * nominal_peak(cpu_));
  }

  void add_band() {
    const auto squared = [](double x) { return x * x; };
    const Nanos total = std::max(Nanos(1), out_.total);
    const double common = model_->disturbed() ? kCommon + kDisturbed : kCommon;
    const double variance =
        squared(estimator_.spread() * options_.pace / total) +
        squared(out_.host / total * (host_.measured ? kHostMeasured : kHostPrior)) +
        squared(faults_ / total * kFaults);
    const auto ratio = [&](double of_all) {
      return std::exp(k90 * std::sqrt(variance + squared(of_all)));
    };
    const bool bare = model_->rows() == 0;
    out_.band = {1 - 1 / ratio(bare ? kNoRows : common), ratio(bare ? kNoRowsLonger : common) - 1};
  }

  void add_basis() {
    const std::size_t rows = model_->rows();
    if (rows == 0) {
      out_.basis = "rules by the data sheet alone: no operator was measured on this CPU";
    } else {
      out_.basis = std::to_string(rows) + (rows == 1 ? " operator" : " operators") +
                   " measured on this CPU, with " + percent(estimator_.measured_share()) +
                   " of the time in PyTorch's functions";
      if (model_->disturbed()) out_.basis += "; measured while others used the machine";
    }
    if (!host_.measured) out_.basis += "; the time of PyTorch's own calls is a guess";
    if (out_.uncosted_share >= 0.005)
      out_.basis += "; " + percent(out_.uncosted_share) + " of the time without a cost rule";
  }

  void count_oddities() {
    if (uncosted_ > 0) {
      out_.diagnostics.add("uncosted_kernel", Severity::kWarning,
                           "kernels without a cost rule were costed by the bytes they move",
                           uncosted_);
    }
    if (threads_ > cpu_.cores && cpu_.cores > 0) {
      out_.diagnostics.add(
          "more_threads_than_cores", Severity::kWarning,
          "operators run with more threads than the CPU has cores; they take turns");
    }
    if (program_.kernels.empty())
      out_.diagnostics.add("empty_program", Severity::kWarning, "the step launches nothing");
  }

  const Program& program_;
  const Cpu& cpu_;
  const StepTimeOptions& options_;
  const std::shared_ptr<const CpuModel> model_;
  const int threads_;
  const CpuHost host_;
  CpuEstimator estimator_;
  std::vector<CpuEstimate> estimates_;
  Nanos faults_;
  std::int64_t uncosted_ = 0;
  StepTime out_;
};

}  // namespace

StepTime predict_cpu_step(const Program& program, const Cpu& cpu, const Host& host,
                          const Coefficients& coefficients, const StepTimeOptions& options) {
  std::shared_ptr<const CpuModel> model = coefficients.cpu;
  if (model == nullptr) {
    Cpu bare = cpu;  // without rows there is nothing to refuse
    bare.calibration = nullptr;
    model = CpuModel::make(bare).value();
  }
  return CpuStep(program, cpu, host, options, std::move(model)).run();
}

std::vector<PassTime> predict_cpu_passes(const Program& program, const StepTime& step_time,
                                         const Cpu& cpu, const Host& host,
                                         const StepTimeOptions& options) {
  const int threads = threads_of(cpu, options.threads);
  const CpuHost around = cpu_host(cpu, threads, host.relative_core_speed);
  std::vector<PassTime> times;
  for (const ExtraPass& pass : program.passes) {
    Dispatch dispatch(around);
    Nanos device, issued = as_nanos(around.step);
    program.for_each_launch(pass.instructions, pass.repeated,
                            [&](const Kernel& kernel, std::uint32_t k, std::int64_t count) {
                              if (!runs(kernel)) return;
                              const auto often = static_cast<double>(count);
                              issued += dispatch.of(kernel, program.function_of(kernel)) * often;
                              device += step_time.kernel_times[k] * often;
                            });
    issued = issued * options.pace;
    times.push_back({pass.name, device + issued, issued});
  }
  return times;
}

}  // namespace stoker
