#include "cli/answers/by_layer.h"

#include <cstdio>

#include "cli/outside/output.h"
#include "cli/request/report_context.h"
#include "report/model/layers_report.h"

namespace stoker::cli {

Result<int> answer_by_layer(const RunOptions& o, const Resolved& r) {
  const auto layers = TRY(layer_sum(r.base, r.knowledge));
  ReportContext context = context_of(r.facts);
  context.model_line = r.line(r.base.job).text();
  const std::string text = o.json ? layers_json(layers, context) : layers_text(layers, context);
  print(text);
  return 0;
}

}  // namespace stoker::cli
