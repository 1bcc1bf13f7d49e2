// The input rows of the studies that Stoker starts from (studies.csv): epochs and settings of a thesis
// on storage bottlenecks, pinned memory of a study on HPC systems, thread scaling of a study of system
// resources. Hardly any of their loaders is described, so each measure says what it assumes;
// docs/recommendations.md tells what follows.

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "base/files.h"
#include "bench.h"
#include "forecast/forecast.h"
#include "measures.h"
#include "plan/input_plan.h"
#include "plan/thesis_rule.h"
#include "step/step_reader.h"

namespace stoker::accuracy {
namespace {

/// ImageNet's training set: 1,281,167 pictures.
constexpr std::int64_t kImageNet = 1'281'167;
/// CPU time of an ImageNet picture in Pillow and torchvision, one core of a 2.3 GHz Xeon
/// (docs/input-model.md, section 4), and a float picture of 224 px with its label.
constexpr Nanos kPictureCost = 4.4 * kMillisecond;
constexpr std::int64_t kPictureBytes = 3 * 224 * 224 * 4 + 8;
/// Pictures of CIFAR's training set.
constexpr double kCifar = 50'000;
constexpr double kSecondsAMinute = 60;
/// The batch of the rows that state none.
constexpr std::int64_t kUnstatedBatch = 64;

/// The number that follows `word` in the text: "workers 64 batch 160"; 0: none.
std::int64_t number_after(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  if (at == std::string_view::npos) return 0;
  std::int64_t value = 0;
  const char* begin = text.data() + std::min(text.size(), at + word.size() + 1);
  std::from_chars(begin, text.data() + text.size(), value);
  return value;
}

double decimal_after(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  if (at == std::string_view::npos) return 0;
  double value = 0;
  const char* begin = text.data() + std::min(text.size(), at + word.size() + 1);
  std::from_chars(begin, text.data() + text.size(), value);
  return value;
}

std::string first_word(std::string_view text) {
  return std::string(text.substr(0, text.find(' ')));
}

/// The captured fp32 step of that name, or the only one whose name begins with it.
class Zoo {
 public:
  Result<const Step*> step(const std::string& name) {
    if (const auto known = steps_.find(name); known != steps_.end()) return &known->second;
    const auto path = file_of(name);
    if (!path) return tl::unexpected(path.error());
    auto read = read_step_file(*path);
    if (!read) return tl::unexpected(read.error());
    return &steps_.emplace(name, std::move(*read)).first->second;
  }

 private:
  static Result<std::filesystem::path> file_of(const std::string& name) {
    const auto data = data_folder();
    if (!data) return tl::unexpected(data.error());
    const std::filesystem::path zoo = *data / "zoo";
    const std::string ending = ".fp32.step.gz";
    if (std::filesystem::exists(zoo / (name + ending))) return zoo / (name + ending);
    std::vector<std::filesystem::path> found;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(zoo, error)) {
      const std::string file = entry.path().filename().string();
      if (file.starts_with(name) && file.ends_with(ending)) found.push_back(entry.path());
    }
    if (found.size() == 1) return found.front();
    return fail(ErrorCode::kNotFound, "no captured model of that name");
  }

