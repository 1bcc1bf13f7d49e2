#include "tune/curve/rate_range_reports.h"

#include <cmath>

#include "json/text.h"
#include "json/value.h"
#include "study/runner/report_tail.h"

namespace stoker::tune {

RangeRun range_reports(const study::TrialFiles& files) {
  constexpr int kReportDepth = 8;
  RangeRun run;
  study::ReportTail(files.reports()).read([&](std::string_view line) {
    const auto parsed = json::parse(line, kReportDepth);
    if (!parsed || !(*parsed)["lr"].is_number() || !parsed->contains("loss")) return;
    const json::Value& loss = (*parsed)["loss"];
    run.push_back(
        {(*parsed)["lr"].as_double(), loss.is_number() ? loss.as_double() : std::nan("")});
  });
  return run;
}

}  // namespace stoker::tune
