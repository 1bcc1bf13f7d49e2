#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "step/step.h"

namespace stoker {

struct ChunkedTensor {
  TypeId type{};
  StorageId storage{};
};

/// Tensors of one type that travel together, by their positions in the list.
struct TensorChunk {
  DType dtype = DType::kF32;
  std::int64_t bytes = 0;
  std::vector<std::uint32_t> tensors;
};

/// How DataParallel packs parameters and gradients (torch/_utils.py, _take_tensors; the same in
/// tensor_flatten.cpp): in order, by type, a chunk ends before it would exceed `limit`. Sizes that
/// change with the input are taken at the dimensions' defaults.
[[nodiscard]] std::vector<TensorChunk> tensor_chunks(const Step& step,
                                                     const std::vector<ChunkedTensor>& tensors,
                                                     Bytes limit = Bytes(10 << 20));

}  // namespace stoker
