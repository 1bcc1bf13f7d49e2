#include "observe/sampler.h"

#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "observe/proc/kept_file.h"
#include "observe/proc/proc_text.h"
#include "observe/proc/roles.h"
#include "system/machine_facts.h"

namespace stoker {
namespace {

constexpr std::int64_t kNanosASecond = 1'000'000'000;
/// Seconds between two readings of what changes slowly: the machine, memory, open files.
constexpr std::int64_t kSlowEvery = kNanosASecond;
/// GPUs are read this often, and what takes the driver long this often.
constexpr std::int64_t kGpuEvery = kNanosASecond / 4;
constexpr std::int64_t kRareEvery = 5 * kNanosASecond;
/// New processes are looked for this often.
constexpr std::int64_t kScanEvery = kNanosASecond / 2;
/// ... and this often where none has begun: the kernel tells of its own container's only.
constexpr std::int64_t kScanAnyway = 3 * kNanosASecond;
/// ... and with each sample so long after one ended.
constexpr std::int64_t kExpect = 2 * kNanosASecond;
/// A process's name and command line are looked at again while it is this young: a fork gets its
/// name, or becomes another program, shortly after it began.
constexpr std::int64_t kYoung = 3 * kNanosASecond;
/// ... and for longer where its name decides what it is and has not come.
constexpr std::int64_t kUnnamed = 60 * kNanosASecond;
/// Which files are open, and what of them lies in memory, takes many calls and changes slowly: it
/// is looked at this often, and more often in the beginning.
constexpr std::int64_t kDataEvery = 20 * kNanosASecond;
/// Time between two readings of the processes' memory.
constexpr std::int64_t kMemoryEvery = 2 * kNanosASecond;

std::int64_t clock_now() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec * kNanosASecond + now.tv_nsec;
}

std::int64_t monotonic_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kNanosASecond + now.tv_nsec;
}

std::int64_t unix_now() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * kNanosASecond + now.tv_nsec;
}

bool is_python(const std::string& folder, std::string_view name, std::string_view command) {
  char target[512];
  const ssize_t size = ::readlink((folder + "/exe").c_str(), target, sizeof target);
  const std::string_view exe(target, size > 0 ? static_cast<std::size_t>(size) : 0);
  const auto last = [](std::string_view path) { return path.substr(path.rfind('/') + 1); };
  return last(exe).starts_with("python") || name.starts_with("python") || name.starts_with("pt_") ||
         last(command.substr(0, command.find(' '))).starts_with("python");
}

}  // namespace

Sampler::Sampler(SamplerOptions options)
    : options_(std::move(options)), tree_(options_.proc), load_(options_.proc + "/loadavg") {
  began_ = clock_now();
  facts_.unix_ns = unix_now();
  facts_.sample_ns = static_cast<std::int64_t>(kNanosASecond / options_.rate);
  facts_.started_here = options_.started_here;
  const MachineFacts machine = this_machine_facts();
  facts_.processors = machine.processor.logical_cores;
  facts_.processor = machine.processor.name;
  facts_.memory = machine.memory.usable().count();
  facts_.kernel = machine.kernel;
  gpus_ = std::make_unique<GpuWatch>(Nvml::open(nullptr, options_.nvml));
  facts_.gpus = gpus_->names();
}

Result<Sampler> Sampler::attach(const std::vector<std::int64_t>& roots, SamplerOptions options) {
  raise_open_file_limit();
  Sampler sampler(std::move(options));
  for (const std::int64_t pid : roots) {
    TRY(check_watchable(sampler.options_.proc, pid));
    sampler.tree_.add_root(pid);
  }
  const std::int64_t first = roots.front();
  sampler.host_ = std::make_unique<HostWatch>(system_files(), sampler.options_.proc, first);
  const HostSample host = sampler.host_->sample();
  constexpr double kThousandths = 1000;
  sampler.facts_.quota = static_cast<double>(host.quota_milli) / kThousandths;
  sampler.facts_.cores = static_cast<double>(host.cores_milli) / kThousandths;
  sampler.find_processes();
  return sampler;
}

