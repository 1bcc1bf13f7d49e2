// Published training throughput on one GPU: ResNet-50 and BERT in FP32 (TF32 where the GPU has it)
// and half precision, V100 to B200.

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "accuracy/common/bench.h"
#include "accuracy/common/step_times.h"
#include "accuracy/time/measures.h"

namespace stoker::accuracy {
namespace {

constexpr std::int64_t kSquadTokens = 384;  // --max_seq_length of NVIDIA's run_squad.py
/// GPUs whose measured throughputs are this far apart should come out in the right order.
constexpr double kApart = 1.1;

/// Google's BERT sizes; the vocabulary is padded to a multiple of eight as NVIDIA's scripts do.
std::string bert_shape(int layers, int hidden) {
  return R"({"model_type": "bert", "layers": )" + std::to_string(layers) + R"(, "hidden": )" +
         std::to_string(hidden) + R"(, "heads": )" + std::to_string(hidden / 64) + R"(, "ffn": )" +
         std::to_string(4 * hidden) + R"(, "vocab": 30528, "max_pos": 512, "act": "gelu"})";
}

bool is_bert(std::string_view model) { return model.substr(0, 5) == "bert_"; }

/// Rows of one GPU of models that we can capture.
bool concerns_us(const CsvRow& row) {
  return row["gpus"] == "1" && row["flag"].empty() &&
         (row["model"] == "resnet50" || row["model"] == "bert_base_squad" ||
          row["model"] == "bert_large_squad");
}

CaptureRequest request_for(std::string_view model, std::string_view precision) {
  const bool half = precision == "fp16";
  if (!is_bert(model)) return {"torchvision:resnet50", half ? "amp-fp16" : "fp32"};
  // run_squad.py --fp16 is Apex's O2: the model itself is in half precision.
  CaptureRequest request{"hf_models.py:question_answering", half ? "fp16" : "fp32"};
  request.fixed["seq_len"] = kSquadTokens;
  request.options["attention"] = "\"eager\"";
  request.options["shape"] =
      model == "bert_base_squad" ? bert_shape(12, 768) : bert_shape(24, 1024);
  return request;
}

/// One setting and what its rows say.
struct Setting {
  std::string model, precision;
  Gpu gpu;
  std::int64_t batch = 0;
  std::vector<double> rates;  ///< samples/s

