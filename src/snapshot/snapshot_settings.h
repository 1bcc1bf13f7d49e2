#pragma once

#include "snapshot/pickle.h"
#include "snapshot/snapshot.h"

namespace stoker {

/// The allocator's settings that a snapshot's dict names, into `snapshot`: its text, its config and
/// findings about what is unknown. Throws snapshot_fields::Refusal for another allocator, which no
/// trace can be understood of.
void read_allocator_settings(const PickleValue& root, Snapshot& snapshot);

}  // namespace stoker
