#include "observe/proc/process_watch.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "observe/proc/proc_text.h"
#include "system/system_files.h"

namespace stoker {
namespace {

/// A thread that did not run in so many samples is asked only in every tenth from then on.
constexpr int kIdleAfter = 20;
constexpr int kIdleEvery = 10;
/// A process whose main thread did not run in so many samples has its other threads asked as
/// seldom.
constexpr int kStillAfter = 2;
/// Samples between two listings of the threads where their number does not change.
constexpr int kListEvery = 50;
/// Times that a thread's name is read: PyTorch names its threads after they have started.
constexpr int kNameReadings = 3;
/// A message longer than this goes in two writes (multiprocessing/connection.py, _send_bytes).
constexpr std::int64_t kTwoWritesFrom = 16384;

ThreadTimes operator-(const ThreadTimes& a, const ThreadTimes& b) {
  return {a.cpu_ns - b.cpu_ns, a.queued_ns - b.queued_ns};
}
void add(ThreadTimes& sum, const ThreadTimes& times) {
  sum.cpu_ns += times.cpu_ns;
  sum.queued_ns += times.queued_ns;
}

}  // namespace

/// A thread of multiprocessing.Queue sleeps on a condition, writes to a pipe and reads nothing.
bool ProcessWatch::Thread::sends_messages(std::int64_t queues_since) const {
  return !pin && !library && !at_socket && written_calls > 0 && read_chars == 0 &&
         started >= queues_since;
}

std::int64_t ProcessWatch::Thread::messages() const {
  const bool two_writes =
      written_chars / std::max<std::int64_t>(1, written_calls) > kTwoWritesFrom / 2;
  return two_writes ? written_calls / 2 : written_calls;
}

ProcessWatch::ProcessWatch(std::string folder, std::int64_t pid, std::uint32_t serial)
    : folder_(std::move(folder)),
      pid_(pid),
      serial_(serial),
      io_(folder_ + "/io"),
      status_(folder_ + "/status"),
      whole_stat_(folder_ + "/stat"),
      leader_(open_thread(pid)) {
  sample_.serial = serial;
  const auto limits = system_files()(folder_ + "/limits");
  sample_.open_files_most = proc::parse_open_files_limit(limits.value_or(""));
}

ProcessWatch::Thread ProcessWatch::open_thread(std::int64_t tid) const {
  const std::string folder = folder_ + "/task/" + std::to_string(tid);
  Thread thread;
  thread.schedstat = KeptFile(folder + "/schedstat");
  thread.stat = KeptFile(folder + "/stat");
  thread.wchan = KeptFile(folder + "/wchan");
  thread.io = KeptFile(folder + "/io");
  return thread;
}

void ProcessWatch::name(std::int64_t tid, Thread& thread) const {
  if (thread.named >= kNameReadings) return;
  ++thread.named;
  KeptFile file(folder_ + "/task/" + std::to_string(tid) + "/comm");
  const std::string_view comm = trimmed(file.read());
  thread.pin = comm.starts_with("pt_data_pin");
  // Threads of PyTorch's and gloo's own say so; those of Python inherit the name of who starts
  // them, in a worker pt_data_worker.
  thread.library =
      (comm.starts_with("pt_") && !comm.starts_with("pt_data")) || comm.starts_with("gloo");
}

void ProcessWatch::list_threads() {
  std::set<std::int64_t> present;
  for (const std::string& entry : system_folders()(folder_ + "/task")) {
    const auto tid = whole_number(entry);
    if (!tid || *tid == pid_) continue;
    present.insert(*tid);
    auto found = others_.find(*tid);
    if (found == others_.end()) found = others_.emplace(*tid, open_thread(*tid)).first;
    name(*tid, found->second);
  }
  for (auto at = others_.begin(); at != others_.end();) {
    if (present.contains(at->first)) {
      ++at;
      continue;
    }
    add(ended_, at->second.times);
    if (at->second.sends_messages(queues_since_)) ended_messages_ += at->second.messages();
    at = others_.erase(at);
  }
  threads_seen_ = static_cast<std::int64_t>(others_.size()) + 1;
}

bool ProcessWatch::refresh(Thread& thread, char* state) {
  const std::string_view text = thread.schedstat.read();
  if (text.empty()) return thread.schedstat.state() == KeptFile::State::kFine;
  // A thread that is about to sleep may not show where yet.
  if (text == thread.last && thread.kind != WaitKind::kUnknown) return true;
  thread.last = text;
  if (const auto times = proc::parse_schedstat(text)) thread.times = *times;
  const auto stat = proc::parse_stat(thread.stat.read());
  if (!stat) return thread.stat.state() == KeptFile::State::kFine;
  if (state != nullptr) {
    *state = stat->state;
    sample_.threads = stat->threads;
  }
  thread.started = stat->start_ticks;
  const char found = stat->state;
  thread.kind = wait_kind(found, found == 'R' ? std::string_view() : thread.wchan.read());
  thread.at_socket =
      thread.at_socket || thread.kind == WaitKind::kSocket || thread.kind == WaitKind::kPoll;
  return true;
}

bool ProcessWatch::look(std::int64_t at_ns) {
  if (!see()) return false;
  if (kept_looks_ < kKeptLooks) {
    sample_.look_at_ns[kept_looks_] = at_ns;
    sample_.look_cpu_ns[kept_looks_] = leader_.times.cpu_ns;
    ++kept_looks_;
  }
  return true;
}

bool ProcessWatch::see() {
  if (gone_) return false;
  if (!refresh(leader_, &state_)) {
    gone_ = true;
    return false;
  }
  // A stopped or ended thread does not run, so its schedstat does not tell.
  sample_.looks.add(leader_.kind);
  for (auto& [tid, thread] : others_) {
    if (!thread.pin) continue;
    if (refresh(thread, nullptr)) sample_.pin_looks.add(thread.kind);
  }
  return true;
}

void ProcessWatch::sample_threads(std::int64_t interval_ns) {
  if (threads_seen_ != sample_.threads || samples_ % kListEvery == 0 || one_ended_) list_threads();
  one_ended_ = false;
  sample_.others = ended_;
  sample_.busy_threads = 0;
  sample_.queue_threads = 0;
  sample_.messages = ended_messages_;
  // The threads of a worker's queues run when its main thread hands them something.
  still_ = leader_.last == leader_before_ ? still_ + 1 : 0;
  leader_before_ = leader_.last;
  const bool all = samples_ % kIdleEvery == 0;
  for (auto& [tid, thread] : others_) {
    if (all || (still_ < kStillAfter && thread.idle < kIdleAfter)) {
      thread.before = thread.times;
      const bool there = refresh(thread, nullptr);
      // Where as many began as ended, their number does not tell.
      one_ended_ = one_ended_ || !there || thread.schedstat.state() == KeptFile::State::kGone;
      const ThreadTimes ran = thread.times - thread.before;
      const bool changed = ran.cpu_ns != 0 || ran.queued_ns != 0;
      thread.idle = changed ? 0 : thread.idle + 1;
      ran_ = ran_ || changed;
      if (ran.cpu_ns + ran.queued_ns > interval_ns / 2) ++sample_.busy_threads;
      if (there && changed && !thread.pin) {
        if (const auto io = proc::parse_io(thread.io.read())) {
          thread.written_calls = io->written_calls;
          thread.written_chars = io->written_chars;
          thread.read_chars = io->read_chars;
        }
      }
    }
    add(sample_.others, thread.times);
    if (thread.sends_messages(queues_since_)) {
      ++sample_.queue_threads;
      sample_.messages += thread.messages();
    }
  }
}

void ProcessWatch::read_io() {
  if (const auto io = proc::parse_io(io_.read())) {
    sample_.read_chars = io->read_chars;
    sample_.read_calls = io->read_calls;
    sample_.written_chars = io->written_chars;
    sample_.written_calls = io->written_calls;
    sample_.read_bytes = io->read_bytes;
    sample_.written_bytes = io->written_bytes;
  }
  if (const auto io = proc::parse_io(leader_.io.read()))
    sample_.leader_written_chars = io->written_chars;
  io_of_ = leader_.last;
}

void ProcessWatch::read_slow() {
  const proc::Memory memory = proc::parse_memory(status_.read());
  sample_.resident = memory.resident;
  sample_.anonymous = memory.anonymous;
  sample_.swapped = memory.swapped;
  sample_.open_files = count_open_files(folder_);
  if (const auto stat = proc::parse_stat(leader_.stat.read())) {
    state_ = stat->state;
    if (stopped()) leader_.kind = WaitKind::kStopped;
    sample_.threads = stat->threads;
  }
  if (const auto stat = proc::parse_stat(whole_stat_.read())) {
    sample_.major_faults = stat->major_faults;
    sample_.minor_faults = stat->minor_faults;
    state_ = stat->state;
  }
}

ProcessSample ProcessWatch::sample(std::int64_t interval_ns, Depth depth) {
  kept_looks_ = 0;
  sample_.alive = see() && !zombie();
  if (!sample_.alive) return sample_;
  if (depth == Depth::kSlow || samples_ == 0) read_slow();
  ran_ = leader_.last != io_of_;
  sample_threads(interval_ns);
  sample_.leader = leader_.times;
  // Who did not run has read and written nothing.
  if (ran_) read_io();
  ++samples_;
  sample_.alive = !zombie();
  return sample_;
}

std::int64_t count_open_files(const std::string& folder) {
  // Linux 6.2 and later tell the number as the folder's size.
  struct stat info {};
  const std::string path = folder + "/fd";
  if (::stat(path.c_str(), &info) != 0) return 0;
  if (info.st_size > 0) return info.st_size;
  return static_cast<std::int64_t>(system_folders()(path).size());
}

}  // namespace stoker
