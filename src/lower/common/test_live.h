#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "program/program.h"

namespace stoker::testing_support {

/// Executes a Program's allocations without an allocator and fails the test on a free of what is
/// not alive and on an allocation that nobody can free any more. Knows what is live, by role.
class Live {
 public:
  explicit Live(const Program& program) : program_(program), born_(program.buffers.size()) {
    run(program.setup, true, false);
  }

  void iterate() {
    run(program_.iteration, iterations_ == 0, last_was_iteration_, program_.repeated);
    ++iterations_;
    last_was_iteration_ = true;
  }
  /// All repetitions of a pass, and its end. Peaks are those of the pass.
  void pass(const ExtraPass& pass) {
    peak_ = total_;
    for (int i = 0; i < pass.repeats; ++i) run(pass.instructions, i == 0, i > 0, pass.repeated);
    run(pass.end, true, true);
    last_was_iteration_ = false;
  }
  void reset_peak() { peak_ = total_; }

  [[nodiscard]] Bytes live(BufferRole role) const { return by_role_[static_cast<int>(role)]; }
  /// Bytes of a role at the moment of the peak.
  [[nodiscard]] Bytes peak(BufferRole role) const {
    return by_role_at_peak_[static_cast<int>(role)];
  }
  [[nodiscard]] Bytes total() const { return total_; }
  [[nodiscard]] Bytes peak() const { return peak_; }
  [[nodiscard]] Bytes live_on(Stream stream) const {
    Bytes sum;
    for (std::size_t i = 0; i < born_.size(); ++i) {
      if (program_.buffers[i].stream == stream)
        sum += program_.buffers[i].bytes * static_cast<std::int64_t>(born_[i].size());
    }
    return sum;
  }

 private:
  using Roles = std::array<Bytes, kBufferRoles>;

  void run(const std::vector<Instruction>& instructions, bool first, bool succeeds,
           const Repeated& repeated = {}) {
    ++round_;
    std::int64_t again = repeated.times - 1;
    for (std::size_t at = 0; at < instructions.size(); ++at) {
      if (at == repeated.to && again > 0) at = repeated.from, --again;
      const Instruction& i = instructions[at];
      if ((i.when == When::kFirst && !first) || (i.when == When::kLater && first)) continue;
      if (i.kind == InstructionKind::kAllocate) allocate(i.value);
      if (i.kind == InstructionKind::kFree) free_newest(i.value);
      if (i.kind == InstructionKind::kFreePrevious) free_previous(i.value, succeeds);
    }
  }
  void allocate(std::uint32_t id) {
    born_.at(id).push_back(round_);
    EXPECT_LE(born_[id].size(), 2U) << "buffer " << id << " is allocated over and over";
    count(id, 1);
    if (total_ > peak_) {
      peak_ = total_;
      by_role_at_peak_ = by_role_;
    }
  }
  void free_newest(std::uint32_t id) {
    ASSERT_FALSE(born_.at(id).empty()) << "freed though not alive: buffer " << id;
    born_[id].pop_back();
    count(id, -1);
  }
  void free_previous(std::uint32_t id, bool succeeds) {
    std::vector<int>& born = born_.at(id);
    if (born.empty() || born.front() == round_) {
      EXPECT_FALSE(succeeds) << "nothing of the round before to free: buffer " << id;
      return;
    }
    born.erase(born.begin());
    count(id, -1);
  }
  void count(std::uint32_t id, int sign) {
    const Buffer& b = program_.buffers[id];
    total_ += b.bytes * sign;
    by_role_[static_cast<std::size_t>(b.role)] += b.bytes * sign;
  }

  const Program& program_;
  std::vector<std::vector<int>>
      born_;  ///< by buffer: rounds in which living blocks of it were born
  Roles by_role_{}, by_role_at_peak_{};
  Bytes total_, peak_;
  int round_ = 0, iterations_ = 0;
  bool last_was_iteration_ = false;
};

}  // namespace stoker::testing_support
