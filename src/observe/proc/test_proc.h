#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace stoker::testing_support {

/// A made-up /proc that lives as long as a test.
class MadeProc {
 public:
  MadeProc() {
    std::string name = (std::filesystem::temp_directory_path() / "stoker-proc-XXXXXX").string();
    root_ = mkdtemp(name.data());
  }
  MadeProc(const MadeProc&) = delete;
  MadeProc& operator=(const MadeProc&) = delete;
  ~MadeProc() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }

  MadeProc& add(int pid, int parent, const std::string& name, const std::string& maps = "",
                const std::string& cgroup = "", const std::string& environ = "") {
    write(pid, "stat", stat(pid, parent, name, 'S', 100));
    write(pid, "maps", maps).write(pid, "cgroup", cgroup).write(pid, "environ", environ);
    return *this;
  }
  /// A process by its /proc/PID/stat alone, which started at `start` ticks.
  MadeProc& add_stat(int pid, int parent, char state, int start) {
    return write(pid, "stat", stat(pid, parent, "python", state, start));
  }
  MadeProc& write(int pid, const std::string& file, const std::string& text) {
    const auto folder = root_ / std::to_string(pid);
    std::filesystem::create_directories(folder);
    std::ofstream(folder / file) << text;
    return *this;
  }
  void end(int pid) const { std::filesystem::remove_all(root_ / std::to_string(pid)); }
  [[nodiscard]] std::string path() const { return root_.string(); }

 private:
  static std::string stat(int pid, int parent, const std::string& name, char state, int start) {
    return std::to_string(pid) + " (" + name + ") " + state + " " + std::to_string(parent) +
           " 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 " + std::to_string(start) + " 0 0\n";
  }

  std::filesystem::path root_;
};

}  // namespace stoker::testing_support
