// How much a device must have for a program: replay.h.

#include <algorithm>

#include "memory/replay/replay.h"

namespace stoker {

bool surely_fits(const Program& program, const ReplayOptions& options) {
  const AllocatorConfig& config = options.allocator;
  if (!options.capacity || options.heap || config.expandable_segments || config.memory_fraction)
    return false;
  std::int64_t room = options.capacity->count();
  const auto all_fit = [&](const std::vector<Instruction>& instructions, const Repeated& repeated,
                           std::int64_t times) {
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      const Instruction& instruction = instructions[i];
      if (instruction.kind != InstructionKind::kAllocate) continue;
      if (instruction.value >= program.buffers.size()) continue;
      const Bytes requested = program.buffers[instruction.value].bytes;
      if (requested.count() <= 0) continue;
      if (requested > *options.capacity) return false;
      const std::int64_t often =
          (instruction.when == When::kFirst ? 1 : times) * repeated.times_of(i);
      const std::int64_t segment = segment_size(block_size(requested, config), config).count();
      if (often > 0 && segment > room / often) return false;
      room -= often * segment;
    }
    return true;
  };
  // The iterations, and one more after the passes.
  const bool training = all_fit(program.setup, {}, 1) &&
                        all_fit(program.iteration, program.repeated, options.iterations + 1);
  return training &&
         std::all_of(program.passes.begin(), program.passes.end(), [&](const ExtraPass& pass) {
           return all_fit(pass.instructions, pass.repeated, pass.repeats) &&
                  all_fit(pass.end, {}, 1);
         });
}

Bytes smallest_capacity(const Program& program, const ReplayOptions& options) {
  ReplayOptions trial = options;
  trial.detail = ReplayDetail::kVerdict;
  trial.capacity.reset();
  trial.allocator.memory_fraction.reset();  // a share of the very capacity that is looked for
  const std::int64_t step = kLargeRounding.count();
  std::int64_t fails =
      -1;  // in steps: even nothing may be enough, for a program that allocates nothing
  std::int64_t fits = (replay(program, trial).reserved_peak.count() + step - 1) / step;
  while (fits - fails > 1) {
    const std::int64_t middle = fails + (fits - fails) / 2;
    trial.capacity = Bytes{middle * step};
    (replay(program, trial).fits() ? fits : fails) = middle;
  }
  return Bytes{fits * step};
}

}  // namespace stoker
