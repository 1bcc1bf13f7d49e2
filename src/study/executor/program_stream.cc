#include "study/executor/program_stream.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace stoker::study {
namespace {

constexpr std::size_t kMostErrors = 4096;
constexpr std::size_t kLargestObject = 64U << 20;

/// Reads what is there; closes at the end.
void read_all(int& from, std::string& into) {
  char block[65536];
  while (from >= 0) {
    const ssize_t count = ::read(from, block, sizeof block);
    if (count > 0) {
      into.append(block, static_cast<std::size_t>(count));
      continue;
    }
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    close(from);
    from = -1;
  }
}

}  // namespace

std::vector<std::string> ObjectStream::add(std::string_view bytes) {
  std::vector<std::string> complete;
  for (const char c : bytes) {
    if (depth_ == 0 && c != '{') continue;  // blanks, and what is no JSON
    if (open_.size() < kLargestObject) open_ += c;
    if (in_text_) {
      in_text_ = escaped_ || c != '"';
      escaped_ = !escaped_ && c == '\\';
      continue;
    }
    if (c == '"') in_text_ = true;
    if (c == '{') ++depth_;
    if (c != '}' || --depth_ > 0) continue;
    complete.push_back(std::move(open_));
    open_.clear();
  }
  return complete;
}

Status ProgramStream::start(const std::vector<std::string>& words) {
  stop();
  errors_.clear();
  child_ = TRY(start_child({words}));
  return {};
}

std::string ProgramStream::read(double wait_seconds) {
  std::string text;
  if (!runs()) return text;
  pollfd watched[2] = {{child_.output, POLLIN, 0}, {child_.errors, POLLIN, 0}};
  poll(watched, 2, static_cast<int>(wait_seconds * 1000));
  read_all(child_.output, text);
  read_all(child_.errors, errors_);
  if (errors_.size() > kMostErrors) errors_.resize(kMostErrors);
  if (child_.output < 0) stop();
  return text;
}

void ProgramStream::stop() {
  if (child_.process <= 0) return;
  kill(-child_.process, SIGKILL);
  while (waitpid(child_.process, nullptr, 0) < 0 && errno == EINTR) {
  }
  for (const int end : {child_.output, child_.errors}) {
    if (end >= 0) close(end);
  }
  child_ = {};
}

}  // namespace stoker::study
