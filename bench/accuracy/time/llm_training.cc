// Language models under FSDP on 8 to 512 GPUs: the time of one optimizer step.

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "accuracy/common/llm_rows.h"
#include "accuracy/common/step_times.h"
#include "accuracy/time/measures.h"

namespace stoker::accuracy {

std::vector<Measure> run_llm_training(Bench& bench, const Table& table) {
  Measure measure;
  measure.name = "time/llm-training";
  measure.what = "ms of an optimizer step of language models under FSDP, all micro-batches";
  const auto shapes = llm_shapes(bench);
  std::map<std::string, std::vector<Pair>> parts;
  for (const CsvRow* row : sampled(bench, table)) {
    const auto llm = llm_row(bench, *row, shapes);
    if (!llm) {
      measure.unserved.push_back({std::string((*row)["model"]), llm.error().text()});
      continue;
    }
    const auto step = llm_step(bench, *llm);
    const auto time =
        step ? time_of(bench, **step, llm->job, llm->machine) : tl::unexpected(step.error());
    if (!time || std::isnan(llm->step_ms)) {
      measure.unserved.push_back({llm->label, time ? "no throughput" : time.error().text()});
      continue;
    }
    Pair pair{std::string((*row)["model"]), llm->label, llm->step_ms, milliseconds(time->total),
              time->band};
    parts[llm->machine.device->name].push_back(pair);
    measure.pairs.push_back(std::move(pair));
  }
  measure.score = score(measure.pairs);
  for (const auto& [name, pairs] : parts)
    measure.shares.emplace_back("mape " + name, score(pairs).mape);
  return {std::move(measure)};
}

}  // namespace stoker::accuracy
