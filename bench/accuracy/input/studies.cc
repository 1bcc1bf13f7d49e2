// The input rows of the studies that Stoker starts from (studies.csv): epochs and settings of a
// thesis on storage bottlenecks, pinned memory of a study on HPC systems, thread scaling of a study
// of system resources. Hardly any of their loaders is described, so each measure says what it
// assumes; docs/models/recommendations.md tells what follows.

#include "accuracy/input/studies.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <vector>

#include "accuracy/input/measures.h"
#include "base/files.h"
#include "plan/thesis_rule.h"
#include "step/step_reader.h"

namespace stoker::accuracy {
namespace studies {
namespace {

/// CPU time of an ImageNet picture in Pillow and torchvision, one core of a 2.3 GHz Xeon
/// (the profile of 1,000 ImageNet pictures that loader_validation_test.cc holds).
constexpr Nanos kPictureCost = 4.4 * kMillisecond;

std::string first_word(std::string_view text) {
  return std::string(text.substr(0, text.find(' ')));
}

/// The GPU that a row names somewhere: "V100-SXM2 16GB (...)" or "2x P100".
Result<Gpu> gpu_of(const Bench& bench, std::string_view machine) {
  std::string text(machine.substr(0, machine.find(" (")));
  if (const auto times = text.find("x "); times <= 2) text = text.substr(times + 2);
  return bench.gpus.find(text);
}

}  // namespace

double number_after(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  if (at == std::string_view::npos) return 0;
  double value = 0;
  const char* begin = text.data() + std::min(text.size(), at + word.size() + 1);
  std::from_chars(begin, text.data() + text.size(), value);
  return value;
}

std::vector<const CsvRow*> rows_of(const Table& table, std::string_view study,
                                   std::string_view number) {
  std::vector<const CsvRow*> rows;
  for (const CsvRow& row : table) {
    if (row["study"] == study && (number.empty() || row["table"] == number)) rows.push_back(&row);
  }
  return rows;
}

Result<const Step*> Zoo::step(const std::string& name) {
  if (const auto known = steps_.find(name); known != steps_.end()) return &known->second;
  const auto path = TRY(file_of(name));
  auto read = TRY(read_step_file(path));
  return &steps_.emplace(name, std::move(read)).first->second;
}

Result<std::filesystem::path> Zoo::file_of(const std::string& name) {
  const auto data = TRY(data_folder());
  const std::filesystem::path zoo = data / "zoo";
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

Result<Scenario> scenario_of(const Bench& bench, Zoo& zoo, const CsvRow& row, std::int64_t batch) {
  const auto step = TRY(zoo.step(first_word(row["model"])));
  const auto gpu = TRY(gpu_of(bench, row["machine"]));
  Scenario s;
  s.step = step;
  s.machine.device = gpu;
  s.job.batch = batch;
  s.job.copy = CopyWay::kOverlapped;
  s.sample = sample_cost_given(kPictureCost, {Bytes(kPictureBytes), 2}, bench.knowledge.loader);
  s.loader.batch = batch;
  return s;
}

}  // namespace studies

namespace {

using namespace studies;

/// ImageNet's training set.
constexpr std::int64_t kImageNet = 1'281'167;

void add_epoch(Bench& bench, Zoo& zoo, const CsvRow& row, Measure& epochs, Measure& busy) {
  const std::string label = std::string(row["model"]) + ", " + std::string(row["setting"]);
  auto s = scenario_of(bench, zoo, row,
                       static_cast<std::int64_t>(number_after(row["setting"], "batch")));
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
  const double measured = number_after(row["note"], "GPU utilisation");
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

struct SettingRow {
  std::string model;
  double dram_gb = 0;
  std::int64_t batch = 0;
  int workers = 0;
};

std::vector<SettingRow> setting_rows(const Table& table) {
  std::vector<SettingRow> rows;
  for (const CsvRow* row : rows_of(table, "thesis-cnn", "5.6")) {
    rows.push_back({std::string((*row)["model"]), number_after((*row)["machine"], "DRAM"),
                    static_cast<std::int64_t>(number_after((*row)["setting"], "batch")),
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
