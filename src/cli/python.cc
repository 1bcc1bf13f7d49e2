#include "cli/python.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

extern char** environ;

namespace stoker::cli {
namespace fs = std::filesystem;
namespace {

fs::path binary_folder() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path();
}

std::string interpreter() {
  if (const char* given = std::getenv("STOKER_PYTHON"); given != nullptr && *given != '\0')
    return given;
  return "python3";
}

/// Folders that may hold the package `stoker`: the wheel's (this binary is stoker/bin/stoker) or
/// the source tree's (this binary is build/PRESET/src/cli/stoker or build/PRESET/stoker).
std::string python_path() {
  std::string path;
  const fs::path here = binary_folder();
  for (const char* up : {"../..", "../../python", "../../../python", "../../../../python"}) {
    std::error_code ignored;
    const fs::path candidate = fs::weakly_canonical(here / up, ignored);
    if (fs::exists(candidate / "stoker" / "__main__.py", ignored))
      path += (path.empty() ? "" : ":") + candidate.string();
  }
#ifdef STOKER_SOURCE_PYTHON
  if (path.empty() && fs::exists(fs::path(STOKER_SOURCE_PYTHON) / "stoker"))
    path = STOKER_SOURCE_PYTHON;
#endif
  if (const char* before = std::getenv("PYTHONPATH"); before != nullptr && *before != '\0') {
    path += (path.empty() ? "" : ":") + std::string(before);
  }
  return path;
}

/// Words and environment of `python -m stoker ARGUMENTS`, as execve takes them.
class PythonCommand {
 public:
  explicit PythonCommand(const std::vector<std::string>& arguments)
      : words_{interpreter(), "-m", "stoker"} {
    words_.insert(words_.end(), arguments.begin(), arguments.end());
    for (char** e = environ; *e != nullptr; ++e) {
      if (std::strncmp(*e, "PYTHONPATH=", 11) != 0) variables_.emplace_back(*e);
    }
    if (const std::string path = python_path(); !path.empty())
      variables_.push_back("PYTHONPATH=" + path);
  }

  void set(const std::string& name, const std::string& value) {
    std::erase_if(variables_, [&](const std::string& v) { return v.starts_with(name + "="); });
    variables_.push_back(name + "=" + value);
  }
  [[nodiscard]] const std::string& program() const { return words_[0]; }
  [[nodiscard]] std::vector<char*> argv() { return pointers(words_); }
  [[nodiscard]] std::vector<char*> envp() { return pointers(variables_); }

 private:
  static std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> result;
    for (std::string& text : texts) result.push_back(text.data());
    result.push_back(nullptr);
    return result;
  }

  std::vector<std::string> words_, variables_;
};

Error no_interpreter(const std::string& what, const std::string& program, int reason) {
  return Error{ErrorCode::kNotFound,
               what + " needs Python with PyTorch, and \"" + program + "\" could not be started (" +
                   std::strerror(reason) + "); set STOKER_PYTHON to your interpreter",
               ""};
}

}  // namespace

fs::path python_package() {
  const std::string folders = python_path();
  const std::string first = folders.substr(0, folders.find(':'));
  return first.empty() ? fs::path() : fs::path(first) / "stoker";
}

Result<int> run_python_stoker(const std::vector<std::string>& arguments, bool quiet) {
  PythonCommand command(arguments);
  const std::vector<char*> argv = command.argv(), envp = command.envp();

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (quiet) posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return tl::unexpected(no_interpreter("this verb", command.program(), failed));
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return fail(ErrorCode::kIo, "lost the Python process");
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Error become_python_stoker(const std::vector<std::string>& arguments) {
  PythonCommand command(arguments);
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (!error) command.set("STOKER_BINARY", self.string());
  execvpe(command.program().c_str(), command.argv().data(), command.envp().data());
  return no_interpreter("a probe of a Dataset or DataLoader", command.program(), errno);
}

}  // namespace stoker::cli
