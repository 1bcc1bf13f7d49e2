#pragma once

#include <vector>

#include "accuracy/common/bench.h"

/// Memory forecasts beside measured peaks; README.md has each table's conditions.
namespace stoker::accuracy {

std::vector<CaptureRequest> wanted_timm_a100(const Bench& bench, const Table& table);
std::vector<Measure> run_timm_a100(Bench& bench, const Table& table);

std::vector<Measure> run_safe_batch(Bench& bench, const Table& table);  ///< of the timm-a100 table

std::vector<CaptureRequest> wanted_mlp(const Bench& bench, const Table& table);
std::vector<Measure> run_mlp(Bench& bench, const Table& table);

std::vector<CaptureRequest> wanted_named(const Bench& bench, const Table& table);
std::vector<Measure> run_paper_models(Bench& bench, const Table& table);
std::vector<Measure> run_carma(Bench& bench, const Table& table);

std::vector<CaptureRequest> wanted_schedtune(const Bench& bench, const Table& table);
std::vector<Measure> run_schedtune(Bench& bench, const Table& table);

std::vector<CaptureRequest> wanted_batch_bounds(const Bench& bench, const Table& table);
std::vector<Measure> run_batch_bounds(Bench& bench, const Table& table);

std::vector<Measure> run_measured_peaks(Bench& bench, const Table& table);

std::vector<Measure> run_timm_maxbatch(Bench& bench, const Table& table);

std::vector<CaptureRequest> wanted_xmem(const Bench& bench, const Table& table);
std::vector<Measure> run_xmem(Bench& bench, const Table& table);

std::vector<Measure> run_llm_fits(Bench& bench, const Table& table);

}  // namespace stoker::accuracy
