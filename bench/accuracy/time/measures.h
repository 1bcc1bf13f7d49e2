#pragma once

#include <vector>

#include "accuracy/common/bench.h"

/// Forecasts of time beside measured operators, layers and steps; README.md has each table's
/// conditions.
namespace stoker::accuracy {

std::vector<Measure> run_operator_gemm(Bench& bench, const Table& table);
std::vector<Measure> run_operator_vector(Bench& bench, const Table& table);
std::vector<Measure> run_operator_convolution(Bench& bench, const Table& table);

std::vector<Measure> run_mlpredict_convolution(Bench& bench, const Table& table);
std::vector<Measure> run_mlpredict_dense(Bench& bench, const Table& table);
std::vector<Measure> run_iit_convolution(Bench& bench, const Table& table);
std::vector<Measure> run_iit_models(Bench& bench, const Table& table);
std::vector<Measure> run_iit(Bench& bench, const Table& table);
std::vector<Measure> run_vgg16(Bench& bench, const Table& table);

std::vector<Measure> run_timm_time(Bench& bench, const Table& table);

std::vector<CaptureRequest> wanted_neusight(const Bench& bench, const Table& table);
std::vector<Measure> run_neusight(Bench& bench, const Table& table);

std::vector<Measure> run_measured_steps(Bench& bench, const Table& table);

std::vector<CaptureRequest> wanted_inference_latency(const Bench& bench, const Table& table);
std::vector<Measure> run_inference_latency(Bench& bench, const Table& table);

std::vector<CaptureRequest> wanted_lambda(const Bench& bench, const Table& table);
std::vector<Measure> run_lambda(Bench& bench, const Table& table);

std::vector<CaptureRequest> wanted_lambda_one_gpu(const Bench& bench, const Table& table);
std::vector<Measure> run_lambda_one_gpu(Bench& bench, const Table& table);

std::vector<Measure> run_llm_training(Bench& bench, const Table& table);

}  // namespace stoker::accuracy
