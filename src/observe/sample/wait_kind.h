#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace stoker {

/// What a thread was found doing at one look, by its state and the kernel function that it sleeps
/// in. The numbers stand in recordings: new kinds are added at the end.
enum class WaitKind : std::uint8_t {
  kRunning,  ///< on a core or in the run queue
  kPoll,     ///< poll, select or epoll: a queue between processes, a socket with a time limit
  kFutex,    ///< a lock, a condition, another thread of the process
  kPipe,     ///< reading or writing a pipe
  kSocket,   ///< reading from or accepting at a socket
  kDisk,     ///< storage of this machine, page faults that read files among it
  kNetworkStorage,  ///< NFS, FUSE and other file systems that a server or a program answers for
  kTimer,           ///< sleeps for a time
  kChild,           ///< waits for a child to end
  kDevice,          ///< within a driver: ioctl of a GPU
  kStopped,         ///< by a signal or a debugger
  kOther,           ///< asleep in a function that stands in no list
  kUnknown          ///< asleep; this user may not see where
};
inline constexpr std::size_t kWaitKinds = 13;

/// "poll", as machines read it.
[[nodiscard]] std::string_view name_of(WaitKind kind);

/// `state` is the letter of /proc/PID/stat; `wchan` the kernel's function, "0" or empty where it is
/// hidden or the thread runs.
[[nodiscard]] WaitKind wait_kind(char state, std::string_view wchan);

/// How often a thread was found in each kind.
struct Looks {
  std::array<std::uint32_t, kWaitKinds> count{};

  void add(WaitKind kind) { ++count[static_cast<std::size_t>(kind)]; }
  [[nodiscard]] std::uint32_t of(WaitKind kind) const {
    return count[static_cast<std::size_t>(kind)];
  }
  [[nodiscard]] std::uint32_t all() const;
  [[nodiscard]] std::uint32_t asleep() const { return all() - of(WaitKind::kRunning); }
  Looks& operator+=(const Looks& other);
  bool operator==(const Looks&) const = default;
};

}  // namespace stoker
