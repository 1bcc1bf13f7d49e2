#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "observe/sample/code_kind.h"
#include "observe/sample/wait_kind.h"

/// What the sampler sees of a job. Times are nanoseconds, sizes bytes; counters only grow, so that
/// what happened in between is the difference of two samples. Plain integers, because samples go to
/// disk as they are (docs/reference/recording.md).
namespace stoker {

/// What a process is within its job.
enum class ProcessRole : std::uint8_t {
  kTraining,  ///< runs the training loop; one a rank
  kWorker,    ///< a DataLoader's worker
  kLauncher,  ///< torchrun, a shell, a parent that waits for its ranks
  kHelper     ///< resource tracker, fork server, and whatever else the job started
};
[[nodiscard]] std::string_view name_of(ProcessRole role);

/// What does not change while a process lives. A process is known by `serial`: the kernel gives
/// process ids again.
struct ProcessFacts {
  std::uint32_t serial = 0;  ///< counts from 1 within a recording
  std::int64_t pid = 0;
  std::uint32_t parent = 0;  ///< serial; 0: outside of the job
  std::uint32_t owner = 0;   ///< of a worker: serial of the training process that it loads for
  ProcessRole role = ProcessRole::kHelper;
  std::int64_t rank = -1;       ///< -1: no launcher said one
  std::int64_t started_ns = 0;  ///< on the sampler's clock; may lie before its start
  bool python = false;
  std::string name;     ///< comm
  std::string command;  ///< command line, arguments separated by blanks, at most 512 bytes
};

struct ThreadTimes {
  std::int64_t cpu_ns = 0;     ///< on a core
  std::int64_t queued_ns = 0;  ///< ready, waiting for a core
};

/// How a loop tells of its steps itself.
enum class ToldKind : std::uint8_t {
  kNothing,
  kReports,     ///< stoker.report: steps and their time
  kObservation  ///< stoker.Observer, observe_step: what each step waited for as well
};

/// What a training loop has told of its steps while watched. Training steps are those that warmed
/// up; their time holds what lies between them.
struct Told {
  std::int64_t kind = 0;  ///< a ToldKind
  std::int64_t steps = 0, ns = 0, wait_ns = 0, samples = 0;
  std::int64_t validation_steps = 0, validation_ns = 0;
  bool operator==(const Told&) const = default;
};

/// Looks between two samples whose times are kept.
inline constexpr std::size_t kKeptLooks = 3;

struct ProcessSample {
  std::uint32_t serial = 0;
  bool alive = true;
  ThreadTimes leader;  ///< its main thread
  ThreadTimes others;  ///< all other threads, those that ended while watched among them
  Looks looks;         ///< of the main thread, since the watch began
  Looks pin_looks;     ///< of the pin thread, likewise; none: there is no such thread
  std::int64_t threads = 0;
  std::int64_t busy_threads = 0;  ///< besides the main one: on a core or ready for half of the time
  /// Messages to other processes, written by the threads of multiprocessing's queues. Of a training
  /// process these are batches asked for.
  std::int64_t messages = 0;
  std::int64_t queue_threads = 0;               ///< threads that sent them and live
  std::int64_t read_chars = 0, read_calls = 0;  ///< by read(2), page cache and pipes included
  std::int64_t written_chars = 0, written_calls = 0;
  std::int64_t leader_written_chars = 0;                  ///< by the main thread alone
  std::int64_t read_bytes = 0, written_bytes = 0;         ///< that reached storage
  std::int64_t resident = 0, anonymous = 0, swapped = 0;  ///< RssAnon counts copies on write
  std::int64_t major_faults = 0, minor_faults = 0;
  std::int64_t open_files = 0, open_files_most = 0;
  Told told;
  /// Sizes of the files of data that it has open to read, and what of them lies in the page cache
  /// (open_data.h): looked up now and then, for some processes.
  std::int64_t data_bytes = 0, data_cached = 0;
  /// When looks were taken since the sample before, and the main thread's time on a core by then;
  /// of training processes. Times before that sample are older looks'.
  std::array<std::int64_t, kKeptLooks> look_at_ns{}, look_cpu_ns{};
  /// Whose code the main thread was found to run, where it was asked (code_watch.h).
  CodeCounts code{};
};

/// The machine and the job's control groups.
struct HostSample {
  std::int64_t busy_ns = 0, stolen_ns = 0;  ///< all processors together
  std::int64_t throttled_ns = 0, throttled_periods = 0, periods = 0;
  std::int64_t cpu_pressure_ns = 0, memory_pressure_ns = 0, io_pressure_ns = 0;  ///< "some", total
  std::int64_t memory_available = 0, swap_in_pages = 0;
  std::int64_t group_memory = 0, group_memory_most = 0;  ///< 0: no limit
  std::int64_t shared_memory = 0, shared_memory_most = 0;
  std::int64_t disk_reads = 0, disk_read_bytes = 0, disk_read_ns = 0, disk_busy_ns = 0;
  /// Thousandths of a core that the job may use at this moment, and that its quota grants; 0: not
  /// told, and no quota.
  std::int64_t cores_milli = 0, quota_milli = 0;
};

/// One GPU; what the driver does not tell is -1.
struct GpuSample {
  std::int64_t index = 0;
  std::int64_t busy_percent = -1, memory_percent = -1;
  std::int64_t memory_used = -1, memory_total = -1;
  std::int64_t power_mw = -1, power_limit_mw = -1, clock_mhz = -1, clock_most_mhz = -1;
  std::int64_t temperature = -1;
  std::int64_t throttle_reasons = -1;              ///< nvmlClocksThrottleReasons, bits
  std::int64_t receive_kb_s = -1, send_kb_s = -1;  ///< PCIe
  std::int64_t job_processes = 0, foreign_processes = 0;
  std::int64_t foreign_memory = 0;
  std::int64_t sm_permille = -1, tensor_permille = -1, dram_permille = -1;  ///< GPM, Hopper on
};

struct Sample {
  std::int64_t at_ns = 0;  ///< since the watch began
  std::vector<ProcessSample> processes;
  bool has_host = false;
  HostSample host;
  std::vector<GpuSample> gpus;
};

/// What a recording says once.
struct WatchFacts {
  std::int64_t unix_ns = 0;     ///< when the watch began
  std::int64_t sample_ns = 0;   ///< between samples
  double cores = 0;             ///< that the job may use
  std::int64_t processors = 0;  ///< online
  double quota = 0;             ///< cores; 0: none
  std::int64_t memory = 0;      ///< of the machine
  std::string processor;        ///< its name
  std::string kernel;
  std::vector<std::string> gpus;    ///< names
  std::vector<std::string> hidden;  ///< what this user may not see, in words
  bool started_here = false;  ///< the watch started the command, and saw it from the beginning
};

}  // namespace stoker
