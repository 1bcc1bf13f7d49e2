#include "lower/common/rnn_reserve.h"

namespace stoker {

Bytes rnn_reserve(const RnnShape& shape, DType dtype) {
  const std::int64_t cell_and_output = 2;
  return Bytes(shape.layers * shape.directions * shape.length * shape.batch * shape.hidden *
               (shape.gates + cell_and_output) * size_of(dtype));
}

}  // namespace stoker
