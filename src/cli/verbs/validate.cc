#include "cli/verbs/validate.h"

#include <memory>
#include <span>

#include "cli/outside/python.h"
#include "cli/verbs/verbs.h"
#include "scenario/sources/script_model.h"

namespace stoker::cli {
namespace {

/// A script runs for real, and is forecast, in Python's hands (python/stoker/shadow/real_run.py).
Result<int> validate_script(const ValidateOptions& o, std::span<const Binding> bindings) {
  TRY(refuse_all_but("validate", bindings,
                     {"what", "batches", "budget", "device", "machine", "json"},
                     "is not of a script, whose own arguments follow --; leave it out"));
  if (!o.device.empty() && o.device != "cpu")
    return fail(ErrorCode::kUsage, "a script is validated on the CPU: give cpu", "--device");
  std::vector<std::string> words{"validate-script", o.what};
  if (o.json) words.emplace_back("--json");
  if (!o.batches.empty()) words.push_back("--batches=" + o.batches);
  if (!o.budget.empty()) words.push_back("--budget=" + o.budget);
  if (!o.machine.empty()) words.push_back("--machine=" + o.machine);
  words.emplace_back("--");
  words.insert(words.end(), o.script_arguments.begin(), o.script_arguments.end());
  return tl::unexpected(become_python_stoker(words));
}

Result<int> run_validate(const ValidateOptions& o, std::span<const Binding> bindings) {
  if (o.log) {
    TRY(refuse_all_but("validate", bindings, {"log", "json"},
                       "measures nothing, --log shows what was measured before; leave one "
                       "of them out"));
    return show_accuracy_log(o);
  }
  if (o.input) {
    TRY(refuse_given("validate", bindings,
                     {"machine", "device", "batches", "threads", "precision", "compile",
                      "optimizer", "model", "data", "learn"},
                     "is of training steps; leave it out with --input"));
    return validate_input_pipeline(o, bindings);
  }
  if (is_script(o.what)) return validate_script(o, bindings);
  if (!o.script_arguments.empty())
    return fail(ErrorCode::kUsage, "what follows -- is for a training script, FILE.py", o.what);
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
                  "          stoker validate train.py -- --epochs 1\n"
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
                   {"compile", &o->compile},
                   {"optimizer", &o->optimizer},
                   {"data", &o->data},
                   {"model", &o->model},
                   {"learn", &o->learn},
                   {"quick", &o->quick}},
                  {}};
  command.rest = &o->script_arguments;
  command.rest_words = "ARGUMENTS";
  command.run = [o, bindings = command.bindings] { return run_validate(*o, bindings); };
  return command;
}

}  // namespace stoker::cli
