#pragma once

#include "input/probe/storage.h"
#include "json/fields.h"

namespace stoker::probe_json {

/// The probe file's "storage" (docs/reference/probe-file.md).
[[nodiscard]] json::Value to_json(const StorageFacts& storage);
void read_storage(json::Fields& fields, const json::Value& storage, StorageFacts& out);

}  // namespace stoker::probe_json
