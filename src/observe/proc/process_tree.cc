#include "observe/proc/process_tree.h"

#include <dirent.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <memory>

#include "base/text.h"
#include "observe/proc/kept_file.h"
#include "observe/proc/proc_text.h"
#include "system/system_files.h"

namespace stoker {
namespace {

/// Scans between two readings of everybody's parent: a number that a new process took over from one
/// that ended between two scans is found then.
constexpr int kForgetEvery = 60;

std::vector<std::int64_t> process_ids(const std::string& folder) {
  std::vector<std::int64_t> ids;
  const std::unique_ptr<DIR, int (*)(DIR*)> list(::opendir(folder.c_str()), &::closedir);
  if (!list) return ids;
  while (const dirent* entry = ::readdir(list.get())) {
    if (std::isdigit(static_cast<unsigned char>(entry->d_name[0])) != 0)
      ids.push_back(std::atoll(entry->d_name));
  }
  return ids;
}

/// Processes that a container numbers `pid`, in words; empty: there is none that this user can see.
/// The last of NSpid is a process's number within its own namespace.
std::string namesakes(const std::string& proc_folder, std::int64_t pid) {
  constexpr std::size_t kMostNamed = 3;
  const SystemFiles files = system_files();
  std::vector<std::string> named;
  for (const std::int64_t other : process_ids(proc_folder)) {
    if (named.size() == kMostNamed) break;
    const std::string folder = proc_folder + "/" + std::to_string(other);
    const std::string status = files(folder + "/status").value_or("");
    const std::string_view numbers = value_of(status, "NSpid");
    const std::size_t blank = numbers.find_last_of(" \t");
    if (blank == std::string::npos || whole_number(trimmed(numbers.substr(blank))) != pid) continue;
    const std::string name = printable(value_of(status, "Name"));
    named.push_back(std::to_string(other) + " (" + name + ")");
  }
  std::string words;
  for (const std::string& one : named) words += (words.empty() ? "" : ", ") + one;
  return words;
}

/// Ends an error about a number that means nothing here.
std::string or_namesakes(const std::string& proc_folder, std::int64_t pid) {
  const std::string words = namesakes(proc_folder, pid);
  if (words.empty()) return "";
  return "; within a container that number is process " + words + ", to be watched by this one";
}

}  // namespace

std::optional<TreeEntry> read_tree_entry(const std::string& proc_folder, std::int64_t pid) {
  KeptFile file(proc_folder + "/" + std::to_string(pid) + "/stat");
  const auto stat = proc::parse_stat(file.read());
  if (!stat) return std::nullopt;
  return TreeEntry{pid, stat->parent, stat->start_ticks};
}

void ProcessTree::add_root(std::int64_t pid) { roots_.push_back(pid); }

std::vector<TreeEntry> ProcessTree::scan() {
  if (scans_++ % kForgetEvery == 0) known_.clear();
  std::map<std::int64_t, TreeEntry> present;
  for (const std::int64_t pid : process_ids(folder_)) {
    const auto found = known_.find(pid);
    if (found != known_.end()) {
      present.emplace(pid, found->second);
    } else if (const auto entry = read_tree_entry(folder_, pid)) {
      present.emplace(pid, *entry);
    }
  }
  known_ = std::move(present);

  std::vector<TreeEntry> fresh;
  const auto take = [&](const TreeEntry& entry) {
    if (members_.emplace(entry.pid, entry).second) fresh.push_back(entry);
  };
  for (const std::int64_t root : roots_) {
    if (const auto found = known_.find(root); found != known_.end()) take(found->second);
  }
  roots_.clear();
  // A child may have a smaller number than its parent, so this is repeated until nothing is added.
  for (bool grown = true; grown;) {
    const std::size_t before = members_.size();
    for (const auto& [pid, entry] : known_) {
      const auto parent = members_.find(entry.parent);
      if (parent != members_.end() && parent->second.start_ticks <= entry.start_ticks) take(entry);
    }
    grown = members_.size() > before;
  }
  return fresh;
}

Status check_watchable(const std::string& proc_folder, std::int64_t pid) {
  const std::string number = std::to_string(pid);
  const std::string folder = proc_folder + "/" + number;
  KeptFile file(folder + "/stat");
  const std::string text(file.read());
  const auto stat = proc::parse_stat(text);
  if (!stat) {
    return fail(ErrorCode::kNotFound,
                "no such process that this user can see; it has ended, it runs in another "
                "container or on another node, or /proc is mounted with hidepid: watch it as its "
                "owner or as root" +
                    or_namesakes(proc_folder, pid),
                number);
  }
  if (stat->state == 'Z' || stat->state == 'X')
    return fail(ErrorCode::kBadInput, "has ended and waits for its parent to notice (a zombie)",
                number);
  const auto status = system_files()(folder + "/status");
  const auto leader = whole_number(value_of(status.value_or(""), "Tgid"));
  if (leader && *leader != pid)
    return fail(ErrorCode::kBadInput,
                "is a thread of process " + std::to_string(*leader) + "; watch that", number);
  const auto kernel = value_of(status.value_or(""), "Kthread");
  if (kernel == "1") {
    return fail(ErrorCode::kBadInput, "is a thread of the kernel" + or_namesakes(proc_folder, pid),
                number);
  }
  return {};
}

}  // namespace stoker
