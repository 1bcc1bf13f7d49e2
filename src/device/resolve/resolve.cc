#include "device/resolve/resolve.h"

#include <algorithm>

#include "base/text.h"
#include "device/catalogue/gpu_catalogue.h"
#include "device/catalogue/instances.h"
#include "device/host/this_cpu.h"
#include "device/resolve/host_option.h"
#include "device/resolve/machine_file.h"

namespace stoker {
namespace {

/// A machine file's host, or that of its CPU.
std::optional<Host> host_in(const MachineFile& file) {
  if (file.host) return file.host;
  const Cpu* cpu = file.device ? file.device->cpu() : nullptr;
  if (cpu != nullptr) return host_of_cpu(*cpu);
  return std::nullopt;
}

/// "a100/h100": GPUs, whose names hold no slash, not a path.
bool names_several_gpus(std::string_view typed) {
  if (typed.ends_with(".toml") || typed.find('/') == std::string_view::npos) return false;
  const std::vector<std::string> parts = split(typed, '/');
  return std::all_of(parts.begin(), parts.end(),
                     [](const std::string& part) { return find_gpu(part).has_value(); });
}

Result<Device> find_device(std::string_view typed, const Host& here) {
  if (names_this_cpu(typed)) return TRY(this_cpu(here));
  return TRY(find_gpu(typed));
}

}  // namespace

bool names_a_file(std::string_view typed) {
  return typed.ends_with(".toml") || typed.find('/') != std::string_view::npos;
}

bool names_this_cpu(std::string_view typed) { return simplified(typed) == "cpu"; }

Result<Host> resolve_host(std::string_view typed, const Host& here) {
  if (typed.find('=') != std::string_view::npos || !names_a_file(typed))
    return parse_host(typed, here);
  auto file = TRY(read_machine_file(std::string(typed)));
  const auto host = host_in(file);
  if (!host) {
    return fail(ErrorCode::kBadInput, "describes no host; add a [host] table", std::string(typed));
  }
  return *host;
}

Result<Machine> resolve_machine(std::string_view gpu, std::string_view host, const Host& here) {
  Machine machine;
  machine.host = here;
  if (names_a_file(gpu) && !names_several_gpus(gpu)) {
    auto file = read_machine_file(std::string(gpu));
    if (!file) return tl::unexpected(file.error());
    if (!file->device) {
      return fail(ErrorCode::kBadInput,
                  "describes no GPU or CPU to train on; add a [gpu] or [cpu] table",
                  std::string(gpu));
    }
    machine.device = *file->device;
    machine.gpu_count = file->gpu_count;
    machine.nodes = file->nodes;
    machine.network_bandwidth = file->network_bandwidth;
    if (const auto own = host_in(*file)) machine.host = *own;
  } else if (names_an_instance(gpu)) {
    machine = TRY(machine_of(TRY(TRY(InstanceTable::load()).find(gpu))));
  } else {
    machine.device = TRY(find_device(gpu, here));
  }
  if (!host.empty()) {
    auto given = TRY(resolve_host(host, here));
    machine.host = std::move(given);
  }
  return machine;
}

}  // namespace stoker
