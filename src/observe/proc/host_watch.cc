#include "observe/proc/host_watch.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <cctype>

#include "base/text.h"
#include "observe/proc/proc_text.h"
#include "system/processor_ticks.h"

namespace stoker {
namespace {

constexpr double kNanosASecond = 1e9;
constexpr std::int64_t kNanosAMilli = 1'000'000;
constexpr std::int64_t kSectorBytes = 512;  // of /proc/diskstats, whatever the disk's own

std::int64_t nanos_of_ticks(double ticks) {
  static const double per_second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  return static_cast<std::int64_t>(ticks / per_second * kNanosASecond);
}

/// sda, vda, nvme0n1, mmcblk0: not sda1, nvme0n1p1, loop0, ram0, dm-0 (which lies on others).
bool is_whole_disk(std::string_view name) {
  const auto last_is_digit = std::isdigit(static_cast<unsigned char>(name.back())) != 0;
  if (name.starts_with("nvme") || name.starts_with("mmcblk"))
    return name.find('p') == std::string_view::npos;
  if (name.starts_with("sd") || name.starts_with("vd") || name.starts_with("xvd") ||
      name.starts_with("hd"))
    return !last_is_digit;
  return false;
}

}  // namespace

void add_disks(std::string_view diskstats, HostSample& host) {
  for (const std::string& line : split(diskstats, '\n')) {
    std::vector<std::string> words;
    for (std::string& word : split(line, ' ')) {
      if (!word.empty()) words.push_back(std::move(word));
    }
    constexpr std::size_t kFields = 14;
    if (words.size() < kFields || !is_whole_disk(words[2])) continue;
    const auto number = [&](std::size_t i) { return whole_number(words[i]).value_or(0); };
    host.disk_reads += number(3);
    host.disk_read_bytes += number(5) * kSectorBytes;
    host.disk_read_ns += number(6) * kNanosAMilli;
    host.disk_busy_ns += number(12) * kNanosAMilli;
  }
}

HostWatch::HostWatch(SystemFiles files, std::string proc_folder, std::int64_t pid)
    : files_(std::move(files)), root_(proc_folder + "/" + std::to_string(pid) + "/root") {
  const std::string groups =
      files_(proc_folder + "/" + std::to_string(pid) + "/cgroup").value_or("");
  const std::string mounts = files_(proc_folder + "/self/mountinfo").value_or("");
  cpu_ = cgroup_folders("cpu", groups, mounts);
  memory_ = cgroup_folders("memory", groups, mounts);
  quota_ = cpu_quota(cpu_, files_).value_or(0);
}

void HostWatch::read_groups(HostSample& host) const {
  const Throttling held = throttling(cpu_, files_);
  host.throttled_ns = static_cast<std::int64_t>(held.time.count());
  host.throttled_periods = held.throttled;
  host.periods = held.periods;
  if (const auto limit = memory_limit(memory_, files_)) {
    host.group_memory = limit->used.count();
    host.group_memory_most = limit->limit.count();
  }
}

void HostWatch::read_disks(HostSample& host) const {
  add_disks(files_("/proc/diskstats").value_or(""), host);
}

HostSample HostWatch::sample() const {
  HostSample host;
  const ProcessorTicks ticks = processor_ticks(files_);
  host.busy_ns = nanos_of_ticks(ticks.busy);
  host.stolen_ns = nanos_of_ticks(ticks.steal);
  host.cpu_pressure_ns = proc::parse_pressure(files_("/proc/pressure/cpu").value_or(""));
  host.memory_pressure_ns = proc::parse_pressure(files_("/proc/pressure/memory").value_or(""));
  host.io_pressure_ns = proc::parse_pressure(files_("/proc/pressure/io").value_or(""));
  constexpr std::int64_t kKiloByte = 1024;
  const std::string meminfo = files_("/proc/meminfo").value_or("");
  const std::vector<std::string> available = split(value_of(meminfo, "MemAvailable"), ' ');
  if (!available.empty())
    host.memory_available = whole_number(available.front()).value_or(0) * kKiloByte;
  const std::string vmstat = files_("/proc/vmstat").value_or("");
  for (const std::string& line : split(vmstat, '\n')) {
    constexpr std::string_view kSwapIn = "pswpin ";
    if (line.starts_with(kSwapIn))
      host.swap_in_pages = whole_number(line.substr(kSwapIn.size())).value_or(0);
  }
  struct statvfs shm {};
  // The job may live in a container with a /dev/shm of its own.
  const bool seen =
      ::statvfs((root_ + "/dev/shm").c_str(), &shm) == 0 || ::statvfs("/dev/shm", &shm) == 0;
  if (seen) {
    const auto block = static_cast<std::int64_t>(shm.f_frsize);
    host.shared_memory_most = static_cast<std::int64_t>(shm.f_blocks) * block;
    host.shared_memory = host.shared_memory_most - static_cast<std::int64_t>(shm.f_bavail) * block;
  }
  read_groups(host);
  read_disks(host);
  return host;
}

}  // namespace stoker
