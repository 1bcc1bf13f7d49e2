#include "observe/proc/node_jobs.h"

#include <algorithm>
#include <map>
#include <set>

#include "observe/proc/proc_text.h"
#include "observe/proc/process_tree.h"
#include "system/system_files.h"

namespace stoker {
namespace {

struct Entry {
  std::int64_t parent = 0;
  std::string name;
};
using Node = std::map<std::int64_t, Entry>;

std::string folder_of(const std::string& proc, std::int64_t pid) {
  return proc + "/" + std::to_string(pid);
}

Node list_node(const std::string& proc) {
  Node node;
  const SystemFiles files = system_files();
  for (const std::string& name : system_folders()(proc)) {
    const auto pid = whole_number(name);
    if (!pid) continue;
    const std::string text = files(folder_of(proc, *pid) + "/stat").value_or("");
    const auto stat = proc::parse_stat(text);
    if (stat) node[*pid] = {stat->parent, std::string(stat->name)};
  }
  return node;
}

bool is_python(const Entry& entry) {
  return entry.name.starts_with("python") || entry.name.starts_with("pt_");
}

bool maps_torch(const std::string& proc, std::int64_t pid) {
  const auto maps = system_files()(folder_of(proc, pid) + "/maps");
  return maps && maps->find("libtorch") != std::string::npos;
}

/// The topmost process above that is Python's too, or torchrun, which is.
std::int64_t topmost(const Node& node, std::int64_t pid) {
  for (;;) {
    const auto entry = node.find(pid);
    if (entry == node.end()) return pid;
    const auto parent = node.find(entry->second.parent);
    if (parent == node.end() || !is_python(parent->second)) return pid;
    pid = parent->first;
  }
}

/// "…/job_123/step_0": the whole number, so that job 12 is not found in 123.
bool in_group(std::string_view groups, std::string_view job) {
  const std::string wanted = "/job_" + std::string(job);
  for (std::size_t at = groups.find(wanted); at != std::string_view::npos;
       at = groups.find(wanted, at + 1)) {
    const std::size_t end = at + wanted.size();
    if (end == groups.size() || groups[end] == '/' || groups[end] == '\n') return true;
  }
  return false;
}

}  // namespace

std::vector<std::int64_t> training_jobs(const std::string& proc_folder) {
  const Node node = list_node(proc_folder);
  std::set<std::int64_t> jobs;
  for (const auto& [pid, entry] : node) {
    if (!is_python(entry)) continue;
    const bool worker = entry.name.starts_with("pt_data_worker");
    if (worker || maps_torch(proc_folder, pid)) jobs.insert(topmost(node, pid));
  }
  return {jobs.begin(), jobs.end()};
}

std::vector<std::int64_t> slurm_job_roots(const std::string& proc_folder, std::string_view job) {
  const Node node = list_node(proc_folder);
  const SystemFiles files = system_files();
  std::set<std::int64_t> members;
  const auto number = whole_number(job);
  for (const auto& [pid, entry] : node) {
    // The step's own manager is no part of the job.
    if (entry.name.starts_with("slurmstepd")) continue;
    const std::string folder = folder_of(proc_folder, pid);
    const bool grouped = in_group(files(folder + "/cgroup").value_or(""), job);
    if (grouped || (number && proc::number_in_environment(files(folder + "/environ").value_or(""),
                                                          "SLURM_JOB_ID") == number))
      members.insert(pid);
  }
  std::vector<std::int64_t> roots;
  for (const std::int64_t pid : members) {
    if (!members.contains(node.at(pid).parent)) roots.push_back(pid);
  }
  return roots;
}

}  // namespace stoker
