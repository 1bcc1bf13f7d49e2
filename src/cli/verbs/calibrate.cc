#include <unistd.h>

#include <filesystem>
#include <memory>
#include <span>

#include "base/text.h"
#include "cli/arguments/version.h"
#include "cli/outside/measuring.h"
#include "cli/outside/output.h"
#include "cli/outside/python.h"
#include "cli/verbs/verbs.h"
#include "device/host/this_cpu.h"
#include "device/host/this_host.h"
#include "device/resolve/resolve.h"
#include "report/model/calibration_report.h"
#include "scenario/sources/model_source.h"
#include "timing/step/coefficient_file.h"

namespace stoker::cli {
namespace fs = std::filesystem;
namespace {

struct CalibrateArguments {
  std::string rows_file, device, budget, models, threads, output, rows;
  bool json = false;
};

/// The file that is to be updated, if there is one. What would be refused after a minute of
/// measuring is refused before it.
Result<std::optional<MachineFile>> earlier_file(const CalibrateArguments& o, const Host& here,
                                                const GpuCatalogue& catalogue) {
  if (o.output.empty())
    return fail(ErrorCode::kUsage, "give the machine file: -o MACHINE.toml", "-o");
  if (!names_a_file(o.output))
    return fail(ErrorCode::kUsage, "must end in .toml: --gpu takes it for a machine file by that",
                "-o " + o.output);
  std::error_code error;
  const fs::path folder = fs::absolute(o.output, error).parent_path();
  if (!fs::is_directory(folder, error) || access(folder.c_str(), W_OK) != 0)
    return fail(ErrorCode::kIo, "is no folder that can be written to; name another file with -o",
                folder.string());
  if (!fs::exists(o.output, error)) return std::nullopt;
  auto file = TRY(read_machine_file(o.output));
  if (o.device == "cpu" && o.rows_file.empty()) {
    if (const auto cpu = this_cpu(here)) {
      MeasuredDevice device{.cpu = true, .name = cpu->name, .cores = cpu->cores};
      device.l1 = cpu->l1;
      device.l2 = cpu->l2;
      device.memory = cpu->memory;
      TRY(check_same_device(file, o.output, device, catalogue));
    }
  }
  return std::optional<MachineFile>(std::move(file));
}

/// "resnet18,gpt2" -> the specs that Python captures.
Result<std::string> specs_of(const std::string& models) {
  std::string specs;
  if (models.empty()) return specs;
  for (const std::string& model : split(models, ',')) {
    if (model.empty())
      return fail(ErrorCode::kUsage, "has an empty name; write resnet18,train.py:model", "--for");
    const auto spec = TRY(spec_of(model, python_package()));
    specs += (specs.empty() ? "" : ",") + spec;
  }
  return specs;
}

/// Runs the measuring into `rows`; 0, or the exit code to leave with.
Result<int> measure_device(const CalibrateArguments& o, const fs::path& rows) {
  std::vector<std::string> arguments{"calibrate-runs", "--end-with-parent", "--out", rows.string()};
  const auto specs = TRY(specs_of(o.models));
  for (const auto& [flag, value] : {std::pair("--device", o.device),
                                    {"--budget", o.budget},
                                    {"--for", specs},
                                    {"--threads", o.threads}}) {
    if (!value.empty()) arguments.insert(arguments.end(), {flag, value});
  }
  const InterruptsForChild waits;
  return run_python_stoker(arguments, true);
}

Status check_given_rows(const CalibrateArguments& o, std::span<const Binding> bindings) {
  if (refuse_measuring("calibrate", bindings, "")) return {};
  return fail(
      ErrorCode::kUsage,
      "nothing is measured where a rows file is given: leave out --device, --budget, --for, "
      "--threads and --rows",
      o.rows_file);
}

/// Refuses measurements that every forecast would refuse: one operator faster than physics allows.
Status check_for_forecasts(const MachineFile& file, const fs::path& rows) {
  if (!file.device) return {};
  const auto shipped = TRY(CoefficientFile::load_shipped());
  const auto coefficients = shipped.for_device(*file.device);
  if (coefficients) return {};
  return fail(ErrorCode::kBadInput,
              "what was measured cannot be (" + coefficients.error().text() +
                  "); nothing is written. Calibrate again",
              rows.string());
}

Result<int> finish(const CalibrateArguments& o, const fs::path& rows,
                   const std::optional<MachineFile>& before, const CalibrationContext& context) {
  const auto runs = TRY(read_calibration_runs(rows));
  if (before) {
    TRY(check_same_device(*before, o.output, runs.device, *context.catalogue));
  }
  const CalibratedMachine machine = calibrated_machine(runs, before, context);
  // What is written must be what forecasts can read.
  if (const auto again =
          parse_machine_file(machine_file_text(machine.file), o.output, *context.catalogue);
      !again)
    return fail(ErrorCode::kBadInput,
                "what was measured makes no machine file (" + again.error().text() +
                    "); nothing is written",
                rows.string());
  else TRY(check_for_forecasts(*again, rows));
  TRY(write_machine_file(o.output, machine.file));
  const CalibrationSaid said{o.output, kVersion, !o.rows_file.empty()};
  const std::string text =
      o.json ? calibration_json(machine, runs, said) : calibration_text(machine, runs, said);
  print(text);
  return 0;
}

/// "cuda:0", "cpu": what --device takes, in the place of the rows file.
bool is_device(const std::string& word) {
  return word == "cpu" || word == "cuda" || word.starts_with("cuda:") ||
         word.find_first_not_of("0123456789") == std::string::npos;
}

Result<int> run_calibrate(const CalibrateArguments& o, std::span<const Binding> bindings) {
  std::error_code ignored;
  if (!o.rows_file.empty() && is_device(o.rows_file) && !fs::exists(o.rows_file, ignored))
    return fail(ErrorCode::kUsage,
                "is no rows file; the device is named by --device: stoker calibrate -o "
                "MACHINE.toml --device " +
                    (o.rows_file.starts_with('c') ? "" : std::string("cuda:")) + o.rows_file,
                o.rows_file);
  const auto catalogue = TRY(GpuCatalogue::load());
  CalibrationContext context{&catalogue, this_host(), kVersion};
  if (!o.rows_file.empty()) {
    TRY(check_given_rows(o, bindings));
  }
  const auto before = TRY(earlier_file(o, context.here, catalogue));
  if (!o.rows_file.empty()) return finish(o, o.rows_file, before, context);
  UnnamedRows unnamed;
  const auto rows = TRY(rows_path(o.rows, "--rows", unnamed));
  const auto code = TRY(measure_device(o, rows));
  if (code != 0) return code;  // the child has said why
  return finish(o, rows, before, context);
}

}  // namespace

Command calibrate_command() {
  auto o = std::make_shared<CalibrateArguments>();
  Command command{"calibrate",
                  "measure this machine's GPU or CPU into the machine file that forecasts use",
                  "Examples: stoker calibrate -o cpu.toml --device cpu --for resnet18\n"
                  "          stoker calibrate -o gpu.toml --device cuda:0 --budget 3m\n"
                  "          stoker predict resnet18 --gpu cpu.toml",
                  {{"rows-file", &o->rows_file},
                   {"output", &o->output},
                   {"device", &o->device},
                   {"budget", &o->budget},
                   {"for", &o->models},
                   {"threads", &o->threads},
                   {"rows", &o->rows},
                   {"json", &o->json}},
                  {}};
  command.run = [o, bindings = command.bindings] { return run_calibrate(*o, bindings); };
  return command;
}

}  // namespace stoker::cli