std::int64_t Sampler::now() const { return clock_now() - began_; }

ProcessFacts* Sampler::facts_of(std::uint32_t serial) {
  return serial == 0 || serial > processes_.size() ? nullptr : &processes_[serial - 1];
}

void Sampler::learn(const TreeEntry& entry) {
  const std::string folder = options_.proc + "/" + std::to_string(entry.pid);
  const SystemFiles files = system_files();
  ProcessFacts facts;
  facts.serial = static_cast<std::uint32_t>(processes_.size() + 1);
  facts.pid = entry.pid;
  const auto parent = serial_of_.find(entry.parent);
  facts.parent = parent == serial_of_.end() ? 0 : parent->second;
  const double ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  facts.started_ns =
      static_cast<std::int64_t>(static_cast<double>(entry.start_ticks) / ticks * kNanosASecond) -
      began_;
  facts.rank =
      proc::number_in_environment(files(folder + "/environ").value_or(""), "RANK").value_or(-1);
  processes_.push_back(std::move(facts));
  const std::uint32_t serial = processes_.back().serial;
  serial_of_[entry.pid] = serial;
  watches_.emplace(serial, ProcessWatch(folder, entry.pid, serial));
}

bool Sampler::is_young(const ProcessFacts& facts) const {
  const std::int64_t age = now() - facts.started_ns;
  const bool unnamed = facts.role == ProcessRole::kHelper && facts.python;
  return facts.name.empty() || age < kYoung || (unnamed && age < kUnnamed);
}

void Sampler::refresh_roles() {
  std::vector<ProcessFacts> alive;
  for (const auto& [serial, watch] : watches_) {
    ProcessFacts facts = *facts_of(serial);
    if (is_young(facts)) {
      const std::string folder = options_.proc + "/" + std::to_string(facts.pid);
      const SystemFiles files = system_files();
      std::string name = proc::command_of(trimmed(files(folder + "/comm").value_or("")));
      std::string command = proc::command_of(files(folder + "/cmdline").value_or(""));
      // A process that ends loses its command line first, and is what it was until it is gone.
      const bool ends = command.empty() && !facts.command.empty();
      if (!ends) {
        facts.name = std::move(name);
        facts.command = std::move(command);
        facts.python = is_python(folder, facts.name, facts.command);
      }
    }
    alive.push_back(std::move(facts));
  }
  assign_roles(alive, now());
  for (ProcessFacts& facts : alive) {
    ProcessFacts& known = *facts_of(facts.serial);
    const bool same = known.name == facts.name && known.role == facts.role &&
                      known.owner == facts.owner && known.command == facts.command;
    if (same) continue;
    known = facts;
    changed_.push_back(std::move(facts));
  }
  expect_queues();
}

void Sampler::expect_queues() {
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  std::map<std::uint32_t, std::int64_t> since;  // by the training process
  for (const auto& [serial, watch] : watches_) {
    const ProcessFacts& facts = *facts_of(serial);
    if (facts.role != ProcessRole::kWorker) continue;
    const double started = static_cast<double>(facts.started_ns + began_) / kNanosASecond * ticks;
    const auto at = static_cast<std::int64_t>(started) - 1;  // of rounding
    const auto found = since.try_emplace(facts.owner, at).first;
    found->second = std::min(found->second, at);
  }
  for (const auto& [serial, at] : since) {
    if (const auto found = watches_.find(serial); found != watches_.end())
      found->second.expect_queues_since(at);
  }
}

bool Sampler::others_began() {
  const std::string_view text = trimmed(load_.read());
  const std::string_view last = text.substr(std::min(text.size(), text.rfind(' ') + 1));
  if (!last.empty() && last == last_begun_) return false;
  last_begun_ = last;
  return true;
}

void Sampler::find_processes() {
  bool changed = false;
  for (const TreeEntry& entry : tree_.scan()) learn(entry), changed = true;
  const bool young = std::ranges::any_of(
      watches_, [&](const auto& entry) { return is_young(*facts_of(entry.first)); });
  if (changed || young) refresh_roles();
}

