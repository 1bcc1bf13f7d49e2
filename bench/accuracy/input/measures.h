#pragma once

#include <vector>

#include "accuracy/common/bench.h"

/// Forecasts of the input pipeline beside measured loaders and published studies.
namespace stoker::accuracy {

std::vector<Measure> run_input_loaders(Bench& bench, const Table& table);
std::vector<Measure> run_input_studies(Bench& bench, const Table& table);

}  // namespace stoker::accuracy
