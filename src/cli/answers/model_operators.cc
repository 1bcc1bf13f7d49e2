#include "cli/answers/model_operators.h"

#include <fmt/core.h>

#include <cstdio>

#include "cli/outside/output.h"
#include "cli/outside/scenario_tools.h"
#include "cli/request/run_request.h"
#include "report/json/answer.h"
#include "report/text/layout.h"
#include "scenario/sources/model_source.h"
#include "work/operator_totals.h"

namespace stoker::cli {
namespace {

constexpr double kGiga = 1e-9;

double bytes_of(const OperatorTotal& total) {
  return static_cast<double>((total.read + total.written).count());
}

void print_table(const Step& step, const std::vector<OperatorTotal>& totals,
                 const std::string& at) {
  std::vector<std::vector<std::string>> table{
      {"operator", "pass", "class", "kernels", "GFLOP", "GB moved"}};
  double flops[2] = {0, 0}, bytes[2] = {0, 0};
  for (const OperatorTotal& t : totals) {
    flops[t.backward] += t.flops.count();
    bytes[t.backward] += bytes_of(t);
    table.push_back({std::string(t.name), t.backward ? "backward" : "forward",
                     std::string(name_of(t.kernel_class)), std::to_string(t.kernels),
                     layout::number(t.flops.count() * kGiga), layout::number(bytes_of(t) * kGiga)});
  }
  for (const bool backward : {false, true}) {
    table.push_back({"all", backward ? "backward" : "forward", "", "",
                     layout::number(flops[backward] * kGiga),
                     layout::number(bytes[backward] * kGiga)});
  }
  print(fmt::format("{}, {}, {}\n", step.name, step.precision, at));
  print(layout::table(table, {0, 1, 2}, ""));
  print(
      "\nBy shapes alone, the optimizer apart; docs/models/operators.md says how each is "
      "counted.\n");
}

void print_json(const Step& step, const Job& job, const std::vector<OperatorTotal>& totals) {
  json::Value list = json::Value::array();
  double flops[2] = {0, 0};
  for (const OperatorTotal& t : totals) {
    flops[t.backward] += t.flops.count();
    list.push_back({{"operator", t.name},
                    {"pass", t.backward ? "backward" : "forward"},
                    {"class", name_of(t.kernel_class)},
                    {"kernels", t.kernels},
                    {"flops", t.flops.count()},
                    {"read_bytes", t.read.count()},
                    {"written_bytes", t.written.count()}});
  }
  json::Value json = answer("stoker-operators-1", STOKER_VERSION);
  json["model"] = step.name;
  json["precision"] = step.precision;
  json["dimensions"] = job.dimensions;
  json["forward_flops"] = flops[0];
  json["backward_flops"] = flops[1];
  json["operators"] = std::move(list);
  print(answer_text(json));
}

}  // namespace

Result<int> print_model_operators(const ModelOperatorsOptions& options) {
  const auto precision = TRY(parse_precision(options.precision));
  const auto model =
      TRY(load_model(options.model, {precision}, ModelDevice::kGpu, {}, scenario_tools()));
  const Step& step = *model.variants.front().step;
  Job job;
  job.dimensions = TRY(parse_dimensions({}, options.dimensions));
  for (const Dimension& d : step.dimensions) job.dimensions.try_emplace(d.name, d.default_value);
  if (options.batch) job.dimensions["batch"] = *options.batch;
  const auto sizes = TRY(Sizes::at(step, job.dimensions));
  const auto totals = operator_totals(step, sizes);
  if (options.json) {
    print_json(step, job, totals);
    return 0;
  }
  std::string at;
  for (const auto& [name, value] : job.dimensions)
    at += (at.empty() ? "" : ", ") + name + " " + std::to_string(value);
  print_table(step, totals, at);
  return 0;
}

}  // namespace stoker::cli
