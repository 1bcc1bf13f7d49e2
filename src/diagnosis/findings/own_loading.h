#pragma once

#include <optional>

#include "diagnosis/findings/job_case.h"

namespace stoker::findings {

/// What of the time of training processes without workers is loading.
///
/// Whose code the main thread runs tells most: decoders, tokenizers and archives load, a GPU's
/// libraries and, where there is no GPU, tensors compute. Python, the C library and NumPy serve
/// both; they are divided as the known code is, and the band holds all or nothing of them. Where
/// the code is not seen, only bounds are: time with other threads of the process on a core too is
/// the step's.
[[nodiscard]] std::optional<OwnLoading> own_loading_of(const JobCase& c);

/// Whether much of the time may be loading and nothing tells: a loop that loads all the time then
/// looks healthy.
[[nodiscard]] bool hides_loading(const JobCase& c);

}  // namespace stoker::findings
