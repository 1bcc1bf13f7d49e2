#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace stoker {

/// One process as /proc lists it.
struct TreeEntry {
  std::int64_t pid = 0, parent = 0;
  std::int64_t start_ticks = 0;
};

/// Which processes of this node belong to a job: its roots and what descends from them. A process
/// stays a member when its parent ends. Files of a process are read once when it is first seen, so
/// that a node with thousands of others costs little.
class ProcessTree {
 public:
  explicit ProcessTree(std::string proc_folder) : folder_(std::move(proc_folder)) {}

  /// Adds a process that is there.
  void add_root(std::int64_t pid);

  /// Looks at the list of processes. Members that are new, parents before their children.
  std::vector<TreeEntry> scan();
  void remove(std::int64_t pid) { members_.erase(pid); }
  [[nodiscard]] const std::map<std::int64_t, TreeEntry>& members() const { return members_; }
  /// All processes of this node that can be seen, of the last scan.
  [[nodiscard]] std::size_t seen() const { return known_.size(); }

 private:
  std::string folder_;
  std::map<std::int64_t, TreeEntry> known_;  ///< all that can be seen
  std::map<std::int64_t, TreeEntry> members_;
  std::vector<std::int64_t> roots_;
  int scans_ = 0;
};

/// The entry of a process; nullopt: there is none, or its files cannot be seen.
[[nodiscard]] std::optional<TreeEntry> read_tree_entry(const std::string& proc_folder,
                                                       std::int64_t pid);

/// Whether a process can be watched: it is there, is no thread, has not ended. The error says which
/// and what to do.
[[nodiscard]] Status check_watchable(const std::string& proc_folder, std::int64_t pid);

}  // namespace stoker
