#include "cli/outside/python.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/text.h"

extern char** environ;

namespace stoker::cli {
namespace fs = std::filesystem;
namespace {

fs::path binary_folder() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path();
}

bool holds_package(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / "stoker" / "__main__.py", ignored);
}

/// The folder of packages beside an installed binary: PREFIX/bin/stoker has
/// PREFIX/lib/python3.11/site-packages/stoker.
fs::path installed_packages() {
  const fs::path prefix = binary_folder().parent_path();
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(prefix / "lib", error)) {
    if (!entry.path().filename().string().starts_with("python3")) continue;
    for (const char* packages : {"site-packages", "dist-packages"}) {
      if (holds_package(entry.path() / packages)) return entry.path() / packages;
    }
  }
  return holds_package(prefix) ? prefix : fs::path();  // pip install --target
}

/// The folder of packages of the source tree that holds this binary: build/PRESET/stoker.
fs::path source_packages() {
  for (const char* up : {"../../python", "../../../python"}) {
    std::error_code ignored;
    const fs::path candidate = fs::weakly_canonical(binary_folder() / up, ignored);
    if (holds_package(candidate)) return candidate;
  }
#ifdef STOKER_SOURCE_PYTHON
  if (holds_package(STOKER_SOURCE_PYTHON)) return STOKER_SOURCE_PYTHON;
#endif
  return {};
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

/// The interpreter of the environment that this binary was installed into, which finds the package
/// by itself; empty without one.
std::string own_interpreter() {
  const fs::path beside = binary_folder() / "python3";
  if (installed_packages().empty() || access(beside.c_str(), X_OK) != 0) return {};
  return beside.string();
}

std::string interpreter() {
  if (const std::string given = variable("STOKER_PYTHON"); !given.empty()) return given;
  const std::string own = own_interpreter();
  return own.empty() ? "python3" : own;
}

/// PYTHONPATH for the interpreter: where the package lies, unless it is the environment's own.
std::string python_path() {
  // An empty entry is the working directory, which would come before Python's own modules.
  std::string before;
  for (const std::string& folder : split(variable("PYTHONPATH"), ':')) {
    if (!folder.empty()) before += (before.empty() ? "" : ":") + folder;
  }
  if (interpreter() == own_interpreter()) return before;
  const fs::path installed = installed_packages();
  const std::string path = (installed.empty() ? source_packages() : installed).string();
  return path.empty() || before.empty() ? path + before : path + ":" + before;
}

/// `python -m stoker` but for one thing: until the package is imported, the working directory is
/// not searched, where a random.py of the user's would stand in the place of Python's.
constexpr const char* kStart =
    "import sys\n"
    "sys.path[:1] = [folder for folder in sys.path[:1] if folder]\n"
    "from stoker.cli import run\n"
    "sys.exit(run())";

/// Words and environment of the package's command line, as execve takes them.
class PythonCommand {
 public:
  explicit PythonCommand(const std::vector<std::string>& arguments)
      : words_{interpreter(), "-c", kStart} {
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
  /// What Python runs as the binary is this one.
  void find_this_binary() {
    std::error_code error;
    const fs::path self = fs::read_symlink("/proc/self/exe", error);
    if (!error) set("STOKER_BINARY", self.string());
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

/// Verbs whose Python reads files and text, and does without PyTorch.
bool does_without_pytorch(const std::string& verb) {
  return verb == "observation" || verb == "vocab" || verb == "study-plots";
}

Error no_interpreter(const std::string& what, const std::string& program, int reason) {
  return Error{ErrorCode::kNotFound,
               what + ", and \"" + program + "\" could not be started (" + std::strerror(reason) +
                   "); set STOKER_PYTHON to your interpreter",
               ""};
}

}  // namespace

fs::path python_package() {
  const fs::path installed = installed_packages();
  const fs::path folder = installed.empty() ? source_packages() : installed;
  return folder.empty() ? folder : folder / "stoker";
}

namespace {

/// When the newest file of the package was written: another version captures other steps.
std::string age_of(const fs::path& package) {
  std::error_code ignored;
  fs::file_time_type newest = fs::file_time_type::min();
  for (fs::recursive_directory_iterator it(package, ignored), end; it != end;
       it.increment(ignored)) {
    if (it->path().extension() == ".py") newest = std::max(newest, it->last_write_time(ignored));
  }
  return std::to_string(newest.time_since_epoch().count());
}

}  // namespace

std::string python_identity() {
  fs::path program = interpreter();
  if (!program.has_parent_path()) {
    for (const std::string& folder : split(variable("PATH"), ':')) {
      if (access((fs::path(folder) / program).c_str(), X_OK) != 0) continue;
      program = fs::path(folder) / program;
      break;
    }
  }
  std::error_code ignored;
  return fs::absolute(program, ignored).string() + "|" + variable("PYTHONPATH") + "|" +
         age_of(python_package());
}

Result<int> run_python_stoker(const std::vector<std::string>& arguments, bool quiet) {
  PythonCommand command(arguments);
  command.find_this_binary();
  const std::vector<char*> argv = command.argv(), envp = command.envp();

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (quiet) posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0)
    return tl::unexpected(no_interpreter(arguments.empty() || !does_without_pytorch(arguments[0])
                                             ? "this verb needs Python with PyTorch"
                                             : "this verb needs Python",
                                         command.program(), failed));
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return fail(ErrorCode::kIo, "lost the Python process");
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Error become_python_stoker(const std::vector<std::string>& arguments) {
  PythonCommand command(arguments);
  command.find_this_binary();
  execvpe(command.program().c_str(), command.argv().data(), command.envp().data());
  return no_interpreter("a probe of a Dataset or DataLoader needs Python with PyTorch",
                        command.program(), errno);
}

}  // namespace stoker::cli
