#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

namespace stoker {

/// A second, naive simulation of the same rules for tests: time advances in small equal ticks,
/// every process is asked at every tick what it does. One rank, every batch the same cost, a loop
/// that waits for each step, no pin thread. Shares no code with the event simulation.
struct Twin {
  int workers = 1, prefetch = 2;
  std::int64_t batches = 1;
  double cores = 1;
  double worker_cpu = 0;   ///< seconds a batch
  double receive_cpu = 0;  ///< seconds a batch, main
  double load_cpu = 0;     ///< seconds a batch, main, without workers
  double step = 0;
  double fork = 0, startup = 0;
  double tick = 1e-4;

  /// When each batch reached the loop.
  [[nodiscard]] std::vector<double> play() const {
    struct Process {
      double left = 0;                // CPU still to do
      std::deque<std::int64_t> todo;  // batches asked of it
      std::int64_t doing = -1;        // -2: starting up
    };
    std::vector<Process> crew(workers);
    std::deque<std::int64_t> pipe;
    std::vector<bool> arrived(batches, false);
    std::vector<double> out;
    std::int64_t asked = 0;
    int forked = 0;
    enum { kForking, kWanting, kReceiving, kStepping } main = workers > 0 ? kForking : kWanting;
    double main_left = workers > 0 ? fork : 0, step_left = 0;
    std::int64_t receiving = -1;
    const auto ask = [&] {
      if (asked < batches) {
        crew[asked % workers].todo.push_back(asked);
        ++asked;
      }
    };
    for (double now = 0; static_cast<std::int64_t>(out.size()) < batches && now < 1e4;
         now += tick) {
      // Zero-time changes first, until nothing changes.
      for (bool changed = true; changed;) {
        changed = false;
        for (Process& p : crew) {
          if (p.doing == -1 && !p.todo.empty() && main != kForking) {
            p.doing = p.todo.front();
            p.todo.pop_front();
            p.left = worker_cpu;
            changed = true;
          }
        }
        if (main == kForking && main_left <= 0) {
          crew[forked].doing = -2;
          crew[forked].left = startup;
          main_left = fork;
          if (++forked == workers) {
            for (int i = 0; i < workers * prefetch; ++i) ask();
            main = kWanting;
          }
          changed = true;
        }
        if (main == kStepping && step_left <= 0) main = kWanting, changed = true;
        const auto next = static_cast<std::int64_t>(out.size());
        if (main == kReceiving && main_left <= 0) {
          arrived[receiving] = true;
          main = kWanting;
          changed = true;
        }
        if (main == kWanting && next < batches) {
          if (arrived[next]) {
            out.push_back(now);
            if (workers > 0) ask();
            main = kStepping;
            step_left = step;
            changed = true;
          } else if (workers == 0) {
            receiving = next, main = kReceiving, main_left = load_cpu, changed = true;
          } else if (!pipe.empty()) {
            receiving = pipe.front();
            pipe.pop_front();
            main = kReceiving, main_left = receive_cpu, changed = true;
          }
        }
      }
      // Then a tick of work, the cores divided evenly.
      int runnable = main == kForking || main == kReceiving ? 1 : 0;
      for (const Process& p : crew) runnable += p.left > 0 ? 1 : 0;
      const double share = runnable == 0 ? 0 : std::min(1.0, cores / runnable) * tick;
      if (main == kForking || main == kReceiving) main_left -= share;
      step_left -= tick;
      for (Process& p : crew) {
        if (p.left <= 0) continue;
        p.left -= share;
        if (p.left > 0) continue;
        if (p.doing >= 0) pipe.push_back(p.doing);
        p.doing = -1;
      }
    }
    return out;
  }
};

}  // namespace stoker
