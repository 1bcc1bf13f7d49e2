#include "study/executor/program.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "study/runner/child_process.h"

namespace stoker::study {
namespace {

/// False: the stream has ended.
bool read_some(int& from, std::string& into) {
  char block[16384];
  const ssize_t count = read(from, block, sizeof block);
  if (count > 0) into.append(block, static_cast<std::size_t>(count));
  if (count > 0 || (count < 0 && (errno == EINTR || errno == EAGAIN))) return true;
  close(from);
  from = -1;
  return false;
}

}  // namespace

Result<ProgramAnswer> run_program(const std::vector<std::string>& words) {
  Child child = TRY(start_child({words}));
  ProgramAnswer answer;
  while (child.output >= 0 || child.errors >= 0) {
    pollfd watched[2] = {{child.output, POLLIN, 0}, {child.errors, POLLIN, 0}};
    poll(watched, 2, -1);
    if (child.output >= 0 && watched[0].revents != 0) read_some(child.output, answer.output);
    if (child.errors >= 0 && watched[1].revents != 0) read_some(child.errors, answer.errors);
  }
  int status = 0;
  while (waitpid(child.process, &status, 0) < 0 && errno == EINTR) {
  }
  answer.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return answer;
}

}  // namespace stoker::study
