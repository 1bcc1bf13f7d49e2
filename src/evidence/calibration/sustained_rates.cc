#include "evidence/calibration/sustained_rates.h"

#include <algorithm>
#include <map>

#include "device/host/this_cpu.h"
#include "device/scales.h"

namespace stoker {
namespace {

std::int64_t size_of(const MeasuredOperator& row, const char* name, std::int64_t otherwise) {
  const auto found = row.sizes.find(name);
  return found == row.sizes.end() ? otherwise : found->second;
}

/// Matrix products of a precision, as a rows file names it.
std::optional<RateKind> kind_of(std::string_view precision) {
  if (precision == "fp32") return RateKind::kFp32;
  if (precision == "tf32") return RateKind::kTf32;
  if (precision == "fp16") return RateKind::kFp16;
  if (precision == "bf16") return RateKind::kBf16;
  return std::nullopt;
}

template <class AnyGpu>
auto& figure_of(AnyGpu& gpu, RateKind kind) {
  switch (kind) {
    case RateKind::kFp32:
      return gpu.peak.fp32;
    case RateKind::kTf32:
      return gpu.peak.tf32_tensor;
    case RateKind::kFp16:
      return gpu.peak.fp16_tensor;
    case RateKind::kBf16:
      return gpu.peak.bf16_tensor;
    default:
      return gpu.bandwidth;
  }
}

/// A GPU's best matrix product of each precision, and its fastest copy of data beyond the caches.
std::vector<SustainedRate> of_gpu(const CalibrationRuns& runs, const Gpu* sheet) {
  std::map<RateKind, SustainedRate> products;  // in the order of the kinds
  SustainedRate memory{.kind = RateKind::kMemory};
  for (const MeasuredOperator& row : runs.calibration.operators) {
    const double seconds = 1e-6 * row.time_us;
    if (row.kind == "gemm") {
      const double flops = 2.0 * static_cast<double>(size_of(row, "batch", 1)) *
                           static_cast<double>(size_of(row, "m", 0)) *
                           static_cast<double>(size_of(row, "n", 0)) *
                           static_cast<double>(size_of(row, "k", 0));
      const auto kind = kind_of(row.precision);
      if (!kind) continue;
      SustainedRate& best = products[*kind];
      if (flops / seconds > best.measured)
        best = {.kind = *kind,
                .measured = flops / seconds,
                .sheet = sheet != nullptr ? sheet_figure(*sheet, *kind) : 0,
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
  for (const auto& [kind, rate] : products) rates.push_back(rate);
  if (sheet != nullptr) memory.sheet = sheet->bandwidth;
  if (memory.measured > 0) rates.push_back(memory);
  const Calibration& c = runs.calibration;
  for (const auto& [kind, gbs] : {std::pair(RateKind::kPinnedCopy, c.pinned_gbs),
                                  {RateKind::kPageableCopy, c.pageable_gbs}}) {
    if (gbs > 0)
      rates.push_back({.kind = kind,
                       .measured = kGiga * gbs,
                       .sheet = sheet != nullptr ? sheet->pcie_bandwidth : 0});
  }
  return rates;
}

/// A CPU's figures, by threads.
std::vector<SustainedRate> of_cpu(const CalibrationRuns& runs) {
  std::vector<SustainedRate> rates;
  const auto add = [&](const char* figure, RateKind kind) {
    for (const MeasuredFigure& f : runs.calibration.figures) {
      if (f.name != figure) continue;
      const int threads = std::max(1, f.threads);
      rates.push_back({.kind = kind,
                       .threads = f.threads,
                       .measured = kGiga * f.value,
                       .sheet = counts_bytes(kind) ? 0 : sheet_peak(runs.device, threads),
                       .spread = f.spread});
    }
  };
  add("fma_gflops", RateKind::kFp32);
  add("copy_gbs", RateKind::kMemory);
  add("l3_gbs", RateKind::kThirdLevelCache);
  add("l2_gbs", RateKind::kSecondLevelCache);
  return rates;
}

}  // namespace

std::string_view name_of(RateKind kind) {
  switch (kind) {
    case RateKind::kFp32:
      return "matrix products, fp32";
    case RateKind::kTf32:
      return "matrix products, tf32";
    case RateKind::kFp16:
      return "matrix products, fp16";
    case RateKind::kBf16:
      return "matrix products, bf16";
    case RateKind::kMemory:
      return "memory";
    case RateKind::kThirdLevelCache:
      return "third-level cache";
    case RateKind::kSecondLevelCache:
      return "second-level cache";
    case RateKind::kPinnedCopy:
      return "host to device, page-locked";
    case RateKind::kPageableCopy:
      return "host to device, pageable";
  }
  return "";
}

double& sheet_figure(Gpu& gpu, RateKind kind) { return figure_of(gpu, kind); }
double sheet_figure(const Gpu& gpu, RateKind kind) { return figure_of(gpu, kind); }

double sheet_peak(const MeasuredDevice& device, int cores) {
  return vector_peak(cores, device.clock_mhz, device.simd_bits);
}

std::vector<SustainedRate> sustained_rates(const CalibrationRuns& runs, const Gpu* sheet) {
  return runs.device.cpu ? of_cpu(runs) : of_gpu(runs, sheet);
}

}  // namespace stoker
