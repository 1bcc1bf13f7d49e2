#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace stoker {

/// A process that holds memory of a GPU, as the driver numbers it: in a container that is perhaps
/// another number than its own.
struct GpuProcess {
  std::int64_t pid = 0;
  std::int64_t bytes = -1;  ///< -1: not told
};

/// What the driver tells of one GPU at a moment; -1: not told.
struct GpuReading {
  std::int64_t busy_percent = -1;    ///< of the last 1/6 to 1 s: some kernel was running
  std::int64_t memory_percent = -1;  ///< likewise: memory was read or written, not its bandwidth
  std::int64_t memory_used = -1, memory_total = -1;
  std::int64_t power_mw = -1, power_limit_mw = -1;
  std::int64_t clock_mhz = -1, clock_most_mhz = -1;  ///< of the multiprocessors
  std::int64_t temperature = -1;                     ///< degrees Celsius
  std::int64_t throttle_reasons = -1;                ///< bits of ThrottleReason
  std::int64_t receive_kb_s = -1, send_kb_s = -1;    ///< PCIe, read rarely: it takes 40 ms
  /// Performance counters (GPM), Hopper and later, parts of a thousand: multiprocessors with work,
  /// tensor cores, bandwidth of memory.
  std::int64_t sm_permille = -1, tensor_permille = -1, dram_permille = -1;
  bool processes_known = false;
  std::vector<GpuProcess> processes;
};

/// Bits of nvmlClocksThrottleReasons (NVML API reference).
enum ThrottleReason : std::int64_t {
  kPowerCap = 0x4,
  kHardwareSlowdown = 0x8,
  kSoftwareThermal = 0x20,
  kHardwareThermal = 0x40,
  kPowerBrake = 0x80
};

/// NVIDIA's management library, opened at run time with declarations of our own: nothing of
/// NVIDIA's is needed to build, and a machine without the driver lacks nothing.
class Nvml {
 public:
  /// Null where there is no such library, it is broken, or it knows no GPU; `why` then says it in
  /// words.
  static std::unique_ptr<Nvml> open(std::string* why = nullptr,
                                    const std::string& library = "libnvidia-ml.so.1");
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] const std::string& name(std::size_t gpu) const;
  /// Whether a GPU is divided into instances (MIG): utilisation is then not told.
  [[nodiscard]] bool divided(std::size_t gpu) const;

  /// How much is read.
  enum class Depth : std::uint8_t { kUsual, kRare };
  [[nodiscard]] GpuReading read(std::size_t gpu, Depth depth);

 private:
  struct Parts;
  explicit Nvml(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace stoker
