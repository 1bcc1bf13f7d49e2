#pragma once

#include <string>
#include <vector>

#include "forecast/forecast.h"
#include "input/loader/loader_timeline.h"
#include "report/html/page.h"
#include "report/model/report.h"

/// Internal to src/report/html: what several pages show alike.
namespace stoker::page {

/// What an answer rests on, assumed and left out, and what was odd.
void add_footer(Page& page, const ReportContext& context, const Diagnostics& odd);

/// Speed, epoch, cost, busy GPU, memory, energy: those that are known.
void add_tiles(Page& page, const Forecast& forecast, const ReportContext& context);

/// Where the time of a step goes: its phases, the wait for input, and the classes of kernels.
[[nodiscard]] std::vector<Json> step_blocks(const Forecast& forecast);

/// Workers, pin thread, loop and device over the first batches of an epoch.
[[nodiscard]] Json loader_block(const LoaderTimeline& timeline);

}  // namespace stoker::page
