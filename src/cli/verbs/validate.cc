#include "cli/verbs/validate.h"

#include <memory>
#include <utility>

#include "cli/arguments/unused_flags.h"
#include "cli/verbs/verbs.h"

namespace stoker::cli {
namespace {

Result<int> run(const ValidateOptions& o, const std::vector<Flag>& flags) {
  if (o.log) {
    TRY(refuse_all_but(flags, {"--log", "--json"},
                       "measures nothing, --log shows what was measured before; leave one "
                       "of them out"));
    return show_accuracy_log(o);
  }
  if (o.input) {
    TRY(refuse_given(flags,
                     {"--machine", "--device", "--batches", "--threads", "--precision",
                      "--optimizer", "--model", "--data", "--learn"},
                     "is of training steps; leave it out with --input"));
    return validate_input_pipeline(o);
  }
  if (o.what.empty()) {
    return fail(ErrorCode::kUsage,
                "say what to validate: stoker validate MODEL (training steps), or stoker validate "
                "--input (data loading)",
                "validate");
  }
  if (o.quick)
    return fail(ErrorCode::kUsage, "is of --input; give --budget 30s instead", "--quick");
  return validate_training_steps(o);
}

}  // namespace

Command validate_command() {
  auto o = std::make_shared<ValidateOptions>();
  Command command{
      "validate",
      "set forecasts beside real training steps, or real DataLoaders, on this machine",
      "Examples: stoker validate resnet18 --machine cpu.toml --threads 1,2\n"
      "          stoker validate train.py:model --batches 8,16,32 -o rows.json\n"
      "          stoker validate rows.json --machine cpu.toml --learn\n"
      "          stoker validate loop.obs.jsonl --model train.py:model\n"
      "          stoker validate --input train.py:loader\n"
      "          stoker validate --log\n"
      "Exit code 1: a forecast's band did not hold.",
      {{"what",
        "MODEL to train for some steps, a rows file or an observation (nothing is measured); with "
        "--input FILE.py:FUNCTION or a rows file",
        &o->what},
       {"--input", "the input pipeline, by real DataLoaders", &o->input},
       {"--budget", "time to spend; default 2m; of --input 20m, 3m for your own, 2m with --quick",
        &o->budget},
       {"-o,--output", "rows file to write, continued when it exists", &o->output},
       {"--log", "show what was forecast and measured on this machine before", &o->log},
       {"--json", "the comparison as JSON on stdout: docs/reference/json.md", &o->json}},
      {}};
  const auto append = [&](std::vector<Flag> more) {
    for (Flag& flag : more) command.flags.push_back(std::move(flag));
  };
  append(grouped(
      "Training steps",
      {{"--machine", "machine file or GPU that is forecast; default: the measured device's facts",
        &o->machine},
       {"--device", "cpu, cuda or cuda:N; default: the machine's, else a GPU that is there",
        &o->device},
       {"--batches", "auto (default: the model's own, half and twice), or 4,8,16", &o->batches},
       {"--threads", "of a CPU: 1,2; default: PyTorch's own number", &o->threads},
       {"--precision", "one or several of fp32, amp-fp16, amp-bf16, bf16, fp16; default fp32",
        &o->precision},
       {"--optimizer", "sgd, adam, adamw, rmsprop or adagrad; default: the captured, else sgd",
        &o->optimizer},
       {"--data", "FILE.py:FUNCTION that returns your DataLoader; default: made-up samples",
        &o->data},
       {"--model", "of an observation: what `stoker predict` calls the model", &o->model},
       {"--learn", "correct the machine file by these runs, if that helps held-out ones",
        &o->learn}}));
  append(
      grouped("Input pipeline", {{"--quick", "few points, one short repetition each", &o->quick}}));
  command.run = [o, flags = command.flags] { return run(*o, flags); };
  return command;
}

}  // namespace stoker::cli
