#include "evidence/calibration/sustained_rates.h"

#include <algorithm>
#include <map>

#include "system/this_cpu.h"

namespace stoker {
namespace {

constexpr double kGiga = 1e9;

std::int64_t size_of(const MeasuredOperator& row, const char* name, std::int64_t otherwise) {
  const auto found = row.sizes.find(name);
  return found == row.sizes.end() ? otherwise : found->second;
}

double peak_of(const Gpu& gpu, const std::string& precision) {
  if (precision == "tf32") return gpu.peak.tf32_tensor;
  if (precision == "fp16") return gpu.peak.fp16_tensor;
  if (precision == "bf16") return gpu.peak.bf16_tensor;
  return gpu.peak.fp32;
}

/// A GPU's best matrix product of each precision, and its fastest copy of data beyond the caches.
std::vector<SustainedRate> of_gpu(const CalibrationRuns& runs, const Gpu* sheet) {
  std::map<std::string, SustainedRate> products;
  SustainedRate memory{.what = "memory", .bytes = true};
  for (const MeasuredOperator& row : runs.calibration.operators) {
    const double seconds = 1e-6 * row.time_us;
    if (row.kind == "gemm") {
      const double flops = 2.0 * static_cast<double>(size_of(row, "batch", 1)) *
                           static_cast<double>(size_of(row, "m", 0)) *
                           static_cast<double>(size_of(row, "n", 0)) *
                           static_cast<double>(size_of(row, "k", 0));
      SustainedRate& best = products[row.precision];
      if (flops / seconds > best.measured)
        best = {.what = "matrix products, " + row.precision,
                .measured = flops / seconds,
                .sheet = sheet != nullptr ? peak_of(*sheet, row.precision) : 0,
                .spread = row.spread};
    } else if (row.kind == "copy" && !row.warm) {
      const double width = row.precision == "fp16" || row.precision == "bf16" ? 2 : 4;
      const double rate = 2 * width * static_cast<double>(size_of(row, "elements", 0)) / seconds;
      if (rate > memory.measured) {
        memory.measured = rate;
        memory.spread = row.spread;
      }
    }
  }
  std::vector<SustainedRate> rates;
  for (const char* precision : {"fp32", "tf32", "fp16", "bf16"}) {
    if (products.contains(precision)) rates.push_back(products[precision]);
  }
  if (sheet != nullptr) memory.sheet = sheet->bandwidth;
  if (memory.measured > 0) rates.push_back(memory);
  const Calibration& c = runs.calibration;
  for (const auto& [what, gbs] : {std::pair("host to device, page-locked", c.pinned_gbs),
                                  {"host to device, pageable", c.pageable_gbs}}) {
    if (gbs > 0)
      rates.push_back({.what = what,
                       .measured = kGiga * gbs,
                       .sheet = sheet != nullptr ? sheet->pcie_bandwidth : 0,
                       .bytes = true});
  }
  return rates;
}

/// A CPU's figures, by threads.
std::vector<SustainedRate> of_cpu(const CalibrationRuns& runs) {
  std::vector<SustainedRate> rates;
  const auto add = [&](const char* figure, const char* what, bool bytes) {
    for (const MeasuredFigure& f : runs.calibration.figures) {
      if (f.name != figure) continue;
      rates.push_back({.what = what,
                       .threads = f.threads,
                       .measured = kGiga * f.value,
                       .sheet = bytes ? 0 : sheet_peak(runs.device, std::max(1, f.threads)),
                       .bytes = bytes,
                       .spread = f.spread});
    }
  };
  add("fma_gflops", "matrix products, fp32", false);
  add("copy_gbs", "memory", true);
  add("l3_gbs", "third-level cache", true);
  add("l2_gbs", "second-level cache", true);
  return rates;
}

}  // namespace

double sheet_peak(const MeasuredDevice& device, int cores) {
  return vector_peak(cores, device.clock_mhz, device.simd_bits);
}

std::vector<SustainedRate> sustained_rates(const CalibrationRuns& runs, const Gpu* sheet) {
  return runs.device.cpu ? of_cpu(runs) : of_gpu(runs, sheet);
}

}  // namespace stoker
