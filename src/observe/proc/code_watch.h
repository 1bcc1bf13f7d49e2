#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "observe/sample/code_kind.h"

namespace stoker {

/// Code of a process that is mapped to run, by /proc/PID/maps.
class CodeMap {
 public:
  CodeMap() = default;
  explicit CodeMap(const std::string& maps);

  /// Whose code lies at an address; nothing where none is known to.
  [[nodiscard]] std::optional<CodeKind> find(std::uint64_t address) const;

 private:
  struct Piece {
    std::uint64_t from = 0, to = 0;
    CodeKind kind = CodeKind::kOther;
  };
  std::vector<Piece> pieces_;  ///< by address
};

/// Asks the kernel now and then, while one thread is on a core, at which address it is
/// (perf_event_open with a software clock), and counts whose code lies there. The thread is not
/// stopped; a user may ask this of processes of its own unless kernel.perf_event_paranoid forbids
/// it. What the kernel does for the thread is not counted.
class CodeWatch {
 public:
  /// kNotFound: the thread is gone; kIo: this user may not ask.
  static Result<CodeWatch> open(std::int64_t tid, std::string folder);
  ~CodeWatch();
  CodeWatch(CodeWatch&& other) noexcept;
  CodeWatch& operator=(CodeWatch&&) = delete;

  /// Adds what was found since the last call; `now_ns` bounds how often the maps are read.
  void read(std::int64_t now_ns, CodeCounts& counts);

 private:
  CodeWatch(int handle, void* ring, std::string folder)
      : handle_(handle), ring_(ring), folder_(std::move(folder)) {}
  void count(std::uint64_t address, std::int64_t now_ns, CodeCounts& counts);

  int handle_ = -1;
  void* ring_ = nullptr;
  std::string folder_;
  CodeMap map_;
  std::int64_t mapped_ns_ = -1;
};

}  // namespace stoker
