#pragma once

#include <string_view>

#include "base/result.h"
#include "device/machine.h"

namespace stoker {

/// Whether what was typed means a file ("lab.toml", "./lab") rather than a name.
[[nodiscard]] bool names_a_file(std::string_view typed);

/// Whether it means the processor of this computer: "cpu".
[[nodiscard]] bool names_this_cpu(std::string_view typed);

/// The machine that `--gpu` and `--host` mean. `gpu`: a name of the catalogue, a rented machine
/// ("aws:g5.2xlarge"), a machine file, or "cpu". `host`: empty (the machine file's host, else
/// `here`), "cores=16,ram=64G" or a machine file. The count of GPUs is the file's, otherwise 1.
/// `here` is normally this_host().
[[nodiscard]] Result<Machine> resolve_machine(std::string_view gpu, std::string_view host,
                                              const Host& here);

/// The host that `--host` alone means; `typed` is not empty.
[[nodiscard]] Result<Host> resolve_host(std::string_view typed, const Host& here);

}  // namespace stoker
