#include "memory/replay/moment.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace stoker {

const std::vector<Instruction>& instructions_of(const Program& program, const Moment& moment) {
  if (moment.in_setup()) return program.setup;
  if (moment.pass >= 0 && static_cast<std::size_t>(moment.pass) < program.passes.size())
    return program.passes[static_cast<std::size_t>(moment.pass)].instructions;
  return program.iteration;
}

std::vector<StepPhase> phases_of(const Program& program,
                                 const std::vector<Instruction>& instructions) {
  std::vector<StepPhase> phases(instructions.size());
  std::optional<StepPhase> following;
  std::size_t unknown = instructions.size();  // from here on no kernel follows
  for (std::size_t i = instructions.size(); i-- > 0;) {
    const Instruction& instruction = instructions[i];
    if (instruction.kind == InstructionKind::kLaunch &&
        instruction.value < program.kernels.size()) {
      const StepPhase phase = program.kernels[instruction.value].phase;
      if (!following) {
        for (std::size_t j = i + 1; j < unknown; ++j) phases[j] = phase;
      }
      following = phase;
    }
    if (following) phases[i] = *following;
  }
  if (!following) phases.clear();
  return phases;
}

Moment with_phase(const Program& program, Moment moment) {
  moment.phase.reset();
  if (moment.in_setup()) return moment;
  const std::vector<Instruction>& instructions = instructions_of(program, moment);
  if (moment.instruction >= instructions.size()) return moment;
  const auto launches = [&](const Instruction& i) {
    return i.kind == InstructionKind::kLaunch && i.value < program.kernels.size();
  };
  const auto here = instructions.begin() + static_cast<std::ptrdiff_t>(moment.instruction);
  auto kernel = std::find_if(here, instructions.end(), launches);
  if (kernel == instructions.end()) {  // behind the last one
    const auto last = std::find_if(std::make_reverse_iterator(here), instructions.rend(), launches);
    if (last == instructions.rend()) return moment;
    kernel = std::prev(last.base());
  }
  moment.phase = program.kernels[kernel->value].phase;
  return moment;
}

std::string_view words_of(StepPhase phase) {
  switch (phase) {
    case StepPhase::kLoad:
      return "loading the batch";
    case StepPhase::kForward:
      return "forward";
    case StepPhase::kLoss:
      return "loss";
    case StepPhase::kBackward:
      return "backward";
    case StepPhase::kOptimizer:
      return "optimizer step";
  }
  return "";
}

std::string words_of(const Program& program, const Moment& moment) {
  if (moment.in_setup()) return "before the first iteration";
  if (moment.pass >= 0 && static_cast<std::size_t>(moment.pass) < program.passes.size())
    return program.passes[static_cast<std::size_t>(moment.pass)].name;
  std::string words(moment.phase ? words_of(*moment.phase) : "");
  if (moment.iteration > 0) {
    words += (words.empty() ? "" : ", ");
    words += "iteration " + std::to_string(moment.iteration + 1);
  }
  return words;
}

}  // namespace stoker
