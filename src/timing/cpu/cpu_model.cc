#include "timing/cpu/cpu_model.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "timing/learned/measured_operator.h"

namespace stoker {
namespace {

/// Rows of a group whose left-out error is so many standard deviations are believed less: an
/// operator that something else disturbed, or that takes another algorithm at this one size.
constexpr double kFar = 4, kFarNoise = 4;
/// Added to every row's noise where others used the machine meanwhile.
constexpr double kDisturbedNoise = 0.05;
/// Groups whose mean a group without rows needs for it to count in full.
constexpr double kGroupsForMean = 2;
/// Rows of one group that a process takes; beyond, the factorisation would be felt.
constexpr std::size_t kMostRows = 600;

/// A process that believes far rows less.
ResidualProcess fitted(std::vector<ProcessRow> rows, double mean) {
  const ProcessPrior prior;
  ResidualProcess process(rows, prior, mean);
  const auto errors = process.left_out();
  bool any = false;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (std::abs(errors[i].mean) < kFar * std::sqrt(errors[i].variance)) continue;
    rows[i].noise = kFarNoise * std::max(rows[i].noise, std::abs(errors[i].mean) / kFar);
    any = true;
  }
  return any ? ResidualProcess(std::move(rows), prior, mean) : process;
}

/// What makes two kernels the same to rules and rows.
std::vector<double> key_of(const Kernel& kernel, const ProcessPoint& point) {
  std::vector<double> key(point.features.begin(), point.features.end());
  key.insert(key.end(),
             {static_cast<double>(point.function), static_cast<double>(kernel.kernel_class),
              kernel.flops.count(), static_cast<double>(kernel.read.count()),
              static_cast<double>(kernel.written.count()), static_cast<double>(kernel.elements),
              static_cast<double>(kernel.unit), static_cast<double>(kernel.phase)});
  return key;
}

}  // namespace

Result<std::shared_ptr<const CpuModel>> CpuModel::make(const Cpu& cpu) {
  std::shared_ptr<CpuModel> model(new CpuModel());
  model->cpu_ = cpu;
  const Calibration* measured = cpu.calibration.get();
  if (measured == nullptr) return std::shared_ptr<const CpuModel>(std::move(model));
  model->disturbed_ = measured->disturbed;
  std::map<int, std::pair<std::unique_ptr<const CpuProcessor>, Seconds>> processors;
  for (std::size_t i = 0; i < measured->operators.size(); ++i) {
    const MeasuredOperator& row = measured->operators[i];
    const auto kernel = TRY(cpu_kernel_of(row, cpu));
    TRY(check_physics(row, kernel, cpu));
    const int threads = threads_of(cpu, row.threads);
    auto& [processor, call] = processors[threads];
    if (processor == nullptr) {
      processor = std::make_unique<const CpuProcessor>(cpu, threads);
      call = cpu_host(cpu, threads, 1).call;
    }
    const CpuCost rule =
        cpu_cost(kernel, row.function, *processor, {row.warm ? CpuData::kWarm : CpuData::kCold});
    Row entry{{point_of(kernel, row.function, threads, rule, model->names_), 0,
               row.spread + (measured->disturbed ? kDisturbedNoise : 0)},
              threads,
              i};
    entry.row.value = std::log(as_seconds(Micros(row.time_us)) / (call + rule.total()));
    model->groups_[static_cast<std::size_t>(group_of(kernel.kernel_class))].push_back(entry);
    ++model->rows_;
    ++model->rows_of_[entry.row.point.function];
  }
  double sum = 0, with_rows = 0;
  for (const std::vector<Row>& group : model->groups_) {
    if (group.empty()) continue;
    double own = 0;
    for (const Row& row : group) own += row.row.value;
    sum += own / static_cast<double>(group.size());
    ++with_rows;
  }
  model->mean_ = sum / (with_rows + kGroupsForMean);
  return std::shared_ptr<const CpuModel>(std::move(model));
}

