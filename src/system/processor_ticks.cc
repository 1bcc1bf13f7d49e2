#include "system/processor_ticks.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/text.h"
#include "system/clocks.h"

namespace stoker {

ProcessorTicks processor_ticks(const SystemFiles& files) {
  // cpu  user nice system idle iowait irq softirq steal guest guest_nice
  constexpr std::size_t kIdle = 3, kWaiting = 4, kSteal = 7, kCounted = 8;
  const std::string text = files("/proc/stat").value_or("");
  ProcessorTicks ticks;
  std::size_t field = 0;
  if (!text.starts_with("cpu ")) return ticks;
  for (const std::string& word : split(text.substr(4, text.find('\n') - 4), ' ')) {
    const auto value = decimal_number(word);
    if (!value) continue;  // two blanks stand behind "cpu"
    ticks.all += *value;
    if (field == kSteal) ticks.steal = *value;
    else if (field != kIdle && field != kWaiting) ticks.busy += *value;
    if (++field == kCounted) break;
  }
  return ticks;
}

MachineLoad load_between(const ProcessorTicks& before, const ProcessorTicks& after, double seconds,
                         double own_seconds, int processors) {
  MachineLoad load;
  if (seconds <= 0 || processors <= 0) return load;
  const double ticks_per_second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  const double all = seconds * processors;
  load.seconds = seconds;
  load.others_share =
      std::clamp(((after.busy - before.busy) / ticks_per_second - own_seconds) / all, 0.0, 1.0);
  load.steal_share = std::clamp((after.steal - before.steal) / ticks_per_second / all, 0.0, 1.0);
  return load;
}

MachineLoad machine_load(double seconds) {
  const SystemFiles files = system_files();
  const int processors = count_cpu_list(files("/sys/devices/system/cpu/online").value_or(""));
  const ProcessorTicks before = processor_ticks(files);
  const Nanos start = wall_time(), own = process_cpu_time();
  if (seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  MachineLoad load;
  if (seconds > 0) {
    load = load_between(before, processor_ticks(files), stoker::seconds(wall_time() - start),
                        stoker::seconds(process_cpu_time() - own), processors);
  }
  const auto averages = split(files("/proc/loadavg").value_or(""), ' ');
  load.load_average = decimal_number(averages.front()).value_or(0);
  return load;
}

}  // namespace stoker