  [[nodiscard]] double median_rate() const {
    std::vector<double> sorted = rates;
    std::sort(sorted.begin(), sorted.end());
    return quantile(sorted, 0.5);
  }
  [[nodiscard]] std::string label() const {
    return model + " " + precision + " " + gpu.name + " batch " + std::to_string(batch);
  }
};

/// Batches that the table states, by model and precision: memory of the GPU -> batch.
using Batches = std::map<std::pair<std::string, std::string>, std::map<std::int64_t, std::int64_t>>;

Batches stated_batches(const Bench& bench, const Table& table) {
  Batches batches;
  for (const CsvRow& row : table) {
    const auto gpu = bench.gpus.find(row["gpu"]);
    const double batch = number(row, "batch_total");
    if (!concerns_us(row) || !gpu || !(batch >= 1)) continue;
    batches[{std::string(row["model"]), std::string(row["precision"])}][gpu->memory.count()] =
        static_cast<std::int64_t>(batch);
  }
  return batches;
}

/// The scripts choose the batch by classes of memory: that of the largest class which the GPU has.
std::int64_t batch_of(const CsvRow& row, const Gpu& gpu, const Batches& batches) {
  const double stated = number(row, "batch_total");
  if (stated >= 1) return static_cast<std::int64_t>(stated);
  const auto found = batches.find({std::string(row["model"]), std::string(row["precision"])});
  if (found == batches.end()) return 0;
  const auto above = found->second.upper_bound(gpu.memory.count());
  return above == found->second.begin() ? 0 : std::prev(above)->second;
}

std::vector<Setting> settings_of(const Bench& bench, const Table& table,
                                 std::vector<Unserved>& unserved) {
  const Batches batches = stated_batches(bench, table);
  std::map<std::tuple<std::string, std::string, std::string, std::int64_t>, Setting> settings;
  for (const CsvRow& row : table) {
    if (!concerns_us(row)) continue;
    const std::string model(row["model"]), precision(row["precision"]);
    const std::string card(row["gpu"].empty() ? row["gpu_label"] : row["gpu"]);
    const auto gpu = bench.gpus.find(card);
    if (!gpu) {
      unserved.push_back({model + " " + precision + " " + card, gpu.error().text()});
      continue;
    }
    const std::int64_t batch = batch_of(row, *gpu, batches);
    if (batch < 1) {
      unserved.push_back({model + " " + precision + " " + card, "no row tells the batch"});
      continue;
    }
    Setting& setting = settings[{model, precision, gpu->name, batch}];
    setting.model = model, setting.precision = precision, setting.gpu = *gpu, setting.batch = batch;
    setting.rates.push_back(number(row, "samples_per_s"));
  }
  std::vector<Setting> list;
  for (auto& [key, setting] : settings) list.push_back(std::move(setting));
  return list;
}

Result<StepTime> forecast(Bench& bench, const Setting& setting, Unseen unseen) {
  const auto step = TRY(bench.captures.get(request_for(setting.model, setting.precision)));
  const bool half = setting.precision == "fp16";
  Machine machine;
  machine.device = setting.gpu;
  Job job;
  job.batch = setting.batch;
  job.cudnn = CudnnProfile::kBenchmark;
  job.copy = CopyWay::kOverlapped;
  if (is_bert(setting.model)) {
    // FusedAdam of Apex in half precision, BertAdam's loop in full.
    job.optimizer.kind = OptimizerKind::kAdam;
    job.optimizer.loop = half ? OptimizerLoop::kFused : OptimizerLoop::kForLoop;
    job.attention = AttentionBackend::kMath;
  }
  const bool tf32 = setting.gpu.peak.tf32_tensor > 0;
  job.precision = half ? (is_bert(setting.model) ? Precision::kFp16 : Precision::kAmpFp16)
                       : (tf32 ? Precision::kTf32 : Precision::kFp32);
  job.tf32_matmul = !half && tf32;
  return time_of(bench, *step, job, machine, unseen);
}

/// What the other GPUs of a model and precision say, scaled by memory bandwidth.
std::vector<Pair> scaled_by_bandwidth(const std::vector<Setting>& settings) {
  std::vector<Pair> pairs;
  for (const Setting& one : settings) {
    double sum = 0;
    int others = 0;
    for (const Setting& other : settings) {
      if (other.model != one.model || other.precision != one.precision ||
          other.gpu.name == one.gpu.name)
        continue;
      sum += std::log(other.median_rate() * one.gpu.bandwidth / other.gpu.bandwidth);
      ++others;
    }
    if (others > 0)
      pairs.push_back(
          {one.gpu.name, one.label(), 1 / one.median_rate(), 1 / std::exp(sum / others), {}});
  }
  return pairs;
}

/// Share in percent of pairs of GPUs whose measured rates are apart and whose forecasts agree.
void add_order(const std::vector<Setting>& settings, const std::vector<double>& seconds,
               Measure& measure) {
  int right = 0, all = 0;
  for (std::size_t i = 0; i < settings.size(); ++i) {
    for (std::size_t j = 0; j < settings.size(); ++j) {
      if (settings[i].model != settings[j].model ||
          settings[i].precision != settings[j].precision || std::isnan(seconds[i]) ||
          std::isnan(seconds[j]) || settings[i].median_rate() < kApart * settings[j].median_rate())
        continue;
      ++all;
      right += seconds[i] < seconds[j] ? 1 : 0;
    }
  }
  if (all == 0) return;
  measure.shares.emplace_back("gpu_pairs_apart", all);
  measure.shares.emplace_back("gpu_pairs_in_order", 100.0 * right / all);
}

void add_parts(Measure& measure, const std::map<std::string, std::vector<Pair>>& parts) {
  for (const auto& [name, pairs] : parts)
    measure.shares.emplace_back("mape " + name, score(pairs).mape);
}

/// The measure by settings and the one by rows, with coefficients that have not seen what `unseen`
/// says.
std::pair<Measure, Measure> measured(Bench& bench, const std::vector<Setting>& settings,
                                     Unseen unseen) {
  Measure medians, rows;
  std::vector<double> seconds;
  std::map<std::string, std::vector<Pair>> parts;
  for (const Setting& setting : settings) {
    const auto time = forecast(bench, setting, unseen);
    seconds.push_back(std::nan(""));
    if (!time) {
      medians.unserved.push_back({setting.label(), time.error().text()});
      continue;
    }
    const double per_sample = 1e3 * milliseconds(time->total) / static_cast<double>(setting.batch);
    seconds.back() = per_sample;
    Pair pair{setting.gpu.name, setting.label(), 1e6 / setting.median_rate(), per_sample,
              time->band};
    parts[setting.model + " " + setting.precision].push_back(pair);
    medians.pairs.push_back(pair);
    for (const double rate : setting.rates) {
      pair.truth = 1e6 / rate;
      rows.pairs.push_back(pair);
    }
  }
  medians.score = score(medians.pairs), rows.score = score(rows.pairs);
  const Score rival = score(scaled_by_bandwidth(settings));
  medians.rival = Rival{"other GPUs' rates scaled by bandwidth", rival.rows, rival.mape,
                        rival.mdape, rival.p90};
  add_order(settings, seconds, medians);
  add_parts(medians, parts);
  return {std::move(medians), std::move(rows)};
}

}  // namespace

std::vector<CaptureRequest> wanted_lambda_one_gpu(const Bench& bench, const Table& table) {
  (void)bench;
  std::vector<CaptureRequest> requests;
  for (const CsvRow& row : table) {
    if (concerns_us(row)) requests.push_back(request_for(row["model"], row["precision"]));
  }
  return requests;
}

std::vector<Measure> run_lambda_one_gpu(Bench& bench, const Table& table) {
  std::vector<Unserved> unserved;
  const std::vector<Setting> settings = settings_of(bench, table, unserved);
  std::vector<Measure> measures;
  for (const Unseen unseen : {Unseen::kNothing, Unseen::kGpu}) {
    if (unseen == Unseen::kGpu && bench.folds.empty()) continue;
    auto [medians, rows] = measured(bench, settings, unseen);
    const std::string fold = unseen == Unseen::kGpu ? "/gpu-left-out" : "";
    medians.name = "time/lambda-one-gpu" + fold;
    medians.what =
        "ms per 1,000 samples, one GPU; median of the machines with the same GPU, model, precision "
        "and "
        "batch";
    rows.name = "time/lambda-one-gpu-rows" + fold;
    rows.what = "the same, each row by itself (most are H100 machines)";
    medians.unserved.insert(medians.unserved.end(), unserved.begin(), unserved.end());
    measures.push_back(std::move(medians));
    measures.push_back(std::move(rows));
  }
  return measures;
}

}  // namespace stoker::accuracy
