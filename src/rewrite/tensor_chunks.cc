#include "rewrite/tensor_chunks.h"

#include <map>
#include <utility>

#include "rewrite/step_parts.h"

namespace stoker {

std::vector<TensorChunk> tensor_chunks(const Step& step, const std::vector<ChunkedTensor>& tensors,
                                       Bytes limit) {
  DimensionValues defaults{};
  for (std::size_t d = 0; d < step.dimensions.size(); ++d)
    defaults[d] = step.dimensions[d].default_value / step.dimensions[d].unit;
  std::vector<TensorChunk> chunks;
  std::map<DType, TensorChunk> open;
  for (std::uint32_t t = 0; t < tensors.size(); ++t) {
    const TensorType& type = step.types[index(tensors[t].type)];
    const std::int64_t bytes = bytes_of(type).evaluate(defaults).value_or(0);
    TensorChunk& chunk = open[type.dtype];
    if (chunk.bytes > 0 && chunk.bytes + bytes > limit.count()) {
      chunks.push_back(std::exchange(chunk, {}));
    }
    chunk.dtype = type.dtype;
    chunk.bytes += bytes;
    chunk.tensors.push_back(t);
  }
  for (auto& [dtype, chunk] : open) {
    if (!chunk.tensors.empty()) chunks.push_back(std::move(chunk));
  }
  return chunks;
}

}  // namespace stoker
