// The heap's oracle is the machine's own malloc: a child process runs the same requests for real,
// writes every byte, and reports its resident pages and page faults.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#ifdef __GLIBC__
#include <gnu/libc-version.h>
#include <malloc.h>
#endif

#include "memory/glibc/heap.h"

namespace stoker {
namespace {

/// A request (bytes > 0) for tensor `index`, or its free.
struct Request {
  std::size_t index;
  std::int64_t bytes;
};

/// Pages and faults after each request.
struct Reading {
  std::int64_t resident = 0, faults = 0;
};

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
constexpr bool kReplacesMalloc = false;
#else
constexpr bool kReplacesMalloc = true;
#endif

/// Whether this machine's malloc is of the versions that the model is of.
bool same_rules() {
#ifdef __GLIBC__
  int major = 0, minor = 0;
  if (kReplacesMalloc || std::sscanf(gnu_get_libc_version(), "%d.%d", &major, &minor) != 2)
    return false;
  return major == 2 && minor >= 26 && minor <= 37;
#else
  return false;
#endif
}

Reading read_process() {
  Reading now;
  char text[128] = {};
  // No stdio: its buffers would come from the heap under test.
  static const int file = open("/proc/self/statm", O_RDONLY);
  const ssize_t n = pread(file, text, sizeof text - 1, 0);
  long long size = 0, resident = 0, of_files = 0;
  if (n > 0 && std::sscanf(text, "%lld %lld %lld", &size, &resident, &of_files) == 3)
    now.resident = (resident - of_files) * sysconf(_SC_PAGESIZE);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  now.faults = usage.ru_minflt;
  return now;
}

/// What the tests before have freed is taken, so that the heap begins at its top, as the model's
/// does.
void fill_holes() {
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
  constexpr std::size_t kLargest = 1 << 16, kSmallest = 16;
  for (std::size_t size = kLargest; size >= kSmallest; size /= 2) {
    for (;;) {
      const std::size_t top = mallinfo2().keepcost;
      void* hole = std::malloc(size);
      static void* volatile kept;
      kept = hole;
      if (mallinfo2().keepcost == top) continue;
      std::free(kept);
      break;
    }
  }
#endif
}

/// As in a process that has run for a while, the thread's cache has its seven chunks of every size.
void fill_caches() {
  constexpr std::size_t kLargest = 1040, kStep = 16, kOfOneSize = 7;
  void* chunks[kOfOneSize];
  for (std::size_t size = kStep; size <= kLargest; size += kStep) {
    for (void*& chunk : chunks) chunk = std::malloc(size - 8);
    for (void* chunk : chunks) std::free(chunk);
  }
}

bool write_all(int to, const void* from, std::size_t bytes) {
  const char* next = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t n = write(to, next, bytes);
    if (n <= 0) return false;
    next += n;
    bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

bool read_all(int from, void* into, std::size_t bytes) {
  char* next = static_cast<char*>(into);
  while (bytes > 0) {
    const ssize_t n = read(from, next, bytes);
    if (n <= 0) return false;
    next += n;
    bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

/// Runs in the child and never returns. Readings go through the pipe, relative to the begin.
[[noreturn]] void run_child(const std::vector<Request>& requests, std::size_t tensors,
                            int pipe_end) {
  std::vector<void*> memory(tensors);
  std::vector<Reading> readings(requests.size());
  fill_holes();
  fill_caches();
#ifdef __GLIBC__
  malloc_trim(0);
#endif
  (void)read_process();  // its own pages
  const Reading before = read_process();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const Request& r = requests[i];
    if (r.bytes > 0) {
      if (posix_memalign(&memory[r.index], 64, static_cast<std::size_t>(r.bytes)) != 0) _exit(2);
      std::memset(memory[r.index], 1, static_cast<std::size_t>(r.bytes));
    } else {
      std::free(memory[r.index]);
    }
    const Reading now = read_process();
    readings[i] = {now.resident - before.resident, now.faults - before.faults};
  }
  _exit(write_all(pipe_end, readings.data(), readings.size() * sizeof(Reading)) ? 0 : 3);
}

/// Forks the children from a process that was begun before any test, so that no test has used its
/// heap.
class Forker {
 public:
  static Forker& instance() {
    static Forker forker;
    return forker;
  }
  std::vector<Reading> run(const std::vector<Request>& requests, std::size_t tensors) {
    const std::size_t sizes[2] = {requests.size(), tensors};
    std::vector<Reading> readings(requests.size());
    const bool done = write_all(to_[1], sizes, sizeof sizes) &&
                      write_all(to_[1], requests.data(), requests.size() * sizeof(Request)) &&
                      read_all(from_[0], readings.data(), readings.size() * sizeof(Reading));
    return done ? readings : std::vector<Reading>{};
  }
  Forker(const Forker&) = delete;
  Forker& operator=(const Forker&) = delete;

 private:
  Forker() {
    if (pipe(to_) != 0 || pipe(from_) != 0) return;
    process_ = fork();
    if (process_ == 0) serve();
    close(to_[0]);
    close(from_[1]);
  }
  ~Forker() {
    close(to_[1]);
    close(from_[0]);
    if (process_ > 0) waitpid(process_, nullptr, 0);
  }
  [[noreturn]] void serve() const {
    close(to_[1]);
    close(from_[0]);
    std::size_t sizes[2];
    while (read_all(to_[0], sizes, sizeof sizes)) {
      std::vector<Request> requests(sizes[0]);
      if (!read_all(to_[0], requests.data(), requests.size() * sizeof(Request))) break;
      const pid_t child = fork();
      if (child == 0) run_child(requests, sizes[1], from_[1]);
      int status = 0;
      waitpid(child, &status, 0);
      if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) break;
    }
    _exit(0);
  }

  int to_[2] = {-1, -1}, from_[2] = {-1, -1};
  pid_t process_ = -1;
};

/// Before main.
[[maybe_unused]] const Forker& begun = Forker::instance();

std::vector<Reading> measured(const std::vector<Request>& requests, std::size_t tensors) {
  return Forker::instance().run(requests, tensors);
}

std::vector<Reading> modelled(const std::vector<Request>& requests, std::size_t tensors) {
  Heap heap;
  std::vector<BlockId> blocks(tensors);
  std::vector<Reading> readings;
  for (const Request& r : requests) {
    if (r.bytes > 0) blocks[r.index] = heap.allocate(Bytes(r.bytes)).value();
    else heap.free(blocks[r.index]);
    readings.push_back({heap.stats().reserved.count(), heap.fresh().count() / 4096});
  }
  return readings;
}

/// Rounds of a training step: activations in order, freed backwards with temporaries between them,
/// gradients that live on until the next round.
std::vector<Request> training(std::uint32_t seed, std::int64_t largest, std::size_t& tensors) {
  std::mt19937 random(seed);
  const auto size = [&] {
    const double exponent = std::uniform_real_distribution<double>(0, 1)(random);
    return static_cast<std::int64_t>(4096 *
                                     std::pow(static_cast<double>(largest) / 4096, exponent));
  };
  constexpr std::size_t kLayers = 24;
  std::vector<std::int64_t> activations(kLayers), gradients(kLayers), temporaries(kLayers);
  for (std::size_t i = 0; i < kLayers; ++i) {
    activations[i] = size();
    gradients[i] = size() / 4;
    temporaries[i] = size();
  }
  tensors = 3 * kLayers;
  std::vector<Request> requests;
  constexpr int kRounds = 4;
  for (int round = 0; round < kRounds; ++round) {
    if (round > 0) {
      for (std::size_t i = 0; i < kLayers; ++i) requests.push_back({kLayers + i, 0});
    }
    for (std::size_t i = 0; i < kLayers; ++i) requests.push_back({i, activations[i]});
    for (std::size_t i = kLayers; i-- > 0;) {
      requests.push_back({2 * kLayers + i, temporaries[i]});
      requests.push_back({kLayers + i, gradients[i]});
      requests.push_back({i, 0});
      requests.push_back({2 * kLayers + i, 0});
    }
  }
  return requests;
}

std::vector<Request> disorder(std::uint32_t seed, std::int64_t largest, std::size_t& tensors) {
  std::mt19937 random(seed);
  std::vector<Request> requests;
  std::vector<std::size_t> living;
  tensors = 0;
  constexpr int kRequests = 600;
  for (int i = 0; i < kRequests; ++i) {
    if (living.size() < 4 || (living.size() < 40 && random() % 2 == 0)) {
      living.push_back(tensors);
      requests.push_back({tensors++, 1 + static_cast<std::int64_t>(random()) % largest});
    } else {
      std::swap(living[random() % living.size()], living.back());
      requests.push_back({living.back(), 0});
      living.pop_back();
    }
  }
  return requests;
}

class AgainstGlibc : public testing::TestWithParam<std::uint32_t> {
 protected:
  void SetUp() override {
    if (!same_rules())
      GTEST_SKIP() << "another malloc than glibc 2.26 to 2.37: nothing to compare with";
  }
  /// All along, and the faults of everything together.
  static void compare(const std::vector<Request>& requests, std::size_t tensors) {
    const std::vector<Reading> truth = measured(requests, tensors);
    ASSERT_EQ(truth.size(), requests.size());
    const std::vector<Reading> model = modelled(requests, tensors);
    std::int64_t peak = 0, worst = 0, model_peak = 0;
    for (std::size_t i = 0; i < truth.size(); ++i) {
      peak = std::max(peak, truth[i].resident);
      model_peak = std::max(model_peak, model[i].resident);
      worst = std::max(worst, std::abs(truth[i].resident - model[i].resident));
    }
    // A process has a heap before its first tensor: some pages, and holes for the smallest tensors.
    constexpr double kShare = 0.02;
    constexpr std::int64_t kBefore = 1 << 20;
    EXPECT_LT(std::abs(peak - model_peak), kShare * static_cast<double>(peak) + kBefore)
        << "resident peak " << peak << ", modelled " << model_peak;
    EXPECT_LT(worst, 0.05 * static_cast<double>(peak) + kBefore) << "at the worst moment";
    const auto faults = static_cast<double>(truth.back().faults);
    EXPECT_NEAR(static_cast<double>(model.back().faults), faults, 0.05 * faults + 256);
  }
};

TEST_P(AgainstGlibc, TrainingWithSmallTensors) {
  std::size_t tensors = 0;
  const auto requests = training(GetParam(), 100 << 10, tensors);
  compare(requests, tensors);
}

TEST_P(AgainstGlibc, TrainingWithLargeTensors) {
  std::size_t tensors = 0;
  const auto requests = training(GetParam(), 12 << 20, tensors);
  compare(requests, tensors);
}

TEST_P(AgainstGlibc, TrainingBeyondTheLargestThreshold) {
  std::size_t tensors = 0;
  const auto requests = training(GetParam(), 48 << 20, tensors);
  compare(requests, tensors);
}

TEST_P(AgainstGlibc, AnyOrder) {
  std::size_t tensors = 0;
  const auto requests = disorder(GetParam(), 2 << 20, tensors);
  compare(requests, tensors);
}

INSTANTIATE_TEST_SUITE_P(Seeds, AgainstGlibc, testing::Values(1U, 2U, 3U, 4U, 5U));

}  // namespace
}  // namespace stoker
