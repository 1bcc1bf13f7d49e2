#include "observe/proc/host_watch.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <cctype>
#include <cmath>

#include "base/text.h"
#include "observe/proc/proc_text.h"
#include "system/host_limits.h"
#include "system/processor_ticks.h"

namespace stoker {
namespace {

constexpr double kNanosASecond = 1e9;
constexpr std::int64_t kNanosAMilli = 1'000'000;
constexpr std::int64_t kSectorBytes = 512;  // of /proc/diskstats, whatever the disk's own

std::int64_t nanos_of_ticks(double ticks) {
  static const double kTicksPerSecond = static_cast<double>(::sysconf(_SC_CLK_TCK));
  return static_cast<std::int64_t>(ticks / kTicksPerSecond * kNanosASecond);
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
    : files_(std::move(files)), proc_(std::move(proc_folder)), pid_(pid) {
  find_groups();
}

void HostWatch::follow(std::int64_t pid) { pid_ = pid; }

void HostWatch::find_groups() {
  const auto groups = files_(proc_ + "/" + std::to_string(pid_) + "/cgroup");
  // Where the process has ended, its last groups are kept.
  if (!groups || *groups == groups_) return;
  groups_ = *groups;
  const std::string mounts = files_(proc_ + "/self/mountinfo").value_or("");
  CgroupFolders cpu = cgroup_folders("cpu", groups_, mounts);
  memory_ = cgroup_folders("memory", groups_, mounts);
  if (cpu.folders == cpu_.folders) return;
  cpu_ = std::move(cpu);
  left_.periods += now_.periods - entered_.periods;
  left_.throttled += now_.throttled - entered_.throttled;
  left_.time += now_.time - entered_.time;
  entered_ = now_ = throttling(cpu_, files_);
}

void HostWatch::read_limits(HostSample& host) const {
  constexpr double kThousandths = 1000;
  const auto status = files_(proc_ + "/" + std::to_string(pid_) + "/status");
  HostLimits limits;
  limits.affinity = count_cpu_list(value_of(status.value_or(""), "Cpus_allowed_list"));
  if (const auto quota = cpu_quota(cpu_, files_)) {
    limits.quota = *quota;
    host.quota_milli = std::llround(*quota * kThousandths);
  }
  host.cores_milli = std::llround(limits.usable_cores() * kThousandths);
}

void HostWatch::read_groups(HostSample& host) {
  find_groups();
  now_ = throttling(cpu_, files_);
  host.throttled_ns = static_cast<std::int64_t>((left_.time + now_.time - entered_.time).count());
  host.throttled_periods = left_.throttled + now_.throttled - entered_.throttled;
  host.periods = left_.periods + now_.periods - entered_.periods;
  if (const auto limit = memory_limit(memory_, files_)) {
    host.group_memory = limit->used.count();
    host.group_memory_most = limit->limit.count();
  }
}

void HostWatch::read_disks(HostSample& host) const {
  add_disks(files_("/proc/diskstats").value_or(""), host);
}

void HostWatch::read_shared_memory(HostSample& host) {
  struct statvfs shm {};
  const std::string process = proc_ + "/" + std::to_string(pid_);
  // The job may live in a container with a /dev/shm of its own. What it held when it ended is the
  // last that is known of it; where its root may not be seen, this process's own stands for it.
  const bool seen = ::statvfs((process + "/root/dev/shm").c_str(), &shm) == 0 ||
                    (::access(process.c_str(), F_OK) == 0 && ::statvfs("/dev/shm", &shm) == 0);
  if (seen) {
    const auto block = static_cast<std::int64_t>(shm.f_frsize);
    shared_memory_most_ = static_cast<std::int64_t>(shm.f_blocks) * block;
    shared_memory_ = shared_memory_most_ - static_cast<std::int64_t>(shm.f_bavail) * block;
  }
  host.shared_memory = shared_memory_;
  host.shared_memory_most = shared_memory_most_;
}

HostSample HostWatch::sample() {
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
  // One line of nearly two hundred: the text is not taken apart for it.
  const std::string vmstat = files_("/proc/vmstat").value_or("");
  constexpr std::string_view kSwapIn = "\npswpin ";
  if (const std::size_t at = vmstat.find(kSwapIn); at != std::string::npos) {
    const std::size_t from = at + kSwapIn.size();
    host.swap_in_pages =
        whole_number(vmstat.substr(from, vmstat.find('\n', from) - from)).value_or(0);
  }
  read_shared_memory(host);
  read_groups(host);
  read_limits(host);
  read_disks(host);
  return host;
}

}  // namespace stoker
