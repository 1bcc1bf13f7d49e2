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

}  // namespace

Result<int> run_python_stoker(const std::vector<std::string>& arguments, bool quiet) {
  std::vector<std::string> words{interpreter(), "-m", "stoker"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::vector<std::string> variables;
  for (char** e = environ; *e != nullptr; ++e) {
    if (std::strncmp(*e, "PYTHONPATH=", 11) != 0) variables.emplace_back(*e);
  }
  if (const std::string path = python_path(); !path.empty())
    variables.push_back("PYTHONPATH=" + path);
  std::vector<char*> envp;
  for (std::string& v : variables) envp.push_back(v.data());
  envp.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (quiet) posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    return fail(ErrorCode::kNotFound, "capturing needs Python with PyTorch, and \"" + words[0] +
                                          "\" could not be started (" + std::strerror(failed) +
                                          "); set STOKER_PYTHON to your interpreter");
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return fail(ErrorCode::kIo, "lost the capture process");
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace stoker::cli
