#include <cstdio>
#include <filesystem>

#include "base/files.h"
#include "cli/outside/measuring.h"
#include "cli/outside/output.h"
#include "cli/outside/python.h"
#include "cli/verbs/validate.h"
#include "evidence/input/validation.h"
#include "forecast/knowledge.h"
#include "report/model/input_validation_report.h"
#include "report/model/page_report.h"

namespace stoker::cli {
namespace fs = std::filesystem;
namespace {

constexpr Bytes kMostKept = 256 * kMiB;

bool is_pipeline(const std::string& what) {
  return what.find(".py:") != std::string::npos || what.ends_with(".py");
}

/// Runs real DataLoaders into `rows`; 0, or the exit code to leave with.
Result<int> measure_input(const ValidateOptions& o, const fs::path& rows) {
  std::vector<std::string> arguments{"loader-runs", "--end-with-parent", "--out", rows.string()};
  if (!o.what.empty()) arguments.insert(arguments.end(), {"--pipeline", o.what});
  if (o.quick) arguments.emplace_back("--quick");
  if (!o.budget.empty()) arguments.insert(arguments.end(), {"--budget", o.budget});
  const InterruptsForChild waits;
  return run_python_stoker(arguments, true);
}

Result<int> report(const ValidateOptions& o, const fs::path& rows) {
  const auto knowledge = TRY(load_knowledge());
  const auto runs = TRY(read_loader_runs(rows));
  const auto validation = TRY(validate_input(runs, knowledge.loader));
  if (!o.html.empty())
    TRY(write_page(o.html, input_validation_page(validation, runs, STOKER_VERSION)));
  const std::string text = o.json ? validation_json(validation, runs, STOKER_VERSION)
                                  : validation_text(validation, runs);
  print(text);
  return validation.failures.empty() ? 0 : 1;
}

/// What was measured into a file without a name, where it is not enough for an answer: put where it
/// can be gone on with. Says where; "" when that fails.
std::string kept_rows(const fs::path& rows) {
  std::error_code error;
  fs::create_directories(cache_folder(), error);
  const fs::path kept = cache_folder() / "input-runs.json";
  const auto text = read_file(rows, kMostKept);
  // A file in which no probe has ended yet holds nothing to go on with.
  if (error || !text || text->find("\"speed_at_probe\"") == std::string::npos) return {};
  if (!write_file(kept, *text)) return {};
  return "; what was measured is kept in " + kept.string() +
         ": copy it and go on with -o, which continues a file that is there";
}

}  // namespace

Result<int> validate_input_pipeline(const ValidateOptions& o, std::span<const Binding> bindings) {
  const bool measures = o.what.empty() || is_pipeline(o.what);
  if (!measures) {
    if (!refuse_measuring("validate", bindings, "")) {
      return fail(ErrorCode::kUsage,
                  "nothing is measured where a rows file is given: leave out --quick, --budget and "
                  "-o",
                  o.what);
    }
    return report(o, o.what);
  }
  UnnamedRows unnamed;
  const auto rows = TRY(rows_path(o.output, "-o", unnamed));
  const auto code = TRY(measure_input(o, rows));
  if (code != 0) {  // the child has said why
    const std::string kept = o.output.empty() ? kept_rows(rows) : "";
    if (!kept.empty()) say(stderr, "stoker: ended early" + kept + "\n");
    return code;
  }
  auto answer = report(o, rows);
  if (!answer && o.output.empty()) answer.error().message += kept_rows(rows);
  return answer;
}

}  // namespace stoker::cli
