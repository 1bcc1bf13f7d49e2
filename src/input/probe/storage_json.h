#pragma once

#include "input/probe/storage.h"
#include "json/json_reader.h"

namespace stoker::probe_json {

/// The probe file's "storage" (docs/reference/probe-file.md).
[[nodiscard]] Json to_json(const StorageFacts& storage);
void read_storage(Reader& reader, const Json& json, StorageFacts& out);

}  // namespace stoker::probe_json
