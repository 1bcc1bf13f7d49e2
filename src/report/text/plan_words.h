#pragma once

#include <string>

#include "plan/plan.h"
#include "report/model/report.h"

/// Internal to src/report: sentences about a plan that text and page share.
namespace stoker {

/// "1 GPU", "4 GPUs"
[[nodiscard]] std::string gpus_text(int gpus);

/// "2 GPUs, batch 96 per GPU (192 global), amp-fp16, 3 workers per GPU (prefetch 2), pinned"
[[nodiscard]] std::string best_settings(const Forecast& forecast, const ReportContext& context);

/// "Limited by GPU compute; next: preparing samples (CPU cores) at 810 img/s"
[[nodiscard]] std::string limit_words(const Forecast& forecast, const ReportContext& context);

/// "achieved over data-sheet FLOP/s", or the machine file's where it states them.
[[nodiscard]] std::string mfu_words(const Forecast& forecast, const ReportContext& context);

/// Why this batch, what another precision would bring, what pinning does: a line each.
[[nodiscard]] std::string why_batch(const Plan& plan, const ReportContext& context);

}  // namespace stoker