  std::map<std::string, Step> steps_;
};

/// A table's rows of one study.
std::vector<const CsvRow*> rows_of(const Table& table, std::string_view study,
                                   std::string_view number) {
  std::vector<const CsvRow*> rows;
  for (const CsvRow& row : table) {
    if (row["study"] == study && (number.empty() || row["table"] == number)) rows.push_back(&row);
  }
  return rows;
}

/// The GPU that a row names somewhere: "V100-SXM2 16GB (...)" or "2x P100".
Result<Gpu> gpu_of(const Bench& bench, std::string_view machine) {
  std::string text(machine.substr(0, machine.find(" (")));
  if (const auto times = text.find("x "); times != std::string::npos && times <= 2)
    text = text.substr(times + 2);
  return bench.gpus.find(text);
}

Result<Scenario> scenario_of(const Bench& bench, Zoo& zoo, const CsvRow& row, std::int64_t batch) {
  const auto step = zoo.step(first_word(row["model"]));
  if (!step) return tl::unexpected(step.error());
  const auto gpu = gpu_of(bench, row["machine"]);
  if (!gpu) return tl::unexpected(gpu.error());
  Scenario s;
  s.step = *step;
  s.machine.gpu = *gpu;
  s.job.batch = batch;
  s.job.pinned_copy = s.job.overlapped_copy = true;
  s.sample = sample_cost_given(kPictureCost, {Bytes(kPictureBytes), 2}, bench.knowledge.loader);
  s.loader.batch = batch;
  return s;
}

// --- the thesis's epochs ------------------------------------------------------------------------

void add_epoch(Bench& bench, Zoo& zoo, const CsvRow& row, Measure& epochs, Measure& busy) {
  const std::string label = std::string(row["model"]) + ", " + std::string(row["setting"]);
  auto s = scenario_of(bench, zoo, row, number_after(row["setting"], "batch"));
  if (!s) {
    epochs.unserved.push_back({label, s.error().message});
    return;
  }
  s->loader.workers = static_cast<int>(number_after(row["setting"], "workers"));
  s->loader.persistent = true;
  s->machine.host.cores = s->loader.workers;
  s->dataset_samples = kImageNet;
  const auto f = forecast(*s, bench.knowledge);
  if (!f) {
    epochs.unserved.push_back({label, f.error().text()});
    return;
  }
  const auto band = [](const Figure& figure) {
    return Band{1 - figure.low / figure.value, figure.high / figure.value - 1};
  };
  const std::string model(row["model"]);
  epochs.pairs.push_back({model, label, number(row, "value"), f->epoch_s.value, band(f->epoch_s)});
  const double measured = decimal_after(row["note"], "GPU utilisation");
  if (measured > 0)
    busy.pairs.push_back({model, label, measured, 100 * f->gpu_busy.value, band(f->gpu_busy)});
}

std::vector<Measure> thesis_epochs(Bench& bench, Zoo& zoo, const Table& table) {
  Measure epochs, busy;
  epochs.name = "input/thesis-epochs";
  epochs.what = "Tables 5.3 to 5.5: seconds an epoch";
  busy.name = "input/thesis-utilisation";
  busy.what = "the same rows: GPU utilisation in percent";
  for (const char* number_of_table : {"5.3", "5.4", "5.5"}) {
    for (const CsvRow* row : rows_of(table, "thesis-cnn", number_of_table)) {
      if ((*row)["metric"] == "seconds") add_epoch(bench, zoo, *row, epochs, busy);
    }
  }
  epochs.score = score(epochs.pairs);
  busy.score = score(busy.pairs);
  epochs.notes.emplace_back(
      "assumed: one GPU (the rates fit one V100, not four), fp32, ImageNet's 1,281,167 pictures at "
      "224 px, 4.4 ms of CPU time each, as many cores as workers, storage that keeps up");
  return {std::move(epochs), std::move(busy)};
}

// --- the thesis's settings ----------------------------------------------------------------------

struct SettingRow {
  std::string model;
  double dram_gb = 0;
  std::int64_t batch = 0;
  int workers = 0;
};

std::vector<SettingRow> setting_rows(const Table& table) {
  std::vector<SettingRow> rows;
  for (const CsvRow* row : rows_of(table, "thesis-cnn", "5.6")) {
    rows.push_back({std::string((*row)["model"]), decimal_after((*row)["machine"], "DRAM"),
                    number_after((*row)["setting"], "batch"),
                    static_cast<int>(number(*row, "value"))});
  }
  return rows;
}

/// B_m: the thesis's own estimate for 16 GB (its Table 5.1); 0: none.
std::int64_t estimated_largest(const Table& table, const std::string& model) {
  for (const CsvRow* row : rows_of(table, "thesis-cnn", "5.1")) {
    if ((*row)["model"] == model && (*row)["metric"] == "estimated")
      return static_cast<std::int64_t>(number(*row, "value"));
  }
  return 0;
}

/// The rule's batch with the table's own workers, a loader that keeps up, and a sample of `bytes`.
double batch_by_rule(const Table& table, const SettingRow& row, double bytes) {
  ThesisLimits limits;
  limits.dram = Bytes(std::llround(row.dram_gb * 1e9));
  limits.sample = Bytes(std::llround(bytes * row.workers));
  limits.largest_batch = estimated_largest(table, row.model);
  const ThesisTimes keeps_up{[](std::int64_t) { return Nanos{}; },
                             [](std::int64_t) { return kSecond; }};
  const auto answer = thesis_rule(limits, keeps_up);
  return answer ? static_cast<double>(answer->batch) : 0;
}

Measure settings_with(const Table& table, const std::vector<SettingRow>& rows, double bytes,
                      std::size_t left_out) {
  Measure measure;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i == left_out) continue;
    const std::string label = rows[i].model + ", " + std::to_string(std::lround(rows[i].dram_gb)) +
                              " GB, " + std::to_string(rows[i].workers) + " workers";
    measure.pairs.push_back({rows[i].model,
                             label,
                             static_cast<double>(rows[i].batch),
                             batch_by_rule(table, rows[i], bytes),
                             {}});
  }
  measure.score = score(measure.pairs);
  return measure;
}

