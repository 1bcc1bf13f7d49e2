#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "accuracy/common/bench.h"
#include "base/result.h"
#include "device/machine.h"
#include "program/job.h"

/// Rows of llm_training.csv: decoder language models under FSDP, with their shapes in
/// llm_models.csv beside it.
namespace stoker::accuracy {

struct LlmRow {
  const CsvRow* row = nullptr;
  std::string label;  ///< "mpt-7b 2048 x 6, 8 H100-SXM5-80GB"
  Machine machine;
  Job job;
  CaptureRequest request;
  double step_ms = 0;                ///< of one optimizer step; NaN: the row does not say
  std::optional<double> memory_gib;  ///< reserved by PyTorch
  /// Under torch.compile, or with single operators computed again: scored, and no fit sees it.
  bool is_otherwise = false;
};

/// Shapes by model, as JSON for llm_models.py; empty when there is no such table.
[[nodiscard]] std::map<std::string, std::string> llm_shapes(const Bench& bench);

/// The row as a job. Refused, with the reason, where it ran in FP8, or the GPU or the model is not
/// known.
[[nodiscard]] Result<LlmRow> llm_row(const Bench& bench, const CsvRow& row,
                                     const std::map<std::string, std::string>& shapes);

/// The captured step, refused where its parameters are not those of the row.
[[nodiscard]] Result<std::shared_ptr<const Step>> llm_step(Bench& bench, const LlmRow& row);

std::vector<CaptureRequest> wanted_llm(const Bench& bench, const Table& table);

}  // namespace stoker::accuracy
