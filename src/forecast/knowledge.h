#pragma once

#include <string>
#include <vector>

#include "base/figure.h"
#include "base/result.h"
#include "base/units.h"
#include "input/probe/loader_profile.h"
#include "timing/step/coefficient_file.h"

namespace stoker {

/// How far one side of a memory band reaches from a forecast: share x forecast + fixed, but never
/// less than `least`. What goes wrong is partly a share of the activations and partly bytes
/// (context, rounding to segments), so neither alone describes it.
struct Reach {
  double share = 0;
  Bytes fixed{};  ///< may be negative: the share is then one of what exceeds the context
  Bytes least{};

  /// Relative to the forecast.
  [[nodiscard]] double at(Bytes forecast) const;
};

/// How far a job's need may lie above its forecast. A peak that was measured on an empty card is
/// often more: a library takes memory because it is there, and does without where it is not.
struct NeedReach {
  Reach reach;
  /// Times the largest convolution workspace of the program: how much of it an algorithm other than
  /// the assumed one takes.
  double workspaces = 0;
};

/// Measured error of memory forecasts on rows of one kind (data/coefficients/memory.json).
struct MemoryErrorCase {
  std::string name;    ///< "cnn-fp32-benchmark", ..., "default"
  Reach below, above;  ///< 90 % of truths lie within
  std::int64_t rows = 0;
  std::string basis;
  NeedReach need{};  ///< 92 of 100 needs lie below

  /// The band of a forecast of this many bytes on the device, relative to it.
  [[nodiscard]] Band band_at(Bytes peak) const;
  /// What a forecast of that size is exceeded by at most in 92 of 100 jobs, relative to it, where
  /// the largest convolution workspace is that share of it.
  [[nodiscard]] double need_above(Bytes peak, double workspace_share) const;
};

/// Cases from the text of memory.json; refuses another schema and impossible numbers. `name` is the
/// file that errors point at.
[[nodiscard]] Result<std::vector<MemoryErrorCase>> parse_memory_cases(const std::string& text,
                                                                      const std::string& name);

/// Everything that forecasts know beyond models and machines; read once from the data folder.
struct Knowledge {
  CoefficientFile timing;
  LoaderProfile loader;
  std::vector<MemoryErrorCase> memory;

  /// The case of that name, else "default", else a wide prior.
  [[nodiscard]] MemoryErrorCase memory_case(const std::string& name) const;
};

/// Reads what ships. A damaged timing or memory file is an error with its cure.
[[nodiscard]] Result<Knowledge> load_knowledge();

}  // namespace stoker
