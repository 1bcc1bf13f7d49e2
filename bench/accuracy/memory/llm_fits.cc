// Language models that ran under FSDP: none may be said not to fit, and where the peak was read it
// is compared.

#include <string>
#include <vector>

#include "accuracy/common/llm_rows.h"
#include "accuracy/memory/measures.h"
#include "forecast/memory_forecast.h"
#include "lower/loop/lower.h"

namespace stoker::accuracy {
namespace {

constexpr double kMiB = 1 << 20, kMiBPerGiB = 1024;

struct Count {
  double rows = 0, denied = 0, risky = 0;
};

void judge(Bench& bench, const CsvRow& row, const std::map<std::string, std::string>& shapes,
           Measure& measure, Count& count) {
  const std::string name =
      std::string(row["model"]) + " " + std::string(row["seq_len"]) + " " + std::string(row["gpu"]);
  const auto llm = llm_row(bench, row, shapes);
  if (!llm) return measure.unserved.push_back({name, llm.error().text()});
  const auto step = llm_step(bench, *llm);
  if (!step) return measure.unserved.push_back({llm->label, step.error().text()});
  const auto program = lower(**step, llm->job, llm->machine);
  if (!program) return measure.unserved.push_back({llm->label, program.error().text()});
  const MemoryForecast memory =
      forecast_memory(*program, llm->machine, {}, bench.knowledge,
                      memory_error_case(*program, llm->job, llm->machine));
  ++count.rows;
  count.risky += memory.verdict == MemoryVerdictWord::kRisky ? 1 : 0;
  if (memory.verdict == MemoryVerdictWord::kDoesNotFit || !memory.fits) {
    ++count.denied;
    measure.notes.push_back(
        "denied: " + llm->label + ", " +
        std::to_string(static_cast<int>(memory.device_peak.value / kMiB)) + " MiB of " +
        std::to_string(static_cast<int>(static_cast<double>(memory.usable.count()) / kMiB)));
  }
  if (!llm->memory_gib) return;
  measure.pairs.push_back({std::string(row["model"]), llm->label, *llm->memory_gib * kMiBPerGiB,
                           memory.reserved_peak.value / kMiB,
                           Band{1 - memory.reserved_peak.low / memory.reserved_peak.value,
                                memory.reserved_peak.high / memory.reserved_peak.value - 1}});
}

}  // namespace

std::vector<Measure> run_llm_fits(Bench& bench, const Table& table) {
  Measure measure;
  measure.name = "memory/llm-fits";
  measure.what =
      "language models that ran under FSDP are said to fit; where the table has it, PyTorch's "
      "reserved peak";
  const auto shapes = llm_shapes(bench);
  Count count;
  for (const CsvRow* row : sampled(bench, table)) judge(bench, *row, shapes, measure, count);
  measure.score = score(measure.pairs);
  const double percent = 100 / std::max(1.0, count.rows);
  measure.shares = {{"rows that ran", count.rows},
                    {"said not to fit", count.denied * percent},
                    {"said to be risky", count.risky * percent}};
  return {std::move(measure)};
}

}  // namespace stoker::accuracy
