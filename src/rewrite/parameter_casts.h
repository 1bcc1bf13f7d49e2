#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "step/step.h"

namespace stoker {

/// What autocast adds for FP32 parameters and what falls away when they are in half precision
/// already, as FSDP's MixedPrecisionPolicy gathers them.
struct ParameterCasts {
  std::map<std::uint32_t, std::uint32_t> copies;     ///< storage of a cast -> of its parameter
  std::map<std::uint32_t, std::uint32_t> gradients;  ///< FP32 gradient -> what it was cast from
  std::set<std::uint32_t> kept;       ///< what gradients were cast from: freed with the gradient
  std::set<std::uint32_t> operators;  ///< the casts themselves

  [[nodiscard]] bool empty() const { return operators.empty(); }
};

/// The casts of parameters to `computed`, and those back of gradients that are cast from one
/// tensor. A gradient that is summed in FP32 (tied embeddings) stays as it is.
[[nodiscard]] ParameterCasts parameter_casts(const Step& step, DType computed);

}  // namespace stoker
