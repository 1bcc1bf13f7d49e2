#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "device/catalogue/gpu_catalogue.h"
#include "device/resolve/machine_file.h"
#include "evidence/calibration/calibration_runs.h"

namespace stoker {

/// What a device can sustain: arithmetic of large matrix products by precision, and transfers.
enum class RateKind : std::uint8_t {
  kFp32,
  kTf32,
  kFp16,
  kBf16,
  kMemory,
  kThirdLevelCache,
  kSecondLevelCache,
  kPinnedCopy,    ///< host to device, page-locked
  kPageableCopy,  ///< host to device
};
/// Whether it counts bytes/s; else FLOP/s.
[[nodiscard]] constexpr bool counts_bytes(RateKind kind) { return kind >= RateKind::kMemory; }
/// "matrix products, fp32", "memory".
[[nodiscard]] std::string_view name_of(RateKind kind);

/// What a device was seen to sustain, beside its data sheet.
struct SustainedRate {
  RateKind kind = RateKind::kMemory;
  int threads = 0;      ///< that a CPU was measured with; 0 on a GPU
  double measured = 0;  ///< FLOP/s or bytes/s
  double sheet = 0;     ///< the same by the data sheet; 0: none is known
  double spread = 0;
};

/// A figure of this calibration against the one before.
struct FigureChange {
  std::string name;
  int threads = 0;
  double before = 0, now = 0;
  [[nodiscard]] double change() const { return now / before - 1; }
};

/// A machine file as a calibration leaves it, and what is worth saying about it.
struct CalibratedMachine {
  MachineFile file;
  Calibration calibration;  ///< what stands in it
  bool updated = false;     ///< there was a file of this machine before
  std::size_t measured_operators = 0, kept_operators = 0;
  std::vector<SustainedRate> rates;
  std::vector<FigureChange> changes;  ///< largest first
  double median_spread = 0, worst_spread = 0;
  std::string worst_label;
  std::vector<std::string> notes;
};

/// What the folding works with besides the rows.
struct CalibrationContext {
  const GpuCatalogue* catalogue = nullptr;  ///< not owned
  Host here;                                ///< of a file that is made anew
  std::string version;                      ///< of stoker
};

/// Refuses a file of another device; errors stand at `name`.
[[nodiscard]] Status check_same_device(const MachineFile& file, const std::string& name,
                                       const MeasuredDevice& device, const GpuCatalogue& catalogue);

/// A new machine file, or `before` with what was measured in place of the same rows. Rows that were
/// not measured this time stay while PyTorch and driver are the same; what was learned from
/// training runs corrected the old rows, and goes. Everything else that a person may have written
/// stays: prices, host, disk, link, names.
[[nodiscard]] CalibratedMachine calibrated_machine(const CalibrationRuns& runs,
                                                   const std::optional<MachineFile>& before,
                                                   const CalibrationContext& context);

}  // namespace stoker
