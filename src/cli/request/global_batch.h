#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "scenario/request/request.h"
#include "scenario/sources/tools.h"

namespace stoker::cli {

/// Chooses what was left out of batch and accumulation so that with the request's GPUs they make
/// `global` samples per optimizer step: the largest batch that is safe and divides evenly. Says in
/// a phrase what it chose. Where not even a batch of one is safe, that is what is left to forecast.
[[nodiscard]] Result<std::string> share_out(std::int64_t global, RunRequest& request,
                                            const ScenarioTools& tools);

}  // namespace stoker::cli
