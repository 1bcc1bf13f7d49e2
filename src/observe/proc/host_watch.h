#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "observe/sample/sample.h"
#include "system/cgroup.h"
#include "system/system_files.h"

namespace stoker {

/// The machine's counters and those of a job's control groups. What cannot be read stays zero.
///
/// A job may be put into its group after it began, its limits may be changed while it runs, and a
/// process may be bound to other cores: the groups are looked up anew with each sample.
class HostWatch {
 public:
  /// The groups are those of process `pid`.
  HostWatch(SystemFiles files, std::string proc_folder, std::int64_t pid);

  /// From now on the groups of another process count: the training process, once it is known.
  void follow(std::int64_t pid);
  [[nodiscard]] HostSample sample();

 private:
  /// The groups of the process where they differ from those of the last sample.
  void find_groups();
  void read_limits(HostSample& host) const;
  void read_shared_memory(HostSample& host);
  void read_groups(HostSample& host);
  void read_disks(HostSample& host) const;

  SystemFiles files_;
  std::string proc_;
  std::int64_t pid_;
  std::string groups_;  ///< text of /proc/PID/cgroup
  CgroupFolders cpu_, memory_;
  /// A group that is entered has counted before: its counters at that moment, and what was counted
  /// in groups that were left.
  Throttling entered_{}, left_{}, now_{};
  std::int64_t shared_memory_ = 0, shared_memory_most_ = 0;  ///< as last seen of the process
};

/// Sums of /proc/diskstats over whole disks; parts of disks, loop and RAM devices are left out.
void add_disks(std::string_view diskstats, HostSample& host);

}  // namespace stoker
