#include "cli/outside/wishes.h"

#include <csignal>
#include <cstdio>
#include <ctime>

namespace stoker::cli {

Wishes::Wishes() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGCHLD, SIGINT, SIGTERM}) sigaddset(&set, number);
  sigprocmask(SIG_BLOCK, &set, nullptr);
}

study::Wish Wishes::operator()() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  const timespec at_once{};
  for (int number = 0; (number = sigtimedwait(&set, nullptr, &at_once)) > 0;) take(number);
  return wish_;
}

void Wishes::take(int number) {
  if (number == SIGTERM) {
    wish_ = study::Wish::kLeave;
  } else if (wish_ == study::Wish::kFinish) {
    wish_ = study::Wish::kCancel;
    std::fputs("\nending the trials that run\n", stderr);
  } else if (wish_ == study::Wish::kGoOn) {
    wish_ = study::Wish::kFinish;
    std::fputs("\nno more trials are started; waiting for those that run (Ctrl-C ends them)\n",
               stderr);
  }
}

}  // namespace stoker::cli
