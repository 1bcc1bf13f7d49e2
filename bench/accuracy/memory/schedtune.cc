// Peaks of CNNs on five GPUs whose software nobody recorded: what they tell is how the same job
// differs from card to card.

#include <cmath>
#include <map>

#include "accuracy/common/bench.h"
#include "accuracy/memory/device_peaks.h"
#include "accuracy/memory/measures.h"

namespace stoker::accuracy {
namespace {

CaptureRequest request_for(const CsvRow& row) {
  return {"torchvision:" + std::string(row["model"]), "fp32", {}, {}};
}

/// The table names cards by their CUDA cores.
std::string card_of(const CsvRow& row) { return std::string(row["cuda_cores"]) + " cores"; }

/// The catalogue's card with those cores; else the one whose multiprocessors are built alike and
/// most alike in number, with the number of the table.
Result<Gpu> gpu_of(const Bench& bench, const CsvRow& row) {
  const double cores = number(row, "cuda_cores"), multiprocessors = number(row, "sm_count");
  const Gpu* nearest = nullptr;
  for (const Gpu& gpu : bench.gpus.all()) {
    if (!check_complete(gpu) || gpu.sm_count <= 0) continue;
    if (gpu.sm_count * gpu.fp32_cores_per_sm == cores) return gpu;
    if (gpu.fp32_cores_per_sm != cores / multiprocessors) continue;
    if (nearest == nullptr ||
        std::abs(gpu.sm_count - multiprocessors) < std::abs(nearest->sm_count - multiprocessors))
      nearest = &gpu;
  }
  if (nearest == nullptr) return fail(ErrorCode::kNotFound, "no GPU has such multiprocessors");
  Gpu gpu = *nearest;
  gpu.sm_count = static_cast<int>(multiprocessors);
  return gpu;
}

/// A constant a card, fitted on the other half of the models.
std::vector<Pair> with_context_of_each_card(const std::vector<Pair>& pairs,
                                            const std::vector<std::string>& cards) {
  std::map<std::string, std::vector<std::size_t>> by_card;
  for (std::size_t i = 0; i < pairs.size(); ++i) by_card[cards[i]].push_back(i);
  std::vector<Pair> result = pairs;
  for (const auto& [card, rows] : by_card) {
    std::vector<Pair> of_card;
    for (const std::size_t i : rows) of_card.push_back(pairs[i]);
    const std::vector<Pair> fitted = with_offset_of_others(std::move(of_card), 0);
    for (std::size_t k = 0; k < rows.size(); ++k) result[rows[k]] = fitted[k];
  }
  return result;
}

}  // namespace

std::vector<CaptureRequest> wanted_schedtune(const Bench& bench, const Table& table) {
  std::vector<CaptureRequest> requests;
  for (const CsvRow* row : sampled(bench, table)) requests.push_back(request_for(*row));
  return requests;
}

std::vector<Measure> run_schedtune(Bench& bench, const Table& table) {
  DevicePeaks peaks(bench, "memory/schedtune",
                    "device peak of CNNs on five cards, software unknown (assumed: fp32, SGD with "
                    "momentum); cross-fitted: a context for each card");
  std::vector<std::string> cards;
  for (const CsvRow* row : sampled(bench, table)) {
    const std::string label = std::string((*row)["model"]) + " batch " +
                              std::string((*row)["batch_size"]) + " on " + card_of(*row);
    const auto step = bench.captures.get(request_for(*row));
    const auto gpu = gpu_of(bench, *row);
    if (!gpu) {
      peaks.refuse(label, gpu.error().text());
      continue;
    }
    Machine machine;
    machine.device = *gpu;
    Job job;
    job.batch = static_cast<std::int64_t>(number(*row, "batch_size"));
    job.copy = CopyWay::kPageable;
    job.cublas_workspaces_in_allocator = false;
    if (!step) {
      peaks.refuse(label, step.error().text());
    } else if (peaks.add(std::string((*row)["model"]), label, **step, job, machine,
                         number(*row, "peak_mem_mib"))) {
      cards.push_back(card_of(*row));
    }
  }
  std::vector<Pair> bare = peaks.pairs();
  for (std::size_t i = 0; i < bare.size(); ++i) bare[i].predicted -= peaks.outside()[i];
  std::map<std::string, std::vector<Pair>> by_card;
  for (std::size_t i = 0; i < bare.size(); ++i) by_card[cards[i]].push_back(bare[i]);
  Measure measure = std::move(peaks).finish();
  measure.cross_fitted = score(with_context_of_each_card(bare, cards));
  for (const auto& [card, pairs] : by_card)
    measure.shares.emplace_back("context of " + card + ", MiB", fitted_offset(pairs));
  return {std::move(measure)};
}

}  // namespace stoker::accuracy
