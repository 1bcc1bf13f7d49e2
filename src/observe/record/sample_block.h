#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "observe/sample/sample.h"

namespace stoker::record {

/// Samples as the bytes of one block: differences to the sample before, the first of a block in
/// full, so that a block can be read without those before it.
[[nodiscard]] std::string encode_samples(const std::vector<Sample>& samples);

/// nullopt: the bytes are no such block.
[[nodiscard]] std::optional<std::vector<Sample>> decode_samples(std::string_view bytes);

}  // namespace stoker::record
