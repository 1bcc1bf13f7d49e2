#include "memory/replay/timeline.h"

#include <algorithm>

#include "memory/replay/moment.h"

namespace stoker {

TimelineRecorder::TimelineRecorder(const Program& program) : program_(program) {
  std::size_t instructions = program.iteration.size();
  for (const ExtraPass& pass : program.passes) instructions += pass.instructions.size();
  stride_ = static_cast<std::uint32_t>(
      std::max<std::size_t>(1, (instructions + kMostPoints - 1) / kMostPoints));
}

std::string TimelineRecorder::phase_name(StepPhase phase) const {
  if (one_phase() && phase != StepPhase::kOptimizer)
    return std::to_string(program_.micro_batches) + " micro-batches";
  return std::string(words_of(phase));
}

void TimelineRecorder::begin(const std::vector<Instruction>& instructions,
                             const std::string& pass) {
  phases_ = pass.empty() ? phases_of(program_, instructions) : std::vector<StepPhase>{};
  for (StepPhase& phase : phases_) {
    if (one_phase() && phase != StepPhase::kOptimizer) phase = StepPhase::kForward;
  }
  if (!pass.empty() && !instructions.empty())
    timeline_.marks.push_back({pass, timeline_.points.size()});
  fresh_ = true;
}

void TimelineRecorder::note(std::uint32_t instruction, Bytes allocated, Bytes reserved,
                            const RoleBytes& by_role) {
  auto& points = timeline_.points;
  const bool new_phase =
      instruction < phases_.size() &&
      (fresh_ || instruction == 0 || phases_[instruction] != phases_[instruction - 1]);
  if (new_phase) timeline_.marks.push_back({phase_name(phases_[instruction]), points.size()});
  if (fresh_ || new_phase || filled_ >= stride_) {
    points.push_back({instruction, allocated, reserved, by_role});
    filled_ = 1;
    fresh_ = false;
    return;
  }
  ++filled_;
  TimelinePoint& point = points.back();
  point.reserved = std::max(point.reserved, reserved);
  if (allocated > point.allocated) {
    point.instruction = instruction;
    point.allocated = allocated;
    point.by_role = by_role;
  }
}

}  // namespace stoker
