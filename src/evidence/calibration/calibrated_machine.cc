#include "evidence/calibration/calibrated_machine.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>

#include "base/text.h"
#include "device/figure_kinds.h"
#include "device/host/this_cpu.h"
#include "device/scales.h"
#include "evidence/calibration/sustained_rates.h"
#include "system/processor.h"

namespace stoker {
namespace {

/// Two readings of one memory differ by what firmware keeps; another module is a fifth at least.
constexpr double kSameMemory = 0.1;
/// What a calibration stands for: rows of another PyTorch or driver are of another machine.
constexpr std::array kDecisive{"torch", "cuda", "driver", "cudnn", "onednn", "mkl"};

bool like(Bytes a, Bytes b) {
  return a.count() <= 0 || b.count() <= 0 || std::fabs(a / b - 1) <= kSameMemory;
}

/// The catalogue's name of what a driver calls a card; its own where the catalogue has none.
std::string catalogue_name(const std::string& name, const GpuCatalogue& catalogue) {
  const auto found = catalogue.find(name);
  return found ? found->name : name;
}

std::string with_cores(const std::string& name, int cores) {
  return name + " with " + std::to_string(cores) + " cores";
}

std::string described(const Device& device) {
  return device.visit([](const Gpu& gpu) { return gpu.name; },
                      [](const Cpu& cpu) { return with_cores(cpu.name, cpu.cores); });
}

std::string described(const MeasuredDevice& device) {
  return device.cpu ? with_cores(device.name, device.cores) : device.name;
}

/// A Cpu or a MeasuredDevice. Without the vector width: a calibration's is the one that PyTorch was
/// told to use.
template <class Described>
Processor processor_of(const Described& cpu) {
  Processor processor{.name = cpu.name};
  processor.caches.l1 = cpu.l1;
  processor.caches.l2 = cpu.l2;
  return processor;
}

/// Cores and memory of a file are those of its last calibration: a quota, an affinity or a limit
/// that changed since makes them others, not the machine.
std::string changed_share(const Cpu& before, const Cpu& now) {
  if (before.cores == now.cores && like(before.memory, now.memory)) return {};
  return "the file was of " + described(before) + " and " + human_bytes(before.memory) +
         ", and is of " + described(now) + " and " + human_bytes(now.memory) +
         ": this process's share of the machine changed";
}

double figure_of_most_threads(const Calibration& calibration, std::string_view name) {
  const MeasuredFigure* best = nullptr;
  for (const MeasuredFigure& f : calibration.figures) {
    if (f.name == name && (best == nullptr || f.threads > best->threads)) best = &f;
  }
  return best == nullptr ? 0 : best->value;
}

/// A CPU by what the measuring saw of it. `kept`: the file before, for its prices and notes.
Cpu cpu_of(const CalibrationRuns& runs, const Host& here, const Cpu* kept) {
  const MeasuredDevice& d = runs.device;
  Cpu cpu = kept != nullptr ? *kept : Cpu{};
  cpu.name = d.name;
  cpu.cores = std::max(1, d.cores);
  cpu.simd_bits = d.simd_bits;
  cpu.l1 = d.l1, cpu.l2 = d.l2, cpu.l3 = d.l3;
  cpu.clock_mhz = d.clock_mhz;
  cpu.memory = cpu.usable_memory = d.memory.count() > 0 ? d.memory : here.memory;
  if (d.context.count() > 0 && d.context < cpu.memory) cpu.context_memory = d.context;
  // A clock above the one that was read shows in products that are faster than it allows.
  cpu.peak.fp32 = std::max(sheet_peak(d, cpu.cores),
                           kGiga * figure_of_most_threads(runs.calibration, "fma_gflops"));
  const double copied = kGiga * figure_of_most_threads(runs.calibration, "copy_gbs");
  if (copied > 0) cpu.bandwidth = copied;
  if (cpu.bandwidth <= 0) {
    const auto guess = this_cpu(here);
    cpu.bandwidth = guess ? guess->bandwidth : kGiga;
  }
  if (cpu.source.empty()) cpu.source = "stoker calibrate";
  return cpu;
}

/// A card that the catalogue does not know: by what was read and measured of it.
Gpu unknown_gpu(const CalibrationRuns& runs) {
  const MeasuredDevice& d = runs.device;
  Gpu gpu;
  gpu.name = d.name;
  gpu.sm_count = std::max(1, d.cores);
  gpu.compute_capability = d.compute_capability;
  gpu.boost_mhz = d.clock_mhz > 0 ? d.clock_mhz : 1000;
  gpu.memory = d.memory;
  gpu.usable_memory = d.usable.count() > 0 ? d.usable : d.memory;
  gpu.l2 = d.l2;
  for (const SustainedRate& rate : sustained_rates(runs, nullptr)) {
    double& figure = sheet_figure(gpu, rate.kind);
    figure = std::max(figure, rate.measured);
  }
  gpu.source =
      "stoker calibrate: rates are what was sustained, the catalogue does not know this GPU";
  return gpu;
}

/// A slice has its share of the whole card's units and bandwidth.
void take_slice(const MeasuredDevice& d, Gpu& gpu) {
  const double units =
      gpu.sm_count > 0 && d.cores > 0 ? static_cast<double>(d.cores) / gpu.sm_count : 1;
  const double bytes = gpu.memory.count() > 0 && d.memory.count() > 0 ? d.memory / gpu.memory : 1;
  gpu.sm_count = std::max(1, d.cores);
  for (double* peak : {&gpu.peak.fp32, &gpu.peak.fp16, &gpu.peak.tf32_tensor, &gpu.peak.fp16_tensor,
                       &gpu.peak.bf16_tensor})
    *peak *= std::min(1.0, units);
  gpu.bandwidth *= std::min(1.0, bytes);
  if (d.memory.count() > 0) gpu.memory = gpu.usable_memory = d.memory;
}

Gpu gpu_of(const CalibrationRuns& runs, const GpuCatalogue& catalogue, const Gpu* kept) {
  const MeasuredDevice& d = runs.device;
  Gpu gpu;
  if (kept != nullptr) {
    gpu = *kept;
  } else if (const auto found = catalogue.find(d.name)) {
    gpu = *found;
    gpu.assumption.clear();
    if (d.mig) take_slice(d, gpu);
  } else {
    gpu = unknown_gpu(runs);
  }
  if (d.usable.count() > 0 && d.usable <= gpu.memory) gpu.usable_memory = d.usable;
  if (d.context.count() > 0 && d.context < gpu.usable_memory) gpu.context_memory = d.context;
  return gpu;
}

/// The device as the measuring saw it. `kept`: of the file before, of the same kind.
Device device_of(const CalibrationRuns& runs, const CalibrationContext& context,
                 const Device* kept) {
  if (runs.device.cpu) return cpu_of(runs, context.here, kept == nullptr ? nullptr : kept->cpu());
  return gpu_of(runs, *context.catalogue, kept == nullptr ? nullptr : kept->gpu());
}

bool same_row(const MeasuredOperator& a, const MeasuredOperator& b) {
  return a.kind == b.kind && a.function == b.function && a.threads == b.threads &&
         a.sizes == b.sizes && a.precision == b.precision && a.pass == b.pass && a.warm == b.warm;
}

bool same_software(const CalibrationRuns& runs, const MachineFile& before) {
  for (const char* key : kDecisive) {
    const auto then = before.provenance.find(key);
    const auto now = runs.provenance.find(key);
    const std::string a = then == before.provenance.end() ? "" : then->second;
    const std::string b = now == runs.provenance.end() ? "" : now->second;
    if (a != b) return false;
  }
  return true;
}

/// Rows and figures of before that were not measured again.
void keep_earlier(const Calibration& before, CalibratedMachine& made) {
  for (const MeasuredOperator& row : before.operators) {
    if (std::ranges::any_of(made.calibration.operators,
                            [&](const MeasuredOperator& now) { return same_row(row, now); }))
      continue;
    made.calibration.operators.push_back(row);
    ++made.kept_operators;
  }
  for (const MeasuredFigure& figure : before.figures) {
    if (is_learned(figure.name)) continue;
    if (find_figure(made.calibration, figure.name, figure.threads) == nullptr)
      made.calibration.figures.push_back(figure);
  }
  const auto scalar = [](double& now, double then) {
    if (now == 0) now = then;
  };
  scalar(made.calibration.launch_floor_us, before.launch_floor_us);
  scalar(made.calibration.host_dispatch_us, before.host_dispatch_us);
  scalar(made.calibration.pinned_gbs, before.pinned_gbs);
  scalar(made.calibration.pageable_gbs, before.pageable_gbs);
}

void compare(const Calibration& before, CalibratedMachine& made) {
  for (const MeasuredFigure& now : made.calibration.figures) {
    const MeasuredFigure* then = find_figure(before, now.name, now.threads);
    if (then != nullptr && then->value > 0 && now.value > 0)
      made.changes.push_back({now.name, now.threads, then->value, now.value});
  }
  std::ranges::stable_sort(made.changes, [](const FigureChange& a, const FigureChange& b) {
    return std::fabs(a.change()) > std::fabs(b.change());
  });
}

void add_spread(const CalibrationRuns& runs, CalibratedMachine& made) {
  std::vector<double> spreads;
  const auto take = [&](double spread, const std::string& label) {
    spreads.push_back(spread);
    if (spread < made.worst_spread) return;
    made.worst_spread = spread;
    made.worst_label = label;
  };
  for (const MeasuredFigure& f : runs.calibration.figures) take(f.spread, f.name);
  for (const MeasuredOperator& o : runs.calibration.operators) take(o.spread, label_of(o));
  if (spreads.empty()) return;
  const auto middle = spreads.begin() + static_cast<std::ptrdiff_t>(spreads.size() / 2);
  std::ranges::nth_element(spreads, middle);
  made.median_spread = *middle;
}

std::map<std::string, std::string> provenance_of(const CalibrationRuns& runs,
                                                 const std::string& version) {
  auto texts = runs.provenance;
  texts["calibrated_by"] = "stoker " + version;
  texts["device"] = runs.device.name;
  char load[160];
  std::snprintf(load, sizeof load, "others %.1f %% of the cores, hypervisor %.1f %%%s",
                100 * runs.load.foreign_share, 100 * runs.load.steal_share,
                runs.load.clocks_changed ? ", clocks changed" : "");
  texts["load"] = load;
  if (runs.load.disturbed) texts["disturbed"] = runs.load.why.empty() ? "yes" : runs.load.why;
  return texts;
}

}  // namespace

Status check_same_device(const MachineFile& file, const std::string& name,
                         const MeasuredDevice& device, const GpuCatalogue& catalogue) {
  if (!file.device) return {};  // a host alone: the device is added to it
  const Device& before = *file.device;
  const bool same = before.visit(
      [&](const Gpu& gpu) {
        return !device.cpu &&
               simplified(catalogue_name(gpu.name, catalogue)) ==
                   simplified(catalogue_name(device.name, catalogue)) &&
               like(gpu.memory, device.memory);
      },
      [&](const Cpu& cpu) {
        return device.cpu && same_processor(processor_of(cpu), processor_of(device));
      });
  if (same) return {};
  return fail(ErrorCode::kBadInput,
              "describes another machine (" + described(before) + ", " +
                  human_bytes(before->memory) + ") than this (" + described(device) + ", " +
                  human_bytes(device.memory) +
                  "): it serves forecasts as it is; give another file with -o",
              name);
}

CalibratedMachine calibrated_machine(const CalibrationRuns& runs,
                                     const std::optional<MachineFile>& before,
                                     const CalibrationContext& context) {
  CalibratedMachine made;
  made.calibration = runs.calibration;
  made.measured_operators = runs.calibration.operators.size();
  made.updated = before && before->device;
  if (before) made.file = *before;
  if (!made.file.host) {
    made.file.host = context.here;
    made.file.host->name = "host of " + runs.device.name;
  }
  const Device* kept = made.updated ? &*before->device : nullptr;
  made.file.device = device_of(runs, context, kept);
  const Calibration* earlier = kept == nullptr ? nullptr : (*kept)->calibration.get();
  if (earlier != nullptr) {
    compare(*earlier, made);
    if (std::ranges::any_of(earlier->figures,
                            [](const MeasuredFigure& f) { return is_learned(f.name); }))
      made.notes.emplace_back(
          "what was learned from training runs corrected the old calibration, and is gone: "
          "`stoker validate MODEL --learn` learns it anew");
    if (same_software(runs, *before)) keep_earlier(*earlier, made);
    else
      made.notes.emplace_back(
          "PyTorch, its libraries or the driver changed: earlier rows are gone");
  }
  const Cpu* cpu = kept == nullptr ? nullptr : kept->cpu();
  if (cpu != nullptr && runs.device.cpu) {
    if (std::string note = changed_share(*cpu, *made.file.device->cpu()); !note.empty())
      made.notes.push_back(std::move(note));
  }
  add_spread(runs, made);
  made.rates = sustained_rates(runs, made.file.device->gpu());
  made.file.provenance = provenance_of(runs, context.version);
  made.file.calibration = calibration_toml(made.calibration);
  made.file.device->facts().calibrated = true;
  made.file.device->facts().calibration = std::make_shared<const Calibration>(made.calibration);
  return made;
}

}  // namespace stoker
