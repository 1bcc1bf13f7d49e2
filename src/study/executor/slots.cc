#include "study/executor/slots.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>

#include "base/text.h"
#include "base/units.h"
#include "system/machine_facts.h"
#include "system/system_files.h"

namespace stoker::study {
namespace {

std::vector<int> usable_cores() {
  std::vector<int> cores;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return {0};
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

std::string output_of(const char* command) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(popen(command, "r"), &pclose);
  std::string text;
  if (pipe == nullptr) return text;
  std::array<char, 4096> block{};
  while (const std::size_t n = std::fread(block.data(), 1, block.size(), pipe.get()))
    text.append(block.data(), n);
  return text;
}

std::vector<std::string> visible_gpus() {
  if (const char* given = std::getenv("CUDA_VISIBLE_DEVICES"); given != nullptr) {
    std::vector<std::string> gpus;
    for (const std::string& one : split(given, ',')) {
      const std::string name(trimmed(one));
      if (name.empty() || name == "-1") break;  // as CUDA takes it: what follows is not seen
      gpus.push_back(name);
    }
    return gpus;
  }
  return gpus_listed(output_of("nvidia-smi -L 2>/dev/null"));
}

}  // namespace

std::vector<std::string> gpus_listed(std::string_view output) {
  std::vector<std::string> gpus;
  bool parted = false;  // the GPU above has instances
  for (const std::string& line : split(output, '\n')) {
    const std::string_view text = trimmed(line);
    const auto uuid = text.find("UUID: ");
    if (uuid == std::string_view::npos) continue;
    std::string id(text.substr(uuid + 6));
    if (const auto end = id.find(')'); end != std::string::npos) id.resize(end);
    if (text.starts_with("MIG ")) {
      if (!parted && !gpus.empty()) gpus.pop_back();
      parted = true;
      gpus.push_back(id);
    } else if (text.starts_with("GPU ")) {
      parted = false;
      gpus.push_back(std::string(text.substr(4, text.find(':') - 4)));
    }
  }
  return gpus;
}

Slots::Slots(Capacity capacity) : capacity_(std::move(capacity)), free_cores_(capacity_.cores) {
  for (int share = 0; share < std::max(capacity_.share_gpu, 1); ++share)
    free_gpus_.insert(free_gpus_.end(), capacity_.gpus.begin(), capacity_.gpus.end());
}

int Slots::most_at_a_time(const Needs& needs) const {
  if (capacity_.at_most > 0) return capacity_.at_most;
  // A trial that says nothing is measured alone: others beside it would slow it down.
  if (needs.gpus == 0) return needs.cores > 0 ? 1 << 20 : 1;
  const auto gpus = static_cast<int>(capacity_.gpus.size()) * std::max(capacity_.share_gpu, 1);
  return std::max(gpus / needs.gpus, 1);
}

/// 0: not bound to any.
int Slots::cores_for(const Needs& needs) const {
  if (needs.cores > 0) return needs.cores;
  const auto all = static_cast<int>(capacity_.cores.size());
  return all / most_at_a_time(needs);
}

std::optional<std::string> Slots::impossible(const Needs& needs) const {
  if (needs.cores > static_cast<int>(capacity_.cores.size()))
    return "needs " + std::to_string(needs.cores) + " cores, and this machine has " +
           std::to_string(capacity_.cores.size());
  if (needs.gpus > static_cast<int>(capacity_.gpus.size()))
    return "needs " + std::to_string(needs.gpus) + " GPUs, and this machine has " +
           std::to_string(capacity_.gpus.size());
  if (capacity_.memory_bytes > 0 && needs.memory_bytes > capacity_.memory_bytes)
    return "needs " + human_bytes(Bytes(needs.memory_bytes)) + ", and this machine has " +
           human_bytes(Bytes(capacity_.memory_bytes));
  return std::nullopt;
}

int Slots::at_a_time(const Needs& needs) const {
  int most = most_at_a_time(needs);
  if (needs.cores > 0)
    most = std::min(most, static_cast<int>(capacity_.cores.size()) / needs.cores);
  const auto gpus = static_cast<int>(capacity_.gpus.size()) * std::max(capacity_.share_gpu, 1);
  if (needs.gpus > 0) most = std::min(most, gpus / needs.gpus);
  return std::max(most, 1);
}

bool Slots::has_room(const Needs& needs) const {
  if (in_use_ >= most_at_a_time(needs)) return false;
  if (cores_for(needs) > static_cast<int>(free_cores_.size())) return false;
  // One GPU may be free for two trials, and is no two GPUs of one.
  if (needs.gpus > static_cast<int>(std::set(free_gpus_.begin(), free_gpus_.end()).size()))
    return false;
  return capacity_.memory_bytes == 0 || memory_used_ + needs.memory_bytes <= capacity_.memory_bytes;
}

std::optional<Slot> Slots::take(const Needs& needs) {
  if (!has_room(needs)) return std::nullopt;
  Slot slot;
  const int cores = cores_for(needs);
  slot.cores.assign(free_cores_.begin(), free_cores_.begin() + cores);
  for (const std::string& gpu : free_gpus_) {
    if (static_cast<int>(slot.gpus.size()) == needs.gpus) break;
    if (std::ranges::find(slot.gpus, gpu) == slot.gpus.end()) slot.gpus.push_back(gpu);
  }
  slot.memory_bytes = needs.memory_bytes;
  take_again(slot);
  return slot;
}

void Slots::take_again(const Slot& slot) {
  for (const int core : slot.cores) std::erase(free_cores_, core);
  for (const std::string& gpu : slot.gpus) {
    const auto found = std::ranges::find(free_gpus_, gpu);
    if (found != free_gpus_.end()) free_gpus_.erase(found);
  }
  memory_used_ += slot.memory_bytes;
  ++in_use_;
}

void Slots::give_back(const Slot& slot) {
  free_cores_.insert(free_cores_.end(), slot.cores.begin(), slot.cores.end());
  std::ranges::sort(free_cores_);
  free_gpus_.insert(free_gpus_.end(), slot.gpus.begin(), slot.gpus.end());
  memory_used_ -= slot.memory_bytes;
  --in_use_;
}

Capacity this_capacity() {
  Capacity capacity;
  capacity.cores = usable_cores();
  capacity.gpus = visible_gpus();
  capacity.memory_bytes = memory_from(system_files()).usable().count();
  return capacity;
}

}  // namespace stoker::study
