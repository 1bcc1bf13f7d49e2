#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "program/program.h"

namespace stoker {

/// What each role holds, by BufferRole.
using RoleBytes = std::array<Bytes, kBufferRoles>;

/// A few neighbouring instructions, shown by the one with most bytes allocated.
struct TimelinePoint {
  std::uint32_t instruction = 0;  ///< the one that `allocated` and `by_role` belong to
  Bytes allocated;
  Bytes reserved;  ///< the most among the instructions that the point stands for
  RoleBytes by_role{};
};

/// Where a phase of the iteration, or a pass, begins.
struct TimelineMark {
  std::string name;       ///< "forward", "optimizer step", "validation, batch 64"
  std::size_t first = 0;  ///< index into Timeline::points
};

/// Memory over one settled training iteration, followed by one repetition of each extra pass, in
/// order of execution; equal steps are not equal times.
struct Timeline {
  std::vector<TimelinePoint> points;
  std::vector<TimelineMark> marks;
};

/// Collects a timeline while a program runs. Keeps about `kMostPoints` points in all, however long
/// the program; no maximum is lost.
class TimelineRecorder {
 public:
  static constexpr std::size_t kMostPoints = 480;
  /// More micro-batches than this are shown as one phase.
  static constexpr std::int64_t kMostMicroBatches = 4;

  explicit TimelineRecorder(const Program& program);

  /// What follows are these instructions; a pass has a name, an iteration is divided into phases.
  void begin(const std::vector<Instruction>& instructions, const std::string& pass = {});
  /// The state after an instruction.
  void note(std::uint32_t instruction, Bytes allocated, Bytes reserved, const RoleBytes& by_role);
  [[nodiscard]] Timeline take() { return std::move(timeline_); }

 private:
  [[nodiscard]] bool one_phase() const { return program_.micro_batches > kMostMicroBatches; }
  [[nodiscard]] std::string phase_name(StepPhase phase) const;

  const Program& program_;
  std::uint32_t stride_ = 1;       ///< instructions a point
  std::uint32_t filled_ = 0;       ///< of the current point
  std::vector<StepPhase> phases_;  ///< of the instructions; empty in a pass
  bool fresh_ = true;
  Timeline timeline_;
};

}  // namespace stoker
