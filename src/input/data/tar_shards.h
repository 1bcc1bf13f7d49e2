#pragma once

#include "input/data/data_set.h"

namespace stoker {

/// The key of a member of a WebDataset shard: its path up to the first dot of its last component.
[[nodiscard]] std::string_view tar_key(std::string_view member);

/// Reads up to eight of the shards in `set.files` from front to back as a loader does, counts their
/// samples (consecutive members of one key) and loads images spread over their length. What lies
/// beyond, or after the deadline, is extrapolated by bytes. Fills samples, facts and diagnostics;
/// fails when no shard holds an image.
[[nodiscard]] Status open_tar_shards(const DataSetOptions& options, DataSet& set);

}  // namespace stoker
