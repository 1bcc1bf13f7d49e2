#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "observe/sample/sample.h"
#include "system/cgroup.h"
#include "system/system_files.h"

namespace stoker {

/// The machine's counters and those of a job's control groups. What cannot be read stays zero.
class HostWatch {
 public:
  /// The groups are those of process `pid`.
  HostWatch(SystemFiles files, std::string proc_folder, std::int64_t pid);

  [[nodiscard]] HostSample sample() const;
  [[nodiscard]] double quota() const { return quota_; }  ///< cores; 0: none

 private:
  void read_groups(HostSample& host) const;
  void read_disks(HostSample& host) const;

  SystemFiles files_;
  std::string root_;  ///< of the job's own file system, as /proc shows it
  CgroupFolders cpu_, memory_;
  double quota_ = 0;
};

/// Sums of /proc/diskstats over whole disks; parts of disks, loop and RAM devices are left out.
void add_disks(std::string_view diskstats, HostSample& host);

}  // namespace stoker
