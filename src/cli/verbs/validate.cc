#include "cli/verbs/validate.h"

#include <memory>
#include <span>
#include <utility>

#include "cli/verbs/verbs.h"

namespace stoker::cli {
namespace {

Result<int> run(const ValidateOptions& o, std::span<const Binding> bindings) {
  if (o.log) {
    TRY(refuse_all_but("validate", bindings, {"log", "json"},
                       "measures nothing, --log shows what was measured before; leave one "
                       "of them out"));
    return show_accuracy_log(o);
  }
  if (o.input) {
    TRY(refuse_given("validate", bindings,
                     {"machine", "device", "batches", "threads", "precision", "optimizer", "model",
                      "data", "learn"},
                     "is of training steps; leave it out with --input"));
    return validate_input_pipeline(o, bindings);
  }
  if (o.what.empty()) {
    return fail(ErrorCode::kUsage,
                "say what to validate: stoker validate MODEL (training steps), or stoker validate "
                "--input (data loading)",
                "validate");
  }
  if (o.quick)
    return fail(ErrorCode::kUsage, "is of --input; give --budget 30s instead", "--quick");
  return validate_training_steps(o, bindings);
}

}  // namespace

Command validate_command() {
  auto o = std::make_shared<ValidateOptions>();
  Command command{"validate",
                  "set forecasts beside real training steps, or real DataLoaders, on this machine",
                  "Examples: stoker validate resnet18 --machine cpu.toml --threads 1,2\n"
                  "          stoker validate train.py:model --batches 8,16,32 -o rows.json\n"
                  "          stoker validate rows.json --machine cpu.toml --learn\n"
                  "          stoker validate loop.obs.jsonl --model train.py:model\n"
                  "          stoker validate --input train.py:loader\n"
                  "          stoker validate --log\n"
                  "Exit code 1: a forecast's band did not hold.",
                  {{"what", &o->what},
                   {"input", &o->input},
                   {"budget", &o->budget},
                   {"output", &o->output},
                   {"log", &o->log},
                   {"html", &o->html},
                   {"json", &o->json},
                   {"machine", &o->machine},
                   {"device", &o->device},
                   {"batches", &o->batches},
                   {"threads", &o->threads},
                   {"precision", &o->precision},
                   {"optimizer", &o->optimizer},
                   {"data", &o->data},
                   {"model", &o->model},
                   {"learn", &o->learn},
                   {"quick", &o->quick}},
                  {}};
  command.run = [o, bindings = command.bindings] { return run(*o, bindings); };
  return command;
}

}  // namespace stoker::cli
