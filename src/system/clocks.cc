#include "system/clocks.h"

#include <sys/resource.h>

#include <ctime>

namespace stoker {
namespace {

Nanos clock_time(clockid_t clock) {
  struct timespec now {};
  ::clock_gettime(clock, &now);
  return Nanos(static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec));
}

Nanos cpu_time_of(int who) {
  struct rusage use {};
  ::getrusage(who, &use);
  const auto nanos = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_usec) * 1e3;
  };
  return Nanos(nanos(use.ru_utime) + nanos(use.ru_stime));
}

}  // namespace

Nanos wall_time() { return clock_time(CLOCK_MONOTONIC); }
Nanos thread_cpu_time() { return clock_time(CLOCK_THREAD_CPUTIME_ID); }
Nanos process_cpu_time() { return cpu_time_of(RUSAGE_SELF) + cpu_time_of(RUSAGE_CHILDREN); }

}  // namespace stoker
