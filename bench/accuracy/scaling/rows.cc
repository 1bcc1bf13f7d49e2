#include "accuracy/scaling/rows.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace stoker::accuracy {
namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return quantile(values, 0.5);
}

/// Fills in what follows from machine and coefficients.
void prepare(const Bench& bench, ScalingRows& rows) {
  for (ScalingRow& row : rows.rows) {
    row.collective = collective_of(bench, *row.machine.device.gpu());
    row.step = by_collectives(row.setting, row.machine, row.collective);
  }
}

std::string text(const CsvRow& row, std::string_view column) { return std::string(row[column]); }

/// ddp-scaling.csv: throughput or seconds of a step; the fewest GPUs of each family are the base.
struct PublishedTable {
  const Bench& bench;
  const ScalingTables& tables;
  ScalingRows out;

  static std::string family_of(const CsvRow& row) {
    return text(row, "source") + "|" + text(row, "machine") + "|" + text(row, "model") + "|" +
           text(row, "precision") + "|" + text(row, "scaling");
  }
  /// Steps a second of a fleet whose step is that of the base: a time stays, a throughput is
  /// shared.
  static double step_seconds(const CsvRow& row, double samples) {
    const double value = number(row, "value");
    return row["unit"].find("s_per_iter") == 0 ? value : samples / value;
  }

  void add(const std::vector<const CsvRow*>& family) {
    const Workload* workload = tables.find((*family.front())["model"]);
    const auto machine = tables.machine((*family.front())["machine"], bench.gpus);
    const CsvRow* base = nullptr;
    const CsvRow* bare = nullptr;  // without DDP around it
    for (const CsvRow* row : family) {
      if ((*row)["gpus"].find("no_ddp") != std::string_view::npos) bare = row;
      else if (base == nullptr || number(*row, "gpus") < number(*base, "gpus")) base = row;
    }
    for (const CsvRow* row : family) {
      const std::string label = text(*row, "model") + " " + text(*row, "precision") + " " +
                                text(*row, "machine") + " x " + text(*row, "gpus");
      if (row == bare || (row == base && bare == nullptr)) continue;  // the figure that is given
      if (workload == nullptr) {
        out.unserved.push_back({label, "nothing is known of the model: scaling_workloads.json"});
      } else if (!machine) {
        out.unserved.push_back({label, machine.error().text()});
      } else {
        out.rows.push_back(row == base ? wrapped(*row, *bare, *workload, *machine)
                                       : scaled(*row, *base, *workload, *machine));
        out.rows.back().label = label;
        out.rows.back().family = family_of(*row);
        out.rows.back().group = text(*row, "model");
      }
    }
  }

  ScalingRow scaled(const CsvRow& row, const CsvRow& base, const Workload& workload,
                    const Machine& machine) const {
    ScalingRow r{{}, machine, "", "", ""};
    ScalingCase& s = r.setting;
    s.workload = &workload;
    s.half = row["precision"] == "amp" || row["precision"] == "fp16";
    s.strong = row["scaling"] == "strong";
    const double stated = number(row, "batch_per_gpu");
    s.batch = std::isfinite(stated) ? stated : workload.batch;
    s.accumulate = s.strong ? workload.accumulate : 1;
    s.base_gpus = static_cast<int>(number(base, "gpus"));
    s.gpus = static_cast<int>(number(row, "gpus"));
    // Units of one GPU's step; in strong scaling those of the base's GPUs together.
    const double units = std::max(1.0, s.batch) * workload.units_per_sample * s.accumulate;
    s.base_step_s = step_seconds(base, units * s.base_gpus);
    r.truth_s = step_seconds(row, units * (s.strong ? s.base_gpus : s.gpus));
    return r;
  }

  /// One GPU inside DDP, from the same GPU without.
  ScalingRow wrapped(const CsvRow& row, const CsvRow& bare, const Workload& workload,
                     const Machine& machine) const {
    ScalingRow r = scaled(row, row, workload, machine);
    r.setting.base_step_s = number(bare, "value") * (1 + tables.constants.own_cost);
    return r;
  }
};

/// lambda_throughput.csv: many machines of a kind; the base is the median of their one-GPU rows.
struct LambdaTable {
  const Bench& bench;
  const ScalingTables& tables;
  ScalingRows out;
  std::map<std::string, std::vector<double>> one_gpu{};
  std::map<std::string, double> batch{};  ///< per GPU, by GPU, model and precision

