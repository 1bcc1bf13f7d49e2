#include "accuracy/common/bench.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>
#include <string>

namespace stoker::accuracy {

double number(const CsvRow& row, std::string_view column) {
  const std::string_view text = row[column];
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return value;
}

const CoefficientFile& Bench::timing_for(Unseen unseen, const std::string& gpu) const {
  const CoefficientFile* fold = nullptr;
  if (unseen == Unseen::kShape) fold = folds.shapes();
  if (unseen == Unseen::kGpu) fold = folds.without(gpu);
  return fold != nullptr ? *fold : knowledge.timing;
}

std::vector<const CsvRow*> sampled(const Bench& bench, const Table& table,
                                   std::string_view column) {
  std::set<std::string> names;
  for (const CsvRow& row : table) names.insert(std::string(row[column]));
  std::vector<std::string> order(names.begin(), names.end());
  const auto key = [&](const std::string& name) { return hash_of(name, bench.seed); };
  std::sort(order.begin(), order.end(),
            [&](const auto& a, const auto& b) { return key(a) < key(b); });
  if (bench.sample > 0 && static_cast<std::int64_t>(order.size()) > bench.sample) {
    order.resize(static_cast<std::size_t>(bench.sample));
  }
  const std::set<std::string> chosen(order.begin(), order.end());
  std::vector<const CsvRow*> rows;
  for (const CsvRow& row : table) {
    if (chosen.count(std::string(row[column])) > 0) rows.push_back(&row);
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const CsvRow* a, const CsvRow* b) { return (*a)[column] < (*b)[column]; });
  return rows;
}

Status check_parameters(const Step& step, double millions) {
  constexpr double kTolerance = 0.02;  // tables round, and heads differ by a few classes
  if (std::isnan(millions)) return {};
  double count = 0;
  for (const Parameter& p : step.parameters) {
    double elements = 1;
    for (const Polynomial& size : step.types[index(p.type)].shape)
      elements *= static_cast<double>(size.evaluate({}).value_or(0));
    count += elements;
  }
  count /= 1e6;
  if (std::abs(count / millions - 1) <= kTolerance) return {};
  return fail(ErrorCode::kUnsupported,
              "today's library gives that name another number of parameters");
}

}  // namespace stoker::accuracy
