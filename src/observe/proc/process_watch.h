#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "observe/proc/kept_file.h"
#include "observe/sample/sample.h"

namespace stoker {

/// Reads one process's files. What a right is missing for stays zero and is named by the flags.
///
/// A thread whose schedstat has not changed has slept since, where it slept before: its other files
/// are not read again. That makes a job of many idle threads cheap to watch.
class ProcessWatch {
 public:
  /// `folder`: "/proc/4242". Opens nothing yet.
  ProcessWatch(std::string folder, std::int64_t pid, std::uint32_t serial);

  /// One look at the main thread (and the pin thread), between samples; `at_ns` is on the clock of
  /// samples. False: the process is gone.
  bool look(std::int64_t at_ns);

  /// How much of a process is read. What changes slowly is not read each time.
  enum class Depth : std::uint8_t {
    kUsual,  ///< times, messages, reading and writing
    kSlow    ///< memory and open files too
  };
  /// Everything since the process began; `interval_ns` is what passed since the last sample.
  /// `alive` is false when it is gone or a zombie; the counters are then the last known.
  ProcessSample sample(std::int64_t interval_ns, Depth depth);

  /// Queues to workers are served by threads that began after those did (ticks since the machine
  /// started): others that write belong to other libraries, as gloo's do.
  void expect_queues_since(std::int64_t ticks) { queues_since_ = ticks; }

  [[nodiscard]] std::uint32_t serial() const { return serial_; }
  [[nodiscard]] std::int64_t pid() const { return pid_; }
  [[nodiscard]] bool gone() const { return gone_; }
  [[nodiscard]] bool zombie() const { return state_ == 'Z' || state_ == 'X'; }
  [[nodiscard]] bool stopped() const { return state_ == 'T' || state_ == 't'; }
  /// /proc/PID/io is another user's, and this one may not read it.
  [[nodiscard]] bool io_hidden() const { return io_.state() == KeptFile::State::kDenied; }
  /// No look told where the main thread sleeps: the kernel hides it from this user.
  [[nodiscard]] bool waits_hidden() const {
    return sample_.looks.of(WaitKind::kUnknown) > 0 &&
           sample_.looks.of(WaitKind::kUnknown) == sample_.looks.asleep();
  }

 private:
  struct Thread {
    KeptFile schedstat, stat, wchan, io;
    std::string last;  ///< text of schedstat
    ThreadTimes times{}, before{};
    WaitKind kind = WaitKind::kUnknown;
    std::int64_t written_calls = 0, written_chars = 0, read_chars = 0;
    bool at_socket = false;  ///< was seen to wait at one: a resource sharer, not a queue's thread
    bool pin = false;
    bool library = false;  ///< of a library that writes on its own account
    int named = 0;         ///< times its name was read: it gets one shortly after its start
    int idle = 0;          ///< samples in a row in which it did not run

    std::int64_t started = 0;  ///< ticks since the machine started

    [[nodiscard]] bool sends_messages(std::int64_t queues_since) const;
    [[nodiscard]] std::int64_t messages() const;
  };

  [[nodiscard]] Thread open_thread(std::int64_t tid) const;
  void name(std::int64_t tid, Thread& thread) const;
  void list_threads();
  [[nodiscard]] bool see();
  /// Reads a thread's times, and where it sleeps if that may have changed. False: it is gone.
  bool refresh(Thread& thread, char* state);
  void sample_threads(std::int64_t interval_ns);
  void read_io();
  void read_slow();

  std::string folder_;
  std::int64_t pid_;
  std::uint32_t serial_;
  KeptFile io_, status_, whole_stat_;
  Thread leader_;
  std::map<std::int64_t, Thread> others_;
  ThreadTimes ended_{};  ///< of threads that ended
  std::int64_t ended_messages_ = 0, queues_since_ = 0;
  std::int64_t threads_seen_ = 0;
  int samples_ = 0;
  bool one_ended_ = false;     ///< a thread was found to have ended: others may have begun
  std::string leader_before_;  ///< the main thread's schedstat at the last sample
  int still_ = 0;              ///< samples in a row in which it did not run
  bool ran_ = true;            ///< any of its threads, since the last sample
  std::string io_of_;  ///< the main thread's schedstat when reading and writing were last read
  char state_ = '?';
  bool gone_ = false;
  std::size_t kept_looks_ = 0;  ///< since the last sample
  ProcessSample sample_;
};

/// Open files of a process; 0: not told.
[[nodiscard]] std::int64_t count_open_files(const std::string& folder);

}  // namespace stoker
