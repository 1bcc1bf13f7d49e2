#pragma once

#include "work/work.h"

namespace stoker {

/// Bytes that cuDNN keeps from an RNN's forward for its backward: gates, cell and output of each
/// time step. cudnnGetRNNTrainingReserveSize is not public; this is an estimate.
[[nodiscard]] Bytes rnn_reserve(const RnnShape& shape, DType dtype);

}  // namespace stoker
