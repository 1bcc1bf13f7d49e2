#pragma once

#include <vector>

#include "accuracy/common/bench.h"

/// What several GPUs take beside what was measured: collectives, and steps by number of GPUs.
namespace stoker::accuracy {

std::vector<Measure> run_all_reduce(Bench& bench, const Table& table);

std::vector<Measure> run_published_scaling(Bench& bench, const Table& table);
std::vector<Measure> run_lambda_scaling(Bench& bench, const Table& table);

std::vector<CaptureRequest> wanted_scaling(const Bench& bench, const Table& table);
std::vector<Measure> run_scaling(Bench& bench, const Table& table);

}  // namespace stoker::accuracy
