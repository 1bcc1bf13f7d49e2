#include "cli/outside/launched.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace stoker::cli {
namespace {

constexpr int kSignalBase = 128;
std::atomic<int> interrupt_count{0};
std::atomic<pid_t> command_pid{0};

void on_interrupt(int /*signal*/) { ++interrupt_count; }
void on_end(int signal) {
  ++interrupt_count;
  if (const pid_t pid = command_pid; pid > 0) ::kill(pid, signal);
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

void catch_interrupts() {
  handle(SIGINT, &on_interrupt);
  handle(SIGTERM, &on_end);
  handle(SIGHUP, &on_end);
}

int interrupts() { return interrupt_count; }

Result<Launched> Launched::start(const std::vector<std::string>& command, CommandOutput output) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  // The child reports through a pipe that a successful exec closes.
  std::array<int, 2> report{};
  if (::pipe2(report.data(), O_CLOEXEC) != 0)
    return fail(ErrorCode::kIo, std::strerror(errno), command.front());
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (output == CommandOutput::kToErrors) ::dup2(STDERR_FILENO, STDOUT_FILENO);
    ::execvp(words.front(), words.data());
    const int error = errno;
    [[maybe_unused]] const ssize_t sent = ::write(report[1], &error, sizeof error);
    ::_exit(127);
  }
  const int fork_error = errno;
  ::close(report[1]);
  int error = 0;
  const bool failed = pid > 0 && ::read(report[0], &error, sizeof error) == sizeof error;
  ::close(report[0]);
  if (pid < 0 || failed) {
    if (failed) ::waitpid(pid, nullptr, 0);
    return fail(ErrorCode::kBadInput,
                std::string("cannot be started: ") + std::strerror(failed ? error : fork_error),
                command.front());
  }
  command_pid = pid;
  return Launched(pid);
}

void Launched::keep(int status) {
  code_ = WIFEXITED(status) ? WEXITSTATUS(status) : kSignalBase + WTERMSIG(status);
  command_pid = 0;
}

bool Launched::ended() {
  int status = 0;
  if (!code_ && ::waitpid(pid_, &status, WNOHANG) == pid_) keep(status);
  return code_.has_value();
}

int Launched::wait() {
  int status = 0;
  while (!code_) {
    if (::waitpid(pid_, &status, 0) == pid_) keep(status);
    else if (errno != EINTR) code_ = 0;
  }
  return *code_;
}

}  // namespace stoker::cli
