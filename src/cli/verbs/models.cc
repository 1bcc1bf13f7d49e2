#include <fmt/core.h>

#include <cstdio>
#include <memory>

#include "base/text.h"
#include "cli/answers/model_operators.h"
#include "cli/outside/output.h"
#include "cli/verbs/verbs.h"
#include "report/json/answer.h"
#include "report/text/layout.h"
#include "scenario/sources/model_source.h"
#include "step/sizes.h"
#include "step/step_reader.h"
#include "work/work.h"

namespace stoker::cli {
namespace {

struct Row {
  std::string name, input;
  StepTotals totals;  ///< at batch 1
  std::int64_t parameters = 0;
};

std::string input_text(const Step& step) {
  std::string text;
  for (const Dimension& d : step.dimensions) {
    if (d.name != "batch")
      text += (text.empty() ? "" : ", ") + d.name + " " + std::to_string(d.default_value);
  }
  if (!text.empty() || step.inputs.empty()) return text;
  const auto sizes = Sizes::at(step, {});
  const auto shape = sizes->shape(step.inputs[0].type);
  for (std::size_t i = 1; i < shape.size(); ++i)
    text += (i > 1 ? "x" : "") + std::to_string(shape[i]);
  return text;
}

Result<Row> row_of(const std::string& name) {
  const auto path = TRY(zoo_path(name, "fp32"));
  const auto step = TRY(read_step_file(path));
  const std::int64_t batch = std::max<std::int64_t>(2, step.dimensions[0].minimum);
  const auto sizes = TRY(Sizes::at(step, {{"batch", batch}}));
  Row row{name, input_text(step), totals_of(step, sizes), 0};
  const double per_sample = 1.0 / static_cast<double>(batch);
  row.totals.forward = row.totals.forward * per_sample;
  row.totals.backward = row.totals.backward * per_sample;
  row.totals.activations = Bytes(row.totals.activations.count() / batch);
  for (const Parameter& p : step.parameters) row.parameters += sizes.elements(p.type);
  return row;
}

Result<int> run_models(const ModelOperatorsOptions& o) {
  if (!o.model.empty()) return print_model_operators(o);
  if (o.batch || !o.dimensions.empty())
    return fail(ErrorCode::kUsage, "sizes go with one model: name it", "models");
  const auto names = TRY(zoo_names());
  json::Value list = json::Value::array();
  std::vector<std::vector<std::string>> table{
      {"model", "input", "parameters", "GFLOP fwd", "GFLOP bwd", "activations/sample"}};
  for (const std::string& name : names) {
    const auto row = TRY(row_of(name));
    table.push_back(
        {name, row.input, fmt::format("{:.1f} M", static_cast<double>(row.parameters) * 1e-6),
         layout::number(row.totals.forward.count() * 1e-9),
         layout::number(row.totals.backward.count() * 1e-9), human_bytes(row.totals.activations)});
    list.push_back({{"name", name},
                    {"input", row.input},
                    {"parameters", row.parameters},
                    {"forward_flops_per_sample", row.totals.forward.count()},
                    {"backward_flops_per_sample", row.totals.backward.count()},
                    {"activation_bytes_per_sample", row.totals.activations.count()}});
  }
  if (o.json) {
    json::Value json = answer("stoker-models-1", STOKER_VERSION);
    json["models"] = std::move(list);
    print(answer_text(json));
    return 0;
  }
  print(layout::table(table, {0, 1}, ""));
  print(
      "\nEach in fp32, amp-fp16 and amp-bf16; figures of one sample in fp32.\n"
      "Your own: torchvision:NAME, timm:NAME, hf:ORG/NAME, FILE.py:FUNCTION (stoker capture "
      "--help).\n");
  return 0;
}

}  // namespace

Command models_command() {
  auto o = std::make_shared<ModelOperatorsOptions>();
  return {"models",
          "the models that ship captured; of one model, FLOPs and bytes of its operators",
          "  stoker models\n  stoker models gpt2 --batch 8 --dim seq_len=512\n",
          {{"model", &o->model},
           {"batch", &o->batch},
           {"dim", &o->dimensions},
           {"precision", &o->precision},
           {"json", &o->json}},
          [o] { return run_models(*o); }};
}

}  // namespace stoker::cli
