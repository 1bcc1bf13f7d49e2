#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "bench.h"

namespace stoker::accuracy {

std::vector<CaptureRequest> wanted_timm_a100(const Bench& bench, const Table& table);
std::vector<Measure> run_timm_a100(Bench& bench, const Table& table);

std::vector<CaptureRequest> wanted_timm_maxbatch(const Bench& bench, const Table& table);
std::vector<Measure> run_timm_maxbatch(Bench& bench, const Table& table);

/// The measures, or one without rows that says why there are none.
[[nodiscard]] inline std::vector<Measure> or_note(Result<std::vector<Measure>> result, std::string name) {
  if (result) return std::move(*result);
  Measure failed;
  failed.name = std::move(name);
  failed.notes.push_back(result.error().text());
  return {failed};
}

}  // namespace stoker::accuracy
