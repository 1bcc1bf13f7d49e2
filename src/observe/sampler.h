#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/result.h"
#include "observe/gpu_watch.h"
#include "observe/proc/code_watch.h"
#include "observe/proc/host_watch.h"
#include "observe/proc/kept_file.h"
#include "observe/proc/open_data.h"
#include "observe/proc/process_tree.h"
#include "observe/proc/process_watch.h"
#include "observe/sample/sample.h"
#include "observe/told/told_watch.h"

namespace stoker {

struct SamplerOptions {
  double rate = 10;                        ///< samples a second
  int looks = 4;                           ///< at the main threads of training processes, a sample
  std::string proc = "/proc";              ///< tests give a made-up one
  bool started_here = false;               ///< the caller started the root process
  std::string nvml = "libnvidia-ml.so.1";  ///< NVIDIA's library; tests give a stand-in
};

/// Watches a process and what it starts. Needs no right beyond reading /proc, stops nothing, and
/// is to be used by one thread. Typical use:
///
///     Sampler sampler = TRY(Sampler::attach({4242}, {}));
///     while (auto sample = sampler.next()) use(*sample);
class Sampler {
 public:
  /// Refuses a process that is not there, is a thread, or has ended. Several roots are one job:
  /// the ranks that a launcher on another node started here.
  static Result<Sampler> attach(const std::vector<std::int64_t>& roots, SamplerOptions options);

  /// Sleeps until the next sample is due, and takes it; nullopt after the one that was taken when
  /// every root had ended or stop_when() said so. A sample that is late is not made up for.
  std::optional<Sample> next();

  /// Called between looks, some times a sample; true ends the watch.
  void stop_when(std::function<bool()> stop) { stop_ = std::move(stop); }

  [[nodiscard]] const WatchFacts& facts() const { return facts_; }
  /// All processes of the job so far, those that ended among them, by serial.
  [[nodiscard]] const std::vector<ProcessFacts>& processes() const { return processes_; }
  /// Facts of processes that are new or whose role changed since the last call.
  std::vector<ProcessFacts> take_changed();
  /// What this user may not see, in words; known after the first samples.
  [[nodiscard]] std::vector<std::string> hidden() const;
  /// Now, on the clock of samples.
  [[nodiscard]] std::int64_t now() const;

 private:
  explicit Sampler(SamplerOptions options);
  void find_processes();
  /// Whether any process or thread of this machine or container has begun since the last call: the
  /// list of all processes is long. True where the kernel does not tell.
  [[nodiscard]] bool others_began();
  void learn(const TreeEntry& entry);
  [[nodiscard]] bool is_young(const ProcessFacts& facts) const;
  void refresh_roles();
  /// Tells training processes since when threads of theirs may send batches' indices.
  void expect_queues();
  void look_at_training();
  /// Whose code the loops run that load without workers, which look the same otherwise.
  void watch_code();
  /// What the loop of a training process tells of its steps; asked for once a second.
  [[nodiscard]] Told told_by(const ProcessFacts& facts, bool slow);
  /// The limits of the training process are the job's: a shell before it may have others.
  void follow_training();
  [[nodiscard]] std::vector<GpuSample> sample_gpus(bool rare);
  [[nodiscard]] bool sleep_until(std::int64_t due);
  /// Looks at the loops on the way. False: the watch is to end.
  [[nodiscard]] bool wait_for_next();
  void sample_processes(bool slow, bool memory, Sample& sample);
  /// What of the open data lies in memory, of a few processes that load.
  void sample_open_data(Sample& sample);
  [[nodiscard]] ProcessFacts* facts_of(std::uint32_t serial);

  SamplerOptions options_;
  ProcessTree tree_;
  KeptFile load_;
  std::string last_begun_;  ///< number of the process or thread that began last
  std::unique_ptr<HostWatch> host_;
  std::unique_ptr<GpuWatch> gpus_;
  WatchFacts facts_;
  std::vector<ProcessFacts> processes_;
  std::vector<ProcessFacts> changed_;
  std::map<std::uint32_t, ProcessWatch> watches_;
  std::map<std::uint32_t, ToldWatch> told_watches_;
  std::map<std::uint32_t, Told> told_;
  std::map<std::uint32_t, OpenData> data_;
  std::map<std::uint32_t, CodeWatch> code_watches_;
  std::map<std::uint32_t, CodeCounts> code_;
  std::set<std::uint32_t> code_refused_;  ///< loops without workers that this user may not ask of
  std::set<std::uint32_t> loaders_;       ///< training processes that have, or had, workers
  std::map<std::int64_t, std::uint32_t> serial_of_;  ///< of living members, by process id
  std::function<bool()> stop_;
  std::int64_t began_ = 0;  ///< CLOCK_BOOTTIME, which process start times are told on
  std::int64_t due_ = 0, last_ = 0;
  std::int64_t samples_ = 0;
  Random moves_{1};                ///< of looks from even moments
  bool last_one_ = false;          ///< nothing comes after the last sample
  std::int64_t expect_until_ = 0;  ///< new processes are likely until then
};

}  // namespace stoker
