#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "observe/sample/sample.h"

namespace stoker {

/// Decides what each process of a job is, and for whom a worker loads, by names, command lines and
/// parentage (docs/guide/watching.md). `processes` have all but `role` and `owner` set; parents
/// are serials of the same list. A process that multiprocessing spawned less than 20 s before
/// `now_ns` has perhaps not yet told its name, and is a helper until it does.
void assign_roles(std::vector<ProcessFacts>& processes, std::int64_t now_ns);

}  // namespace stoker
