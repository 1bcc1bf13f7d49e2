#include "study/runner/child_process.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>

#include "base/text.h"
#include "system/system_files.h"

namespace stoker::study {
namespace {

struct Pipe {
  int read_end = -1, write_end = -1;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return fail(ErrorCode::kIo, std::string("no pipe can be made: ") + std::strerror(errno));
  return Pipe{ends[0], ends[1]};
}

/// Says which call failed, and why, and ends the child.
[[noreturn]] void give_up(int report, char stage) {
  const int reason = errno;
  char message[1 + sizeof reason];
  message[0] = stage;
  std::memcpy(message + 1, &reason, sizeof reason);
  [[maybe_unused]] const ssize_t ignored = write(report, message, sizeof message);
  _exit(127);
}

void bind_to(const std::vector<int>& cores) {
  if (cores.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) {
    if (core >= 0 && core < CPU_SETSIZE) CPU_SET(core, &set);
  }
  sched_setaffinity(0, sizeof set, &set);
}

[[noreturn]] void become(const ChildOptions& options, const std::vector<char*>& argv, pid_t parent,
                         const Pipe& output, const Pipe& errors, int report) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // it died before it could be bound to this one
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGUSR1, SIGUSR2, SIGCHLD})
    signal(number, SIG_DFL);
  bind_to(options.cores);
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  dup2(output.write_end, STDOUT_FILENO);
  dup2(errors.write_end, STDERR_FILENO);
  if (!options.folder.empty() && chdir(options.folder.c_str()) != 0) give_up(report, 'd');
  for (const auto& [name, value] : options.environment) setenv(name.c_str(), value.c_str(), 1);
  execvp(argv[0], argv.data());
  give_up(report, 'x');
}

Error not_started(const ChildOptions& options, char stage, int reason) {
  const bool folder = stage == 'd';
  return {ErrorCode::kNotFound,
          (folder ? "the folder " + options.folder + " cannot be entered: "
                  : "\"" + options.words[0] + "\" cannot be started: ") +
              std::strerror(reason),
          {}};
}

/// What a process's /proc/PID/stat tells: its parent and its resident pages.
struct Stat {
  pid_t parent = 0;
  std::int64_t resident_pages = 0;
  bool ended = false;
};

std::optional<Stat> stat_of(const std::string& process) {
  const auto text = system_files()("/proc/" + process + "/stat");
  if (!text) return std::nullopt;
  const auto bracket = text->rfind(')');
  if (bracket == std::string::npos) return std::nullopt;
  const auto fields = split(std::string_view(*text).substr(bracket + 2), ' ');
  if (fields.size() < 22) return std::nullopt;
  return Stat{static_cast<pid_t>(whole_number(fields[1]).value_or(0)),
              whole_number(fields[21]).value_or(0), fields[0] == "Z" || fields[0] == "X"};
}

}  // namespace

Result<Child> start_child(const ChildOptions& options) {
  const Pipe output = TRY(make_pipe()), errors = TRY(make_pipe()), report = TRY(make_pipe());
  std::vector<char*> argv;
  for (const std::string& word : options.words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t process = fork();
  if (process == 0) become(options, argv, parent, output, errors, report.write_end);
  for (const int end : {output.write_end, errors.write_end, report.write_end}) close(end);
  if (process < 0)
    return fail(ErrorCode::kIo, std::string("no process can be made: ") + std::strerror(errno));
  setpgid(process, process);
  char message[1 + sizeof(int)];
  ssize_t count = 0;
  do count = read(report.read_end, message, sizeof message);
  while (count < 0 && errno == EINTR);
  close(report.read_end);
  if (count > 0) {
    int reason = 0;
    std::memcpy(&reason, message + 1, sizeof reason);
    for (const int end : {output.read_end, errors.read_end}) close(end);
    return tl::unexpected(not_started(options, message[0], reason));
  }
  for (const int end : {output.read_end, errors.read_end})
    fcntl(end, F_SETFL, fcntl(end, F_GETFL) | O_NONBLOCK);
  return Child{process, output.read_end, errors.read_end};
}

std::vector<pid_t> descendants(pid_t root) {
  std::multimap<pid_t, pid_t> children;
  for (const std::string& name : system_folders()("/proc")) {
    const auto process = whole_number(name);
    if (!process) continue;
    const auto stat = stat_of(name);
    if (stat && !stat->ended) children.emplace(stat->parent, static_cast<pid_t>(*process));
  }
  std::vector<pid_t> found;
  std::vector<pid_t> open{root};
  while (!open.empty()) {
    const auto [begin, end] = children.equal_range(open.back());
    open.pop_back();
    for (auto child = begin; child != end; ++child) {
      found.push_back(child->second);
      open.push_back(child->second);
    }
  }
  return found;
}

std::int64_t resident_bytes(const std::vector<pid_t>& processes) {
  std::int64_t pages = 0;
  for (const pid_t process : processes) {
    if (const auto stat = stat_of(std::to_string(process))) pages += stat->resident_pages;
  }
  return pages * sysconf(_SC_PAGESIZE);
}

}  // namespace stoker::study
