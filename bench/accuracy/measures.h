#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "bench.h"
#include "program/job.h"
#include "timing/gpu/step_time.h"

namespace stoker::accuracy {

std::vector<CaptureRequest> wanted_timm_a100(const Bench& bench, const Table& table);
std::vector<Measure> run_timm_a100(Bench& bench, const Table& table);

std::vector<CaptureRequest> wanted_mlp(const Bench& bench, const Table& table);
std::vector<Measure> run_mlp(Bench& bench, const Table& table);

std::vector<Measure> run_safe_batch(Bench& bench, const Table& table);  ///< of the timm-a100 table

std::vector<CaptureRequest> wanted_named(const Bench& bench, const Table& table);
std::vector<Measure> run_paper_models(Bench& bench, const Table& table);
std::vector<Measure> run_carma(Bench& bench, const Table& table);

std::vector<CaptureRequest> wanted_schedtune(const Bench& bench, const Table& table);
std::vector<Measure> run_schedtune(Bench& bench, const Table& table);

std::vector<CaptureRequest> wanted_batch_bounds(const Bench& bench, const Table& table);
std::vector<Measure> run_batch_bounds(Bench& bench, const Table& table);

std::vector<CaptureRequest> wanted_measured(const Bench& bench, const Table& table);
std::vector<Measure> run_measured(Bench& bench, const Table& table);
std::vector<Measure> run_measured_steps(Bench& bench, const Table& table);
/// What a row of our own scripts was captured from, and its job by its columns and "flags".
[[nodiscard]] CaptureRequest measured_request(const CsvRow& row);
[[nodiscard]] Result<Job> measured_job(const CsvRow& row);

std::vector<CaptureRequest> wanted_timm_maxbatch(const Bench& bench, const Table& table);
std::vector<Measure> run_timm_maxbatch(Bench& bench, const Table& table);

std::vector<CaptureRequest> wanted_xmem(const Bench& bench, const Table& table);
std::vector<Measure> run_xmem(Bench& bench, const Table& table);

/// The capture that a row of timm's benchmark needs: the script ran under PyTorch 1.12, without
/// fused attention.
[[nodiscard]] CaptureRequest timm_benchmark_request(const CsvRow& row);
std::vector<CaptureRequest> wanted_layers(const Bench& bench, const Table& table);  ///< none
std::vector<Measure> run_mlpredict_convolution(Bench& bench, const Table& table);
std::vector<Measure> run_mlpredict_dense(Bench& bench, const Table& table);
std::vector<Measure> run_iit_convolution(Bench& bench, const Table& table);
std::vector<Measure> run_iit_models(Bench& bench, const Table& table);
std::vector<Measure> run_iit(Bench& bench, const Table& table);
std::vector<Measure> run_vgg16(Bench& bench, const Table& table);

std::vector<Measure> run_timm_time(Bench& bench, const Table& table);

std::vector<CaptureRequest> wanted_neusight(const Bench& bench, const Table& table);
std::vector<Measure> run_neusight(Bench& bench, const Table& table);

std::vector<CaptureRequest> wanted_operators(const Bench& bench, const Table& table);
std::vector<Measure> run_operator_gemm(Bench& bench, const Table& table);
std::vector<Measure> run_operator_vector(Bench& bench, const Table& table);
std::vector<Measure> run_operator_convolution(Bench& bench, const Table& table);

std::vector<CaptureRequest> wanted_scaling(const Bench& bench, const Table& table);
std::vector<Measure> run_scaling(Bench& bench, const Table& table);

/// The requests of a measure that needs no captured step: none.
std::vector<CaptureRequest> wanted_nothing(const Bench& bench, const Table& table);
std::vector<Measure> run_all_reduce(Bench& bench, const Table& table);
std::vector<Measure> run_published_scaling(Bench& bench, const Table& table);
std::vector<Measure> run_lambda_scaling(Bench& bench, const Table& table);

std::vector<Measure> run_input_loaders(Bench& bench, const Table& table);
std::vector<Measure> run_input_studies(Bench& bench, const Table& table);

std::vector<CaptureRequest> wanted_lambda(const Bench& bench, const Table& table);
std::vector<Measure> run_lambda(Bench& bench, const Table& table);

std::vector<CaptureRequest> wanted_lambda_one_gpu(const Bench& bench, const Table& table);
std::vector<Measure> run_lambda_one_gpu(Bench& bench, const Table& table);

/// Step time by the forecast's own road, with coefficients that have not seen what `unseen` says.
[[nodiscard]] Result<StepTime> time_of(const Bench& bench, const Step& step, const Job& job,
                                       const Machine& machine, Unseen unseen = Unseen::kNothing);

/// The measures, or one without rows that says why there are none.
[[nodiscard]] inline std::vector<Measure> or_note(Result<std::vector<Measure>> result,
                                                  std::string name) {
  if (result) return std::move(*result);
  Measure failed;
  failed.name = std::move(name);
  failed.notes.push_back(result.error().text());
  return {failed};
}

}  // namespace stoker::accuracy
