// What more GPUs make of a measured step: published throughput on n GPUs from that on the fewest.

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include "accuracy/common/bench.h"
#include "accuracy/scaling/measures.h"
#include "accuracy/scaling/rows.h"
#include "base/files.h"

namespace stoker::accuracy {
namespace {

using Row = ScalingRow;
using Rows = ScalingRows;

FleetConstants shipped(const Bench& bench, const ScalingTables& tables) {
  const CollectiveCoefficients c = collective_of(bench, Gpu());
  FleetConstants constants = tables.constants;
  constants.straggler_us = c.straggler_wait.count();
  constants.straggler_growth = c.straggler_growth;
  return constants;
}

double predicted(const Row& row, const FleetConstants& constants) {
  return scaled_step(row.setting, row.step, constants, row.collective);
}

using Selected = std::vector<const Row*>;

Selected select(const std::vector<Row>& rows) {
  Selected all;
  for (const Row& row : rows) all.push_back(&row);
  return all;
}

double mean_error(const Selected& rows, const FleetConstants& constants) {
  double sum = 0;
  for (const Row* row : rows) sum += std::abs(predicted(*row, constants) / row->truth_s - 1);
  return rows.empty() ? 0 : sum / static_cast<double>(rows.size());
}

/// Coordinate descent on the logarithms of the constants. Of two sets the first, which has twelve
/// times the rows, weighs three times.
FleetConstants fitted(const std::vector<Selected>& sets, FleetConstants constants) {
  const auto loss = [&](const FleetConstants& trial) {
    double sum = 2 * mean_error(sets.front(), trial);
    for (const Selected& rows : sets) sum += mean_error(rows, trial);
    return sum;
  };
  constexpr std::array<double FleetConstants::*, 4> kFree{
      &FleetConstants::straggler_us, &FleetConstants::straggler_growth, &FleetConstants::uneven,
      &FleetConstants::epoch_start_s};
  double best = loss(constants);
  for (const double step : {3.0, 1.7, 1.3, 1.1, 1.03}) {
    for (bool moved = true; moved;) {
      moved = false;
      for (const auto constant : kFree) {
        for (const double factor : {step, 1 / step}) {
          FleetConstants trial = constants;
          trial.*constant *= factor;
          const double error = loss(trial);
          if (error < best - 1e-7) best = error, constants = trial, moved = true;
        }
      }
    }
  }
  return constants;
}

Selected without(const std::vector<Row>& rows, const std::string& group) {
  Selected others;
  for (const Row& row : rows) {
    if (row.group != group) others.push_back(&row);
  }
  return others;
}

/// Constants fitted without the group of a row.
std::vector<Pair> cross_fitted(const std::vector<Row>& rows, const FleetConstants& from) {
  std::set<std::string> groups;
  for (const Row& row : rows) groups.insert(row.group);
  std::vector<Pair> pairs;
  for (const std::string& group : groups) {
    const Selected others = without(rows, group);
    if (others.empty()) continue;
    const FleetConstants constants = fitted({others}, from);
    for (const Row& row : rows) {
      if (row.group == group)
        pairs.push_back(
            {row.group, row.label, row.truth_s * 1e3, predicted(row, constants) * 1e3, {}});
    }
  }
  return pairs;
}

Rival linear_scaling(const std::vector<Row>& rows) {
  std::vector<Pair> pairs;
  for (const Row& row : rows) {
    const ScalingCase& s = row.setting;
    const double factor = s.strong ? static_cast<double>(s.base_gpus) / s.gpus : 1;
    pairs.push_back({row.group, row.label, row.truth_s, s.base_step_s * factor, {}});
  }
  const Score all = score(pairs);
  return {"linear scaling", all.rows, all.mape, all.mdape, all.p90};
}

/// Whether the better of two counts of a job is told, where throughput per GPU differs by 2 %.
double order_right(const std::vector<Row>& rows, const std::vector<Pair>& pairs) {
  constexpr double kDiffers = 1.02;
  std::map<std::string, std::vector<std::size_t>> families;
  for (std::size_t i = 0; i < rows.size(); ++i) families[rows[i].family].push_back(i);
  double right = 0, all = 0;
  for (const auto& [family, members] : families) {
    for (const std::size_t i : members) {
      for (const std::size_t j : members) {
        if (rows[i].setting.gpus >= rows[j].setting.gpus) continue;
        const double lost = rows[j].truth_s / rows[i].truth_s;
        if (lost < kDiffers && 1 / lost < kDiffers) continue;
        ++all;
        right += (lost > 1) == (pairs[j].predicted > pairs[i].predicted);
      }
    }
  }
  return all > 0 ? 100 * right / all : std::nan("");
}

Measure measured(const Rows& from, const FleetConstants& constants, std::string name,
                 std::string what) {
  Measure m;
  m.name = std::move(name);
  m.what = std::move(what);
  m.unserved = from.unserved;
  for (const Row& row : from.rows)
    m.pairs.push_back(
        {row.group, row.label, row.truth_s * 1e3, predicted(row, constants) * 1e3, {}});
  m.score = score(m.pairs);
  if (m.pairs.empty()) return m;
  m.rival = linear_scaling(from.rows);
  m.cross_fitted = score(cross_fitted(from.rows, constants));
  return m;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return quantile(values, 0.5);
}

/// The same row, were the bus of its machine so fast, and its backward so much slower beside a
/// collective.
Row with_bus(Row row, double bandwidth, double contention) {
  row.machine.device.gpu()->link.clear();
  row.machine.device.gpu()->pcie_bandwidth = bandwidth;
  row.collective.pcie_share = 1;
  row.collective.contention = contention;
  row.step = by_collectives(row.setting, row.machine, row.collective);
  return row;
}

struct Bus {
  double bandwidth = 0, contention = 0;
};

double median_error(const Selected& rows, const FleetConstants& constants, const Bus& bus) {
  std::vector<double> errors;
  for (const Row* row : rows) {
    const double time = predicted(
        bus.bandwidth > 0 ? with_bus(*row, bus.bandwidth, bus.contention) : *row, constants);
    errors.push_back(std::abs(time / row->truth_s - 1));
  }
  return median(std::move(errors));
}

/// What serves these rows of one kind of machine clearly better than the catalogue's fabric; else
/// nothing. Median, since single jobs are off for reasons of their own.
Bus best_bus(const Selected& rows, const FleetConstants& constants) {
  constexpr double kClearly = 0.7;
  constexpr std::array<double, 3> kContentions{0.04, 1,
                                               9};  // none, half and most of the overlap lost
  Bus best;
  double least = kClearly * median_error(rows, constants, {});
  for (const double contention : kContentions) {
    for (double bandwidth = 1e9; bandwidth < 1e11; bandwidth *= 1.5) {
      const double error = median_error(rows, constants, {bandwidth, contention});
      if (error < least) least = error, best = {bandwidth, contention};
    }
  }
  return best;
}

/// The same when the machine's own all-reduce is known, as a run of nccl-tests or of other jobs on
/// it would tell: of each kind of machine one bus, from its rows of the other models.
Measure with_known_fabric(const Rows& from, const FleetConstants& constants) {
  Measure m;
  m.name = "time/scaling-lambda/fabric-known";
  m.what = "the same, the bus of each kind of machine taken from its rows of the other models";
  std::map<std::pair<std::string, const Workload*>, Bus> known;
  for (const Row& row : from.rows) {
    const auto key = std::pair(row.group, row.setting.workload);
    if (known.count(key) == 0) {
      Selected others;
      std::set<std::pair<std::string, int>> seen;  // one row of each job and count tells the bus
      for (const Row& other : from.rows) {
        if (other.group == row.group && other.setting.workload != row.setting.workload &&
            seen.insert({other.family, other.setting.gpus}).second)
          others.push_back(&other);
      }
      known[key] = others.empty() ? Bus() : best_bus(others, constants);
    }
    const Bus& bus = known[key];
    const double time = predicted(
        bus.bandwidth > 0 ? with_bus(row, bus.bandwidth, bus.contention) : row, constants);
    m.pairs.push_back({row.group, row.label, row.truth_s * 1e3, time * 1e3, {}});
  }
  m.score = score(m.pairs);
  return m;
}

/// The spread of machines of one kind: what no forecast from a GPU's name can beat.
double machine_noise(const std::vector<Row>& rows) {
  std::map<std::pair<std::string, int>, std::vector<double>> cells;
  for (const Row& row : rows) cells[{row.family, row.setting.gpus}].push_back(row.truth_s);
  double sum = 0, all = 0;
  for (const auto& [cell, times] : cells) {
    const double middle = median(times);
    for (const double time : times) sum += std::abs(middle / time - 1), ++all;
  }
  return 100 * sum / all;
}

void note_constants(const std::vector<Selected>& sets, const FleetConstants& constants,
                    Measure& m) {
  const FleetConstants best = fitted(sets, constants);
  const std::string of = sets.size() > 1 ? "fitted to both tables: " : "fitted to these rows: ";
  m.shares.push_back({of + "straggler in us", best.straggler_us});
  m.shares.push_back({of + "its growth", best.straggler_growth});
  m.shares.push_back({of + "uneven", best.uneven});
  m.shares.push_back({of + "epoch start in s", best.epoch_start_s});
  m.shares.push_back({of + "error of these rows", 100 * mean_error(sets.front(), best)});
}

Result<Table> read_table(const std::filesystem::path& path) {
  const auto text = TRY(read_file(path, kMiB));
  return parse_csv(text, path.string());
}

void by_model(const std::vector<Pair>& pairs, const std::vector<Row>& rows, Measure& m) {
  std::map<std::string, std::vector<Pair>> groups;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    groups[rows[i].setting.workload->models.front()].push_back(pairs[i]);
    groups["on " + rows[i].machine.device->name].push_back(pairs[i]);
  }
  for (const auto& [name, of] : groups) {
    const Score s = score(of);
    m.notes.push_back(name + ": " + std::to_string(s.rows) + " rows, " +
                      std::to_string(s.mape).substr(0, 5) + " %");
  }
}

}  // namespace