  static std::string family_of(const CsvRow& row) {
    return text(row, "source_version") + "|" + text(row, "gpu_label") + "|" + text(row, "model") +
           "|" + text(row, "precision");
  }
  static std::string job_of(const CsvRow& row) {
    return text(row, "gpu_label") + "|" + text(row, "model") + "|" + text(row, "precision");
  }

  void read(const Table& table) {
    for (const CsvRow& row : table) {
      if (number(row, "gpus") == 1 && row["flag"].empty())
        one_gpu[family_of(row)].push_back(number(row, "samples_per_s"));
      const double total = number(row, "batch_total");
      if (std::isfinite(total)) batch.emplace(job_of(row), total / number(row, "gpus"));
    }
    // A batch follows the memory: where a GPU's is not stated, that of the most memory up to its
    // own.
    for (const CsvRow& row : table) {
      if (batch.count(job_of(row)) > 0) continue;
      if (const double found = batch_of_smaller(row, table); found > 0)
        batch.emplace(job_of(row), found);
    }
  }

  double batch_of_smaller(const CsvRow& row, const Table& table) const {
    const auto gpu = bench.gpus.find(row["gpu"]);
    if (!gpu) return 0;
    double best = 0;
    Bytes most;
    for (const CsvRow& other : table) {
      if (other["model"] != row["model"] || other["precision"] != row["precision"]) continue;
      const double total = number(other, "batch_total");
      const auto smaller = bench.gpus.find(other["gpu"]);
      if (!std::isfinite(total) || !smaller || smaller->memory > gpu->memory ||
          smaller->memory <= most)
        continue;
      most = smaller->memory;
      best = total / number(other, "gpus");
    }
    return best;
  }

  void add(const CsvRow& row) {
    const std::string label = text(row, "model") + " " + text(row, "precision") + " " +
                              text(row, "gpu_label") + " x " + text(row, "gpus");
    const Workload* workload = tables.find(row["model"]);
    const auto base = one_gpu.find(family_of(row));
    const auto samples = batch.find(job_of(row));
    const auto machine = tables.machine(row["gpu"], bench.gpus);
    const auto refuse = [&](std::string why) { out.unserved.push_back({label, std::move(why)}); };
    if (!row["flag"].empty()) return refuse("the table's flag: " + text(row, "flag"));
    if (row["gpu"].empty()) return refuse("the table names no GPU of the catalogue");
    if (!machine) return refuse(machine.error().text());
    if (workload == nullptr) return refuse("nothing is known of the model: scaling_workloads.json");
    if (base == one_gpu.end()) return refuse("no row of one GPU");
    if (samples == batch.end()) return refuse("no row states the batch");
    ScalingRow r{{}, *machine, text(row, "gpu"), family_of(row), label};
    ScalingCase& s = r.setting;
    s.workload = workload;
    s.half = row["precision"] == "fp16";
    s.batch = samples->second;
    s.gpus = static_cast<int>(number(row, "gpus"));
    const double units = s.batch * workload->units_per_sample;
    s.base_step_s = units / median(base->second);
    r.truth_s = units * s.gpus / number(row, "samples_per_s");
    out.rows.push_back(std::move(r));
  }
};

}  // namespace

/// The coefficients as they ship, with the fabric's rates of one GPU.
CollectiveCoefficients collective_of(const Bench& bench, const Gpu& gpu) {
  const auto coefficients = bench.knowledge.timing.for_device(gpu);
  return coefficients ? coefficients->collective : CollectiveCoefficients();
}

ScalingRows published_rows(const Bench& bench, const ScalingTables& tables, const Table& table) {
  PublishedTable published{bench, tables, {}};
  std::map<std::string, std::vector<const CsvRow*>> families;
  for (const CsvRow* row : sampled(bench, table))
    families[PublishedTable::family_of(*row)].push_back(row);
  for (const auto& [name, family] : families) published.add(family);
  prepare(bench, published.out);
  return std::move(published.out);
}

ScalingRows lambda_rows(const Bench& bench, const ScalingTables& tables, const Table& table) {
  LambdaTable lambda{bench, tables, {}};
  lambda.read(table);
  for (const CsvRow* row : sampled(bench, table)) {
    if (number(*row, "gpus") > 1) lambda.add(*row);
  }
  prepare(bench, lambda.out);
  return std::move(lambda.out);
}

}  // namespace stoker::accuracy