std::vector<const CpuModel::Row*> CpuModel::rows_for(CpuGroup group, int threads) const {
  const std::vector<Row>& all = groups_[static_cast<std::size_t>(group)];
  const bool measured =
      std::ranges::any_of(all, [&](const Row& row) { return row.threads == threads; });
  std::vector<const Row*> chosen;
  for (const Row& row : all) {
    if (measured ? row.threads == threads : true) chosen.push_back(&row);
  }
  if (chosen.size() > kMostRows) {  // the first are the most valuable (docs/guide/calibrating.md)
    std::ranges::stable_sort(chosen, {}, [](const Row* row) { return row->number; });
    chosen.resize(kMostRows);
  }
  return chosen;
}

ResidualProcess CpuModel::process_of(CpuGroup group, int threads) const {
  std::vector<ProcessRow> rows;
  for (const Row* row : rows_for(group, threads)) rows.push_back(row->row);
  return fitted(std::move(rows), mean_);
}

std::vector<CpuModel::LeftOut> CpuModel::left_out() const {
  std::vector<LeftOut> all;
  for (std::size_t g = 0; g < kCpuGroups; ++g) {
    std::set<int> threads;
    for (const Row& row : groups_[g]) threads.insert(row.threads);
    for (const int t : threads) {
      const auto rows = rows_for(static_cast<CpuGroup>(g), t);
      const auto errors = process_of(static_cast<CpuGroup>(g), t).left_out();
      for (std::size_t i = 0; i < errors.size(); ++i) {
        all.push_back({rows[i]->number, static_cast<CpuGroup>(g), rows[i]->row.value,
                       errors[i].mean, std::sqrt(errors[i].variance)});
      }
    }
  }
  return all;
}

CpuEstimator::CpuEstimator(const CpuModel& model, int threads, double step_bytes)
    : model_(model),
      processor_(model.cpu_, threads),
      call_(cpu_host(model.cpu_, threads, 1).call),
      step_bytes_(step_bytes),
      names_(model.names_) {}

const ResidualProcess& CpuEstimator::process(CpuGroup group) {
  auto& process = processes_[static_cast<std::size_t>(group)];
  if (process == nullptr) {
    process =
        std::make_unique<const ResidualProcess>(model_.process_of(group, processor_.threads()));
  }
  return *process;
}

CpuEstimate CpuEstimator::estimate(const Kernel& kernel, std::string_view function) {
  const CpuCost rule =
      cpu_cost(kernel, function, processor_, {CpuData::kStep, kernel.phase, step_bytes_});
  const ProcessPoint point = point_of(kernel, function, processor_.threads(), rule, names_);
  std::vector<double> key = key_of(kernel, point);
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  CpuEstimate e;
  e.factor = std::exp(process(group_of(kernel.kernel_class)).at(point).mean);
  const Seconds total = (call_ + rule.total()) * e.factor;
  e.time = as_nanos(std::max(Seconds(0), total - call_));
  e.compute = std::min(e.time, as_nanos(rule.compute) * e.factor);
  e.memory = std::min(e.time, as_nanos(rule.memory) * e.factor);
  e.point = point;
  e.has_rule = rule.has_rule;
  e.has_rows = model_.rows_of_.contains(point.function);
  known_.emplace(std::move(key), e);
  return e;
}

void CpuEstimator::count(const Kernel& kernel, const CpuEstimate& estimate, double times) {
  const ProcessPoint& point = estimate.point;
  const Nanos time = times * (estimate.time + as_nanos(call_));
  Counted& counted = counted_[static_cast<std::size_t>(group_of(kernel.kernel_class))];
  const auto [entry, fresh] = counted.known.emplace(key_of(kernel, point), counted.points.size());
  if (fresh) {
    counted.points.push_back(point);
    counted.weights.push_back(0);
  }
  counted.weights[entry->second] += time.count();
  all_ += time;
  if (estimate.has_rows) measured_ += time;
}

Nanos CpuEstimator::spread() {
  double variance = 0;
  for (std::size_t g = 0; g < kCpuGroups; ++g) {
    if (counted_[g].points.empty()) continue;
    variance +=
        process(static_cast<CpuGroup>(g)).variance_of_sum(counted_[g].points, counted_[g].weights);
  }
  return Nanos(std::sqrt(variance));
}

double CpuEstimator::measured_share() const { return all_ > Nanos(0) ? measured_ / all_ : 0; }

}  // namespace stoker