void Sampler::look_at_training() {
  for (auto& [serial, watch] : watches_) {
    if (facts_of(serial)->role == ProcessRole::kTraining) watch.look(now());
  }
}

void Sampler::watch_code() {
  // A made-up /proc has the numbers of other processes.
  if (options_.proc != "/proc") return;
  for (const auto& [serial, watch] : watches_) {
    const ProcessFacts& facts = *facts_of(serial);
    if (facts.role == ProcessRole::kWorker) loaders_.insert(facts.owner);
  }
  for (const auto& [serial, watch] : watches_) {
    const ProcessFacts& facts = *facts_of(serial);
    if (facts.role != ProcessRole::kTraining || loaders_.contains(serial)) {
      code_watches_.erase(serial);
      code_refused_.erase(serial);
    } else if (!code_watches_.contains(serial) && !code_refused_.contains(serial)) {
      auto opened = CodeWatch::open(facts.pid, "/proc/" + std::to_string(facts.pid));
      if (opened) code_watches_.emplace(serial, std::move(*opened));
      else if (opened.error().code == ErrorCode::kIo) code_refused_.insert(serial);
    }
  }
}

Told Sampler::told_by(const ProcessFacts& facts, bool slow) {
  if (facts.role != ProcessRole::kTraining) return {};
  Told& last = told_[facts.serial];
  if (!slow) return last;
  auto found = told_watches_.find(facts.serial);
  if (found == told_watches_.end()) {
    ToldWatch watch(options_.proc + "/" + std::to_string(facts.pid), monotonic_now() - now());
    found = told_watches_.emplace(facts.serial, std::move(watch)).first;
  }
  last = found->second.poll();
  return last;
}

void Sampler::follow_training() {
  for (const auto& [serial, watch] : watches_) {
    if (facts_of(serial)->role != ProcessRole::kTraining) continue;
    host_->follow(watch.pid());
    return;
  }
}

std::vector<GpuSample> Sampler::sample_gpus(bool rare) {
  std::set<std::int64_t> pids;
  for (const auto& [pid, serial] : serial_of_) pids.insert(pid);
  return gpus_->sample(pids, rare ? Nvml::Depth::kRare : Nvml::Depth::kUsual);
}

bool Sampler::sleep_until(std::int64_t due) {
  if (stop_ && stop_()) return false;
  const std::int64_t at = due + began_;
  const timespec until{at / kNanosASecond, at % kNanosASecond};
  while (::clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &until, nullptr) == EINTR) {
    if (stop_ && stop_()) return false;
  }
  return true;
}

bool Sampler::wait_for_next() {
  const std::int64_t step = facts_.sample_ns;
  for (int i = 1; i < options_.looks; ++i) {
    // Looks at even moments would meet a loop whose steps are about as long always at the same
    // place, and see a slow rhythm in a fast one.
    constexpr double kMostMoved = 0.4;  // of the distance
    const double at = (i + moves_.uniform(-kMostMoved, kMostMoved)) / options_.looks;
    if (!sleep_until(due_ - step + static_cast<std::int64_t>(at * static_cast<double>(step))))
      return false;
    look_at_training();
  }
  return sleep_until(due_);
}

void Sampler::sample_processes(bool slow, bool memory, Sample& sample) {
  for (auto entry = watches_.begin(); entry != watches_.end();) {
    ProcessWatch& watch = entry->second;
    sample.processes.push_back(watch.sample(
        sample.at_ns - last_, memory ? ProcessWatch::Depth::kSlow : ProcessWatch::Depth::kUsual));
    const bool alive = sample.processes.back().alive;
    if (const auto code = code_watches_.find(watch.serial()); code != code_watches_.end())
      code->second.read(sample.at_ns, code_[watch.serial()]);
    if (const auto code = code_.find(watch.serial()); code != code_.end())
      sample.processes.back().code = code->second;
    // A loop tells of its last steps when it ends.
    sample.processes.back().told = told_by(*facts_of(watch.serial()), slow || !alive);
    if (alive) {
      ++entry;
      continue;
    }
    tree_.remove(watch.pid());
    expect_until_ = sample.at_ns + kExpect;
    // A long run starts thousands of workers: what they were called is known.
    facts_of(watch.serial())->command.clear();
    serial_of_.erase(watch.pid());
    told_watches_.erase(watch.serial());
    told_.erase(watch.serial());
    code_watches_.erase(watch.serial());
    code_.erase(watch.serial());
    entry = watches_.erase(entry);
  }
}

