#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "system/system_files.h"

/// A made-up system, for tests.
namespace stoker::test_system {

/// Files by path; others cannot be read.
inline SystemFiles files_of(std::map<std::string, std::string> files) {
  return [files = std::move(files)](const std::string& path) -> std::optional<std::string> {
    const auto found = files.find(path);
    if (found == files.end()) return std::nullopt;
    return found->second;
  };
}

/// Names in folders by path; others are empty.
inline SystemFolders folders_of(std::map<std::string, std::vector<std::string>> folders) {
  return [folders = std::move(folders)](const std::string& path) {
    const auto found = folders.find(path);
    return found == folders.end() ? std::vector<std::string>() : found->second;
  };
}

inline const char* const kMountsV2 =
    "25 1 0:22 / /proc rw - proc proc rw\n"
    "30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

/// As a container sees it: its own folder is the mount's root.
inline const char* const kMountsV1 =
    "31 25 0:27 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n"
    "32 25 0:28 /docker/abc /sys/fs/cgroup/memory ro master:9 - cgroup cgroup rw,memory\n"
    "33 25 0:29 / /sys/fs/cgroup/unified ro - cgroup2 cgroup2 rw\n";

}  // namespace stoker::test_system