std::vector<Measure> thesis_settings(const Table& table) {
  const std::vector<SettingRow> rows = setting_rows(table);
  if (rows.empty()) return {};
  // The row with the least memory is the one that memory certainly bounds.
  const auto least = std::min_element(
      rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.dram_gb < b.dram_gb; });
  const double implied =
      least->dram_gb * 1e9 / (static_cast<double>(least->batch) * least->workers);
  Measure by_row =
      settings_with(table, rows, implied, static_cast<std::size_t>(least - rows.begin()));
  by_row.name = "input/thesis-settings";
  by_row.what = "Table 5.6: batch by W B I < DRAM and B <= B_m, I from its first row of least DRAM";
  by_row.notes.push_back("I = " + std::to_string(std::lround(implied * 1e-6)) +
                         " MB a sample, fitted on " + least->model +
                         "; W as printed, B_m by Table 5.1, a loader that keeps up");
  Measure by_bytes = settings_with(table, rows, kPictureBytes, rows.size());
  by_bytes.name = "input/thesis-settings-float-pictures";
  by_bytes.what = "the same with I = a float picture of 224 px (0.6 MB): DRAM then never limits";
  return {std::move(by_row), std::move(by_bytes)};
}

// --- pinned memory ------------------------------------------------------------------------------

/// Extra time of an epoch without pinned memory, in percent of the time with it, when the training
/// process loads by itself at `load` a sample.
double extra_without_pinning(const Scenario& s, const StepTime& time, Nanos load, bool serial) {
  LoaderSettings settings;
  settings.batch = s.job.batch;
  settings.workers = 0;
  SampleCost sample = s.sample;
  sample.cpu = {load};
  Consumer pinned = consumer_of(s, time);
  settings.pin = true;
  const HostShare host{.cores = 8};
  const double with = simulate_loader(settings, sample, host, pinned).samples_per_s;
  settings.pin = false;
  Consumer pageable = pinned;
  pageable.step += pageable_copy(sample.batch_bytes(settings.batch));
  if (serial) pageable.consumption = Consumption::kBlocking;
  const double without = simulate_loader(settings, sample, host, pageable).samples_per_s;
  return 100 * (with / without - 1);
}

struct Extras {
  std::vector<double> copy, serial;
  std::vector<std::string> words;
};

