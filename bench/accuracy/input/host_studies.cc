// Pinned memory of a study on HPC systems and thread scaling of a study of system resources.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "accuracy/input/studies.h"
#include "plan/input_plan.h"

namespace stoker::accuracy::studies {
namespace {

/// Pictures of CIFAR's training set.
constexpr double kCifar = 50'000;
constexpr double kSecondsAMinute = 60;
/// The batch of the rows that state none.
constexpr std::int64_t kUnstatedBatch = 64;

/// How a loop without pinned batches brings them to the GPU.
enum class Unpinned {
  kPageable,  ///< .to(device): waits for the step before, after the next batch was loaded, and
              ///< copies
  kInLoop,    ///< .pin_memory().to(device, non_blocking=True) in the loop
  kSerial     ///< a loop that loads only when the step is over: all overlap lost
};

/// Extra time of an epoch over one with pinned memory, in percent, when `workers` load at `load` a
/// sample.
double extra_time(const Scenario& s, const StepTime& time, Nanos load, int workers, Unpinned how) {
  LoaderSettings settings;
  settings.batch = s.job.batch;
  settings.workers = workers;
  SampleCost sample = s.sample;
  sample.cpu = {load};
  const HostShare host{.cores = 8};
  const Consumer pinned = consumer_of(s, time);
  settings.pin = true;
  const double with = simulate_loader(settings, sample, host, pinned).samples_per_s;
  settings.pin = false;
  Consumer loop = pinned;
  const double bytes = sample.batch_bytes(settings.batch);
  const Nanos copy =
      how == Unpinned::kInLoop ? kSecond * (bytes / host.pin_bandwidth) : pageable_copy(bytes);
  loop.host_cpu += copy;
  if (how != Unpinned::kInLoop) loop.step += copy;
  if (how == Unpinned::kSerial) loop.consumption = Consumption::kBlocking;
  const double without = simulate_loader(settings, sample, host, loop).samples_per_s;
  return 100 * (with / without - 1);
}

struct Extras {
  Nanos load;  ///< of a sample
  std::vector<double> pageable, in_loop, serial;
  std::vector<std::string> words;
};

/// Loading that explains the epochs of a table: all its models take about the same time, so what
/// they share is the loader; the fastest epoch bounds it.
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
  extras.load = load;
  for (const CsvRow* row : epochs) {
    const auto s = scenario_of(bench, zoo, *row, kUnstatedBatch);
    const auto time =
        s ? step_time_of(*s, bench.knowledge) : Result<StepTime>(tl::unexpected(s.error()));
    if (!time) {
      measure.unserved.push_back({std::string((*row)["model"]), time.error().message});
      continue;
    }
    // Loaded by the training process or by one worker: whichever gains more by pinning.
    const auto most = [&](Unpinned how) {
      return std::max(extra_time(*s, *time, load, 0, how), extra_time(*s, *time, load, 1, how));
    };
    extras.pageable.push_back(most(Unpinned::kPageable));
    extras.in_loop.push_back(most(Unpinned::kInLoop));
    extras.serial.push_back(extra_time(*s, *time, load, 0, Unpinned::kSerial));
    char words[96];
    std::snprintf(words, sizeof words, "%s %.1f and %.0f %% (step %.1f ms a sample)",
                  std::string((*row)["model"]).c_str(), extras.pageable.back(),
                  extras.serial.back(),
                  milliseconds(time->total) / static_cast<double>(kUnstatedBatch));
    extras.words.emplace_back(words);
  }
  return extras;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

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

}  // namespace

std::vector<Measure> pinned_memory(Bench& bench, Zoo& zoo, const Table& table) {
  Measure measure;
  measure.name = "input/hpc-pinned-memory";
  measure.what = "extra time of an epoch without pinned memory, percent, mean of the models";
  const Extras extras = extras_of(bench, zoo, table, measure);
  for (const CsvRow* row : rows_of(table, "hpc-pytorch", "text")) {
    if ((*row)["metric"] != "extra_time_pct" || extras.serial.empty()) continue;
    measure.pairs.push_back({"pinned",
                             std::string((*row)["setting"]),
                             number(*row, "value"),
                             mean(extras.pageable),
                             {}});
  }
  measure.score = score(measure.pairs);
  measure.shares.emplace_back("percent, pinned in the loop", mean(extras.in_loop));
  measure.shares.emplace_back("percent, were all overlap lost", mean(extras.serial));
  std::string words = "pageable, and were all overlap lost: ";
  for (std::size_t i = 0; i < extras.words.size(); ++i)
    words += (i > 0 ? ", " : "") + extras.words[i];
  measure.notes.push_back(std::move(words));
  char assumed[192];
  std::snprintf(assumed, sizeof assumed,
                "assumed: batch 64, pictures resized to 224 px, loaded by the training process or "
                "one worker in "
                "%.1f ms each, as the fastest epoch of Table I allows",
                milliseconds(extras.load));
  measure.notes.emplace_back(assumed);
  return {std::move(measure)};
}

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
  // One unknown, the cost of a sample, from the row with the largest ratio; the others are
  // forecast.
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
      ") comes out; that row is not scored. The saturating rows are of Caffe, another loader: what "
      "can agree is the shape, twice the threads for twice the GPUs");
  return {std::move(measure)};
}

}  // namespace stoker::accuracy::studies