std::vector<Measure> run_published_scaling(Bench& bench, const Table& table) {
  const auto tables = load_scaling_tables();
  if (!tables) return or_note(tl::unexpected(tables.error()), "time/ddp-scaling");
  const Rows published = published_rows(bench, *tables, table);
  const FleetConstants constants = shipped(bench, *tables);
  Measure m = measured(published, constants, "time/ddp-scaling",
                       "step time on up to 256 GPUs from that on the fewest (of PyTorch's table: "
                       "without DDP, then 1)");
  m.shares.push_back({"order of counts right", order_right(published.rows, m.pairs)});
  by_model(m.pairs, published.rows, m);
  note_constants({select(published.rows)}, constants, m);
  return {m};
}

std::vector<Measure> run_lambda_scaling(Bench& bench, const Table& table) {
  const auto tables = load_scaling_tables();
  if (!tables) return or_note(tl::unexpected(tables.error()), "time/scaling-lambda");
  const Rows lambda = lambda_rows(bench, *tables, table);
  const FleetConstants constants = shipped(bench, *tables);
  Measure m = measured(lambda, constants, "time/scaling-lambda",
                       "step time on 2 to 8 GPUs of a machine from the median of its kind on one");
  m.shares.push_back({"spread of machines of a kind", machine_noise(lambda.rows)});
  m.shares.push_back({"order of counts right", order_right(lambda.rows, m.pairs)});
  by_model(m.pairs, lambda.rows, m);
  // What ships is fitted to both tables.
  std::vector<Selected> sets{select(lambda.rows)};
  Rows published;
  if (const auto other = read_table(bench.data / "ddp-scaling.csv")) {
    published = published_rows(bench, *tables, *other);
    sets.push_back(select(published.rows));
  }
  note_constants(sets, constants, m);
  return {m, with_known_fabric(lambda, constants)};
}

}  // namespace stoker::accuracy
