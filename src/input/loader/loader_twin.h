#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

namespace stoker {

/// A naive reference implementation of the rules for tests: time advances in small equal ticks,
/// every process is asked at every tick what it does. One rank, a loop that waits for each step, no
/// pin thread. Shares no code with the event simulation.
struct Twin {
  int workers = 1, prefetch = 2;
  std::int64_t batches = 1;
  bool in_order = true;
  double cores = 1;
  std::vector<double> batch_cpu;   ///< seconds of batch k in the order of asking, then again from 0
  std::vector<double> batch_wait;  ///< likewise, without a core, before the CPU
  double receive_cpu = 0;          ///< seconds a batch, main
  double step = 0;
  double fork = 0, startup = 0, warm_up = 0;
  double burst = 0;  ///< receiving that takes no longer is served before the workers
  double tick = 1e-4;

  /// The time at which each batch reached the loop.
  [[nodiscard]] std::vector<double> play() const {
    struct Process {
      double waiting = 0, left = 0;   // time without a core, then CPU, still to go
      std::deque<std::int64_t> todo;  // batches asked of it
      std::int64_t doing = -1;        // -2: starting up
      bool started = false, fresh = true;
      int held = 0;  // asked of it, not yielded
    };
    std::vector<Process> crew(workers);
    std::deque<std::int64_t> pipe;
    std::vector<bool> arrived(batches, false);
    std::vector<int> maker(batches, 0);
    std::vector<double> out;
    std::int64_t asked = 0, expected = 0;
    int forked = 0, turn = 0;
    enum {
      kForking,
      kWanting,
      kWaiting,
      kReceiving,
      kStepping
    } main = workers > 0 ? kForking : kWanting;
    double main_wait = 0, main_left = workers > 0 ? fork : 0, step_left = 0;
    std::int64_t receiving = -1;
    const auto cpu_of = [&](std::int64_t k) {
      return batch_cpu[static_cast<std::size_t>(k) % batch_cpu.size()];
    };
    const auto wait_of = [&](std::int64_t k) {
      return batch_wait.empty() ? 0 : batch_wait[static_cast<std::size_t>(k) % batch_wait.size()];
    };
    const auto ask = [&] {
      if (asked >= batches) return;
      while (!in_order && crew[turn].held >= prefetch) turn = (turn + 1) % workers;
      maker[asked] = turn;
      crew[turn].todo.push_back(asked++);
      ++crew[turn].held;
      turn = (turn + 1) % workers;
    };
    double now = 0;
    const auto yield = [&](std::int64_t k) {
      out.push_back(now);
      if (workers > 0) {
        --crew[maker[k]].held;
        ask();
      }
      main = kStepping;
      step_left = step;
    };
    for (; static_cast<std::int64_t>(out.size()) < batches && now < 1e4; now += tick) {
      // Zero-time changes first, until nothing changes.
      for (bool changed = true; changed;) {
        changed = false;
        for (Process& p : crew) {
          if (!p.started || p.doing != -1 || p.todo.empty()) continue;
          p.doing = p.todo.front();
          p.todo.pop_front();
          p.waiting = wait_of(p.doing);
          p.left = cpu_of(p.doing) + (p.fresh ? warm_up : 0);
          p.fresh = false;
          changed = true;
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
        if (main == kReceiving && main_left <= 0) {
          changed = true;
          if (!in_order) {
            yield(receiving);
          } else {
            arrived[receiving] = true;
            main = kWanting;
          }
        }
        if (main == kWanting && expected < batches && in_order && arrived[expected]) {
          yield(expected++);
          changed = true;
        } else if (main == kWanting && workers == 0) {
          receiving = static_cast<std::int64_t>(out.size());
          arrived[receiving] = true;  // when the work is done, which main does itself
          main = kWaiting;
          main_wait = wait_of(receiving);
          changed = true;
        } else if (main == kWanting && !pipe.empty()) {
          receiving = pipe.front();
          pipe.pop_front();
          main = kReceiving;
          main_left = receive_cpu;
          changed = true;
        }
        if (main == kWaiting && main_wait <= 0) {
          main = kReceiving;
          main_left = cpu_of(receiving) + (receiving == 0 ? warm_up : 0);
          changed = true;
        }
      }
      // Then a tick of work, the cores divided evenly but for short receiving.
      const bool main_works = main == kForking || main == kReceiving;
      const bool first = main == kReceiving && workers > 0 && receive_cpu <= burst;
      int even = main_works && !first ? 1 : 0;
      for (const Process& p : crew) even += p.waiting <= 0 && p.left > 0 ? 1 : 0;
      const double rest = std::max(0.0, cores - (first ? 1 : 0));
      const double share = even == 0 ? 0 : std::min(1.0, rest / even) * tick;
      if (main_works) main_left -= first ? std::min(1.0, cores) * tick : share;
      step_left -= tick;
      main_wait -= tick;
      for (Process& p : crew) {
        if (p.waiting > 0) {
          p.waiting -= tick;
          continue;
        }
        if (p.left <= 0) continue;
        p.left -= share;
        if (p.left > 0) continue;
        if (p.doing >= 0) pipe.push_back(p.doing);
        p.started = true;
        p.doing = -1;
      }
    }
    return out;
  }
};

}  // namespace stoker