void Sampler::sample_open_data(Sample& sample) {
  // A training process and a worker as a rule: workers hold the same files.
  constexpr std::size_t kMostProcesses = 2;
  constexpr int kMostFiles = 64;
  const std::int64_t every = sample.at_ns < kDataEvery ? kRareEvery : kDataEvery;
  const bool rare = samples_ == 0 || sample.at_ns / every != last_ / every;
  if (rare) data_.clear();
  for (ProcessSample& p : sample.processes) {
    const ProcessFacts& facts = *facts_of(p.serial);
    const bool loads = facts.role == ProcessRole::kWorker || facts.role == ProcessRole::kTraining;
    if (rare && p.alive && loads && data_.size() < kMostProcesses)
      data_[p.serial] = open_data(options_.proc + "/" + std::to_string(facts.pid), kMostFiles);
    const auto found = data_.find(p.serial);
    if (found == data_.end()) continue;
    p.data_bytes = found->second.bytes;
    p.data_cached = found->second.cached;
  }
}

std::optional<Sample> Sampler::next() {
  if (last_one_) return std::nullopt;
  if (samples_ > 0) last_one_ = !wait_for_next();
  const std::int64_t at = now();
  // Where this process was kept from its core, the samples that were missed are not made up for.
  due_ = std::max(due_ + facts_.sample_ns, at + facts_.sample_ns / 2);
  const auto passed = [&](std::int64_t every) {
    return samples_ == 0 || last_one_ || at / every != last_ / every;
  };
  const bool slow = passed(kSlowEvery);
  // Where workers ended, others are about to begin.
  const bool young = std::ranges::any_of(
      watches_, [&](const auto& entry) { return is_young(*facts_of(entry.first)); });
  const bool due = passed(kScanEvery) && (young || others_began());
  if (due || passed(kScanAnyway) || at < expect_until_) find_processes();
  Sample sample;
  sample.at_ns = at;
  sample.has_host = slow;
  if (slow) {
    follow_training();
    watch_code();
    sample.host = host_->sample();
  }
  // The driver's own figures are means of a sixth of a second or more.
  if (passed(kGpuEvery)) sample.gpus = sample_gpus(passed(kRareEvery));
  sample_processes(slow, passed(kMemoryEvery), sample);
  sample_open_data(sample);
  last_ = at;
  ++samples_;
  const bool any = std::ranges::any_of(watches_, [&](const auto& entry_of) {
    const ProcessFacts& facts = *facts_of(entry_of.first);
    // A root may be a shell whose real work has not begun; what it leaves behind may be helpers.
    return facts.role != ProcessRole::kHelper || facts.parent == 0;
  });
  last_one_ = last_one_ || (!any && samples_ > 1);
  return sample;
}

std::vector<ProcessFacts> Sampler::take_changed() { return std::exchange(changed_, {}); }

std::vector<std::string> Sampler::hidden() const {
  bool io = false, waits = false;
  for (const auto& [serial, watch] : watches_) {
    io = io || watch.io_hidden();
    waits = waits || watch.waits_hidden();
  }
  std::vector<std::string> words;
  if (io)
    words.emplace_back(
        "what the job reads and writes, and its batches (/proc/PID/io: watch as the "
        "job's owner or as root)");
  if (waits)
    words.emplace_back(
        "where its threads sleep (/proc/PID/wchan: watch as the job's owner or as "
        "root)");
  if (!code_refused_.empty())
    words.emplace_back(
        "whose code a loop without workers runs, that is how much of its time it loads "
        "(perf_event_open: a user may ask where kernel.perf_event_paranoid is 2 or less and the "
        "container allows the call)");
  return words;
}

}  // namespace stoker
