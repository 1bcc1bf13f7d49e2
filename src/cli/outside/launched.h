#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace stoker::cli {

/// Where the standard output of a started command goes.
enum class CommandOutput : std::uint8_t {
  kInherited,
  kToErrors  ///< this program's standard output holds JSON alone
};

/// A command of the user's, started and not yet waited for. SIGTERM and SIGHUP that reach this
/// program are passed on; Ctrl-C reaches both from the terminal, and this program outlives it.
class Launched {
 public:
  static Result<Launched> start(const std::vector<std::string>& command, CommandOutput output);

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// Whether it has ended; does not wait.
  bool ended();
  /// Waits for it. Its exit status, or 128 and the number of the signal that ended it.
  int wait();

 private:
  explicit Launched(pid_t pid) : pid_(pid) {}
  void keep(int status);

  pid_t pid_;
  std::optional<int> code_;
};

/// Makes Ctrl-C and SIGTERM set a flag and do nothing else.
void catch_interrupts();
/// How often Ctrl-C or SIGTERM came since catch_interrupts().
[[nodiscard]] int interrupts();

}  // namespace stoker::cli