/// Loading that explains the epochs of a table: all its models take about the same time, so what they
/// share is the loader; the fastest epoch bounds it.
Extras extras_of(Bench& bench, Zoo& zoo, const Table& table, Measure& measure) {
  Extras extras;
  std::vector<const CsvRow*> epochs;
  double fastest = 0;
  for (const CsvRow* row : rows_of(table, "hpc-pytorch", "I")) {
    if ((*row)["metric"] != "minutes") continue;
    epochs.push_back(row);
    const double minutes = number(*row, "value");
    fastest = fastest == 0 ? minutes : std::min(fastest, minutes);
  }
  const Nanos load = kSecond * (fastest * kSecondsAMinute / kCifar);
  for (const CsvRow* row : epochs) {
    const auto s = scenario_of(bench, zoo, *row, kUnstatedBatch);
    const auto time =
        s ? step_time_of(*s, bench.knowledge) : Result<StepTime>(tl::unexpected(s.error()));
    if (!time) {
      measure.unserved.push_back({std::string((*row)["model"]), time.error().message});
      continue;
    }
    extras.copy.push_back(extra_without_pinning(*s, *time, load, false));
    extras.serial.push_back(extra_without_pinning(*s, *time, load, true));
    extras.words.push_back(std::string((*row)["model"]) + " " +
                           std::to_string(std::lround(extras.serial.back())) + " %");
  }
  return extras;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

std::vector<Measure> pinned_memory(Bench& bench, Zoo& zoo, const Table& table) {
  Measure measure;
  measure.name = "input/hpc-pinned-memory";
  measure.what = "extra time of an epoch without pinned memory, percent, mean of the models";
  const Extras extras = extras_of(bench, zoo, table, measure);
  for (const CsvRow* row : rows_of(table, "hpc-pytorch", "text")) {
    if ((*row)["metric"] != "extra_time_pct" || extras.serial.empty()) continue;
    measure.pairs.push_back(
        {"pinned", std::string((*row)["setting"]), number(*row, "value"), mean(extras.serial), {}});
  }
  measure.score = score(measure.pairs);
  measure.shares.emplace_back("percent by the copy alone", mean(extras.copy));
  measure.shares.emplace_back("percent if the copy also waits for the step", mean(extras.serial));
  std::string words = "by model, if the copy also waits for the step: ";
  for (std::size_t i = 0; i < extras.words.size(); ++i)
    words += (i > 0 ? ", " : "") + extras.words[i];
  measure.notes.push_back(std::move(words));
  measure.notes.emplace_back(
      "assumed: batch 64, pictures resized to 224 px, loaded by the training process, at what the "
      "fastest epoch of Table I allows a sample");
  return {std::move(measure)};
}

// --- threads ------------------------------------------------------------------------------------

/// Samples a second with so many loading threads, each on a core of its own.
double rate_with(int threads, Nanos sample, Nanos step, std::int64_t batch, int gpus) {
  LoaderSettings settings;
  settings.batch = batch;
  settings.workers = threads / gpus;
  settings.pin = false;
  const SampleCost cost = sample_cost_given(sample, {Bytes(kPictureBytes), 1}, {});
  return gpus * simulate_loader(settings, cost,
                                {.cores = static_cast<double>(threads), .ranks = gpus}, step)
                    .samples_per_s;
}

/// Cost of a sample with which `more` threads are `ratio` times as fast as `fewer`.
Nanos cost_for(double ratio, int fewer, int more, Nanos step, std::int64_t batch) {
  Nanos low{1e3}, high{1e9};  // a microsecond to a second
  for (int i = 0; i < 60; ++i) {
    const Nanos middle{std::sqrt(low.count() * high.count())};
    const double at =
        rate_with(more, middle, step, batch, 1) / rate_with(fewer, middle, step, batch, 1);
    (at < ratio ? low : high) = middle;
  }
  return low;
}

/// Fewest threads that give all but a hundredth of the rate of many.
int saturation(Nanos sample, Nanos step, std::int64_t batch, int gpus) {
  constexpr int kMany = 64;
  constexpr double kAll = 0.99;
  const double best = rate_with(kMany, sample, step, batch, gpus);
  for (int threads = gpus; threads < kMany; threads += gpus) {
    if (rate_with(threads, sample, step, batch, gpus) >= kAll * best) return threads;
  }
  return kMany;
}

struct ThreadRow {
  const CsvRow* row = nullptr;
  Nanos step;
};

std::vector<Measure> thread_scaling(Bench& bench, Zoo& zoo, const Table& table) {
  Measure measure;
  measure.name = "input/threads";
  measure.what = "ratio of throughput at 30 and at 8 CPU threads; threads that saturate a GPU";
  std::vector<ThreadRow> ratios, saturated;
  for (const CsvRow* row : rows_of(table, "system-resources", {})) {
    const std::string_view what = (*row)["what"];
    const bool by_threads = what.find("threads") != std::string_view::npos;
    const bool saturates = what.find("saturates") != std::string_view::npos;
    const std::string label = std::string(what) + ", " + std::string((*row)["model"]) + ", " +
                              std::string((*row)["machine"]);
    if (!by_threads && !saturates) {
      measure.unserved.push_back({label, "says how the GPU scales, not the loader"});
      continue;
    }
    const auto s = scenario_of(bench, zoo, *row, kUnstatedBatch);
    const auto time =
        s ? step_time_of(*s, bench.knowledge) : Result<StepTime>(tl::unexpected(s.error()));
    if (!time) {
      measure.unserved.push_back({label, time.error().message});
      continue;
    }
    (by_threads ? ratios : saturated).push_back({row, time->total});
  }
  if (ratios.empty()) return {std::move(measure)};
  // One unknown, the cost of a sample, from the row with the largest ratio; the others are forecast.
  const auto steepest =
      std::max_element(ratios.begin(), ratios.end(), [](const auto& a, const auto& b) {
        return number(*a.row, "value") < number(*b.row, "value");
      });
  constexpr int kFewer = 8, kMore = 30;  // of the study's figure 2
  const Nanos cost =
      cost_for(number(*steepest->row, "value"), kFewer, kMore, steepest->step, kUnstatedBatch);
  for (const ThreadRow& r : ratios) {
    if (&r == &*steepest) continue;
    measure.pairs.push_back({std::string((*r.row)["model"]),
                             "8 to 30 threads, " + std::string((*r.row)["model"]),
                             number(*r.row, "value"),
                             rate_with(kMore, cost, r.step, kUnstatedBatch, 1) /
                                 rate_with(kFewer, cost, r.step, kUnstatedBatch, 1),
                             {}});
  }
  for (const ThreadRow& r : saturated) {
    const std::string_view machine = (*r.row)["machine"];
    int count = 1;
    std::from_chars(machine.data(), machine.data() + machine.size(), count);
    measure.pairs.push_back(
        {std::string((*r.row)["model"]),
         "threads that saturate " + std::string(machine),
         number(*r.row, "value"),
         static_cast<double>(saturation(cost, r.step, kUnstatedBatch, std::max(1, count))),
         {}});
  }
  measure.score = score(measure.pairs);
  measure.notes.push_back(
      "a sample costs " + std::to_string(std::lround(10 * milliseconds(cost)) / 10.0).substr(0, 4) +
      " ms of CPU time, so that the steepest row (" + std::string((*steepest->row)["model"]) +
      ") comes out; that row is not scored. The saturating rows are of Caffe, "
      "whose samples are decoded already: expect fewer threads");
  return {std::move(measure)};
}

}  // namespace

std::vector<Measure> run_input_studies(Bench& bench, const Table& table) {
  Zoo zoo;
  std::vector<Measure> all;
  for (auto&& measures : {thesis_epochs(bench, zoo, table), thesis_settings(table),
                          pinned_memory(bench, zoo, table), thread_scaling(bench, zoo, table)}) {
    all.insert(all.end(), measures.begin(), measures.end());
  }
  return all;
}

}  // namespace stoker::accuracy
