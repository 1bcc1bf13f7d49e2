#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "device/catalogue/gpu_catalogue.h"
#include "device/machine.h"

namespace stoker {

/// What a machine file says (docs/reference/machine-file.md). Either part may be absent: a file can
/// describe a device, a host, or both.
struct MachineFile {
  std::string name;
  std::optional<Device> device;
  int gpu_count = 1;
  std::optional<Host> host;
  int nodes = 1;
  double network_bandwidth = 0;  ///< bytes/s per node, 0 = unknown
  /// Who measured what, when and with what; free text by key.
  std::map<std::string, std::string> provenance;
  /// The [calibration] table as TOML text, kept as it is; what it says is in `device`.
  std::string calibration;
};

inline constexpr int kMachineFormatVersion = 1;

/// `name` is the file that errors point at. `catalogue` resolves `base`.
[[nodiscard]] Result<MachineFile> parse_machine_file(std::string_view text, const std::string& name,
                                                     const GpuCatalogue& catalogue);
[[nodiscard]] Result<MachineFile> read_machine_file(const std::filesystem::path& path);

/// The text that parse_machine_file reads back as the same values.
[[nodiscard]] std::string machine_file_text(const MachineFile& file);
[[nodiscard]] Status write_machine_file(const std::filesystem::path& path, const MachineFile& file);

}  // namespace stoker
