#include <cstdio>
#include <filesystem>

#include "base/setting.h"
#include "base/text.h"
#include "cli/arguments/version.h"
#include "cli/outside/measuring.h"
#include "cli/outside/output.h"
#include "cli/outside/python.h"
#include "cli/outside/scenario_tools.h"
#include "cli/verbs/validate.h"
#include "device/host/this_cpu.h"
#include "device/host/this_host.h"
#include "device/resolve/resolve.h"
#include "evidence/calibration/calibrated_machine.h"
#include "evidence/training/learned_machine.h"
#include "evidence/training/observation.h"
#include "evidence/training/run_forecaster.h"
#include "report/model/page_report.h"
#include "report/model/training_report.h"
#include "scenario/sources/model_source.h"

namespace stoker::cli {
namespace fs = std::filesystem;
namespace {

/// Rows to compare, and where they came from.
struct Measured {
  TrainingRuns rows;
  Diagnostics data;
  bool now = false;  ///< measured by this call: they are news for the accuracy log
};

bool is_file(const std::string& what) {
  std::error_code ignored;
  return fs::is_regular_file(what, ignored);
}

/// Not FILE.py, which is code to run.
bool names_rows(const std::string& what) {
  return names_an_observation(what) || what.ends_with(".json");
}

/// The loop's own recording knows its model by the class alone.
Result<Measured> read_loop(const ValidateOptions& o) {
  auto observation = TRY(read_observation(o.what));
  if (o.model.empty()) {
    return fail(ErrorCode::kUsage,
                "an observation does not hold the model" +
                    (observation.model_class.empty() ? "" : " (" + observation.model_class + ")") +
                    "; name it as `stoker predict` takes it",
                "--model");
  }
  MeasuredRun& run = observation.runs.runs.front();
  run.model = o.model;
  run.name = o.model.substr(o.model.rfind(':') + 1);
  if (run.precision.empty()) run.precision = "fp32";
  return Measured{std::move(observation.runs), std::move(observation.data), true};
}

Result<Measured> read_given(const ValidateOptions& o, std::span<const Binding> bindings) {
  TRY(refuse_measuring("validate", bindings,
                       "nothing is measured where a file is given; leave it out"));
  if (names_an_observation(o.what)) return read_loop(o);
  if (!o.model.empty())
    return fail(ErrorCode::kUsage, "is of an observation (*.obs.jsonl); rows name their models",
                "--model");
  auto rows = TRY(read_training_runs(o.what));
  return Measured{std::move(rows), {}, false};
}

/// "cpu" or "cuda" for the machine that was named; empty: let the measuring look.
Result<std::string> device_for(const ValidateOptions& o) {
  if (!o.device.empty() || o.machine.empty()) return o.device;
  const auto machine = TRY(resolve_machine(o.machine, "", this_host()));
  return std::string(machine.device.cpu() != nullptr ? "cpu" : "cuda");
}

/// Trains the model for some steps into `rows`; 0, or the exit code to leave with.
Result<int> measure_training(const ValidateOptions& o, const fs::path& rows) {
  std::vector<std::string> arguments{"training-runs", "--end-with-parent", "--out", rows.string()};
  for (const std::string& model : split(o.what, ',')) {
    const auto spec = TRY(spec_of(model, python_package()));
    arguments.push_back(spec);
  }
  const auto device = TRY(device_for(o));
  for (const auto& [flag, value] : {std::pair("--device", device),
                                    {"--budget", o.budget},
                                    {"--batches", o.batches},
                                    {"--threads", o.threads},
                                    {"--precision", o.precision},
                                    {"--optimizer", o.optimizer},
                                    {"--data", o.data}}) {
    if (!value.empty()) arguments.insert(arguments.end(), {flag, value});
  }
  if (o.compile) arguments.emplace_back("--compile");
  const InterruptsForChild waits;
  return run_python_stoker(arguments, true);
}

/// The machine to forecast: as it was named, else by the measured device's own facts.
Result<std::string> machine_for(const ValidateOptions& o, const TrainingRuns& rows) {
  const std::optional<MeasuredDevice>& device = rows.device;
  if (o.machine.empty()) {
    if (!device || device->name.empty())
      return fail(ErrorCode::kUsage, "the file does not name its device; say which", "--machine");
    if (!device->cpu) return device->name;
    const auto here = this_cpu(this_host());
    if (!here || here->name != device->name) {
      return fail(ErrorCode::kUsage,
                  "give the machine file of the CPU that was measured, " + device->name +
                      ": this machine has another" + (here ? ", " + here->name : ""),
                  "--machine");
    }
    return std::string("cpu");
  }
  const auto machine = TRY(resolve_machine(o.machine, "", this_host()));
  if (!device || device->name.empty()) return o.machine;
  const auto catalogue = TRY(GpuCatalogue::load());
  MachineFile described;
  described.device = machine.device;
  if (auto s = check_same_device(described, o.machine, *device, catalogue); !s) {
    return fail(ErrorCode::kBadInput,
                "is not the machine that was measured, " + device->name +
                    ": forecasts of it cannot be judged by these runs; name the file of that "
                    "machine, or leave --machine out",
                o.machine);
  }
  return o.machine;
}

std::vector<AccuracyEntry> entries_of(const TrainingValidation& v, const Measured& measured,
                                      const std::string& machine) {
  const auto text = [&](const char* key) {
    const auto found = measured.rows.provenance.find(key);
    return found == measured.rows.provenance.end() ? std::string() : found->second;
  };
  std::vector<AccuracyEntry> entries;
  const std::string now = utc_now();
  for (const ComparedRun& run : v.runs) {
    for (const ComparedFigure& f : run.figures) {
      AccuracyEntry e;
      e.date = now;
      e.model = run.run.name;
      e.machine = machine;
      e.device = measured.rows.device && measured.rows.device->cpu ? "cpu" : "gpu";
      e.stoker = kVersion;
      e.torch = text("torch");
      e.driver = text("driver");
      e.batch = run.run.batch;
      e.threads = run.run.threads;
      e.precision = run.run.precision;
      e.figure = f.name;
      e.unit = f.unit;
      e.forecast = f.forecast.value;
      e.low = f.forecast.low;
      e.high = f.forecast.high;
      e.fact = f.fact;
      e.basis = f.forecast.basis;
      e.disturbed = !run.counts();
      entries.push_back(std::move(e));
    }
  }
  return entries;
}

/// What cannot be remembered is said once; the answer does not depend on it.
void remember(const std::vector<AccuracyEntry>& entries, Diagnostics& data) {
  const fs::path log = accuracy_log_path();
  if (log.empty() || entries.empty()) return;
  if (const auto s = append_accuracy(log, entries); !s)
    data.add("accuracy_log", Severity::kWarning,
             "not added to the accuracy log: " + s.error().text());
}

/// Folds into the machine file what these runs teach, if anything.
Status learn(const ValidateOptions& o, const TrainingValidation& v, TrainingSaid& said) {
  auto file = TRY(read_machine_file(o.machine));
  LearnedMachine learned = learned_machine(std::move(file), v.runs, utc_now());
  said.learning = std::move(learned.learning);
  if (!said.learning->helps) return {};
  said.learned_into = o.machine;
  return write_machine_file(o.machine, learned.file);
}

Result<int> report(const ValidateOptions& o, Measured measured) {
  const auto machine = TRY(machine_for(o, measured.rows));
  auto validation =
      TRY(validate_training(measured.rows.runs, forecaster_on(machine, scenario_tools())));
  for (ComparedRun& run : validation.runs) run.not_forecast = with_flags(run.not_forecast);
  TrainingSaid said;
  said.version = kVersion;
  said.device = measured.rows.device ? measured.rows.device->name : "";
  said.machine = o.machine;
  said.machine_file = names_a_file(machine);
  if (const auto resolved = resolve_machine(machine, "", this_host()))
    said.calibrated = resolved->device->calibrated;
  said.complete = measured.rows.complete;
  said.rows_given = !measured.now;
  said.rule = measured.rows.rule;
  for (const char* key : {"date", "torch", "cuda", "driver", "python"}) {
    const auto found = measured.rows.provenance.find(key);
    if (found == measured.rows.provenance.end() || found->second.empty()) continue;
    said.measured_with.push_back(std::string(key) == "date" ? found->second
                                                            : key + (" " + found->second));
  }
  said.data = measured.data;
  if (measured.now) remember(entries_of(validation, measured, machine), said.data);
  if (o.learn) {
    TRY(learn(o, validation, said));
  }
  if (!o.html.empty()) TRY(write_page(o.html, training_validation_page(validation, said)));
  const std::string text = o.json ? training_validation_json(validation, said)
                                  : training_validation_text(validation, said);
  print(text);
  return validation.failures.empty() ? 0 : 1;
}

Status check_learn(const ValidateOptions& o) {
  if (!o.learn) return {};
  if (names_a_file(o.machine) && is_file(o.machine)) return {};
  return fail(ErrorCode::kUsage,
              "corrects a machine file; name it with --machine FILE.toml (`stoker calibrate` makes "
              "one)",
              "--learn");
}

}  // namespace

Result<int> validate_training_steps(const ValidateOptions& o, std::span<const Binding> bindings) {
  TRY(check_learn(o));
  if (names_rows(o.what)) {
    auto given = TRY(read_given(o, bindings));
    return report(o, std::move(given));
  }
  if (!o.model.empty())
    return fail(ErrorCode::kUsage, "is of an observation (*.obs.jsonl); leave it out", "--model");
  if (o.what.ends_with(".gz")) {
    return fail(ErrorCode::kBadInput,
                "a step file cannot be trained; name the model's code: FILE.py:FUNCTION, "
                "torchvision:NAME or timm:NAME",
                o.what);
  }
  UnnamedRows unnamed;
  const auto rows = TRY(rows_path(o.output, "-o", unnamed));
  const auto code = TRY(measure_training(o, rows));
  if (code != 0) return code;  // the child has said why
  auto measured = TRY(read_training_runs(rows));
  return report(o, Measured{std::move(measured), {}, true});
}

Result<int> show_accuracy_log(const ValidateOptions& o) {
  constexpr std::size_t kNewest = 200;
  const fs::path log = accuracy_log_path();
  if (log.empty())
    return fail(ErrorCode::kNotFound, "no folder for it is known; set XDG_STATE_HOME or HOME",
                "--log");
  const auto entries = TRY(read_accuracy(log, kNewest));
  const std::string text =
      o.json ? accuracy_json(entries, log, kVersion) : accuracy_text(entries, log);
  print(text);
  return 0;
}

}  // namespace stoker::cli
