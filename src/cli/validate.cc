#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "cli/python.h"
#include "cli/verbs.h"
#include "forecast/knowledge.h"
#include "input/validation.h"
#include "report/validation_text.h"

namespace stoker::cli {
namespace fs = std::filesystem;
namespace {

struct Options {
  bool input = false, quick = false, json = false;
  std::string what, budget, output;
};

/// A rows file without a name, for runs that are not kept: it is gone however this process ends.
class UnnamedRows {
 public:
  UnnamedRows() = default;
  /// False: there is no folder for temporary files.
  [[nodiscard]] bool make() {
    std::error_code error;
    const fs::path folder = fs::temp_directory_path(error);
    if (error) return false;
    std::string path = (folder / "stoker-validate-XXXXXX").string();
    descriptor_ = mkstemp(path.data());  // the child inherits it
    if (descriptor_ >= 0) unlink(path.c_str());
    return descriptor_ >= 0;
  }
  ~UnnamedRows() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  UnnamedRows(const UnnamedRows&) = delete;
  UnnamedRows& operator=(const UnnamedRows&) = delete;
  [[nodiscard]] fs::path path() const { return "/dev/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_ = -1;
};

/// While it lives Ctrl-C is the child's to answer: it puts its own things away and then ends.
class InterruptsForChild {
 public:
  InterruptsForChild() : before_(std::signal(SIGINT, [](int) {})) {}  // a handler, so exec resets it
  ~InterruptsForChild() { std::signal(SIGINT, before_); }
  InterruptsForChild(const InterruptsForChild&) = delete;
  InterruptsForChild& operator=(const InterruptsForChild&) = delete;

 private:
  void (*before_)(int);
};

bool is_pipeline(const std::string& what) {
  return what.find(".py:") != std::string::npos || what.ends_with(".py");
}

/// Runs real DataLoaders into `rows`; 0, or the exit code to leave with.
Result<int> measure(const Options& o, const fs::path& rows) {
  std::vector<std::string> arguments{"loader-runs", "--end-with-parent", "--out", rows.string()};
  if (!o.what.empty()) arguments.insert(arguments.end(), {"--pipeline", o.what});
  if (o.quick) arguments.emplace_back("--quick");
  if (!o.budget.empty()) arguments.insert(arguments.end(), {"--budget", o.budget});
  const InterruptsForChild waits;
  return run_python_stoker(arguments, true);
}

Result<int> report(const Options& o, const fs::path& rows) {
  const auto knowledge = load_knowledge();
  if (!knowledge) return tl::unexpected(knowledge.error());
  const auto runs = read_loader_runs(rows);
  if (!runs) return tl::unexpected(runs.error());
  const auto validation = validate_input(*runs, knowledge->loader);
  if (!validation) return tl::unexpected(validation.error());
  const std::string text =
      o.json ? validation_json(*validation, *runs) : validation_text(*validation, *runs);
  std::fputs(text.c_str(), stdout);
  return validation->failures.empty() ? 0 : 1;
}

Result<int> run(const Options& o) {
  if (!o.input) {
    return fail(ErrorCode::kUsage, "say what to validate: stoker validate --input", "validate");
  }
  const bool measures = o.what.empty() || is_pipeline(o.what);
  if (!measures) {
    if (o.quick || !o.budget.empty() || !o.output.empty()) {
      return fail(ErrorCode::kUsage,
                  "nothing is measured where a rows file is given: leave out --quick, --budget and "
                  "-o",
                  o.what);
    }
    return report(o, o.what);
  }
  UnnamedRows unnamed;
  if (o.output.empty() && !unnamed.make())
    return fail(ErrorCode::kIo, "cannot make a temporary file; give -o ROWS.json, or mend TMPDIR");
  const fs::path rows = o.output.empty() ? unnamed.path() : fs::path(o.output);
  const auto code = measure(o, rows);
  if (!code) return tl::unexpected(code.error());
  if (*code != 0) return *code;  // the child has said why
  return report(o, rows);
}

}  // namespace

Command validate_command() {
  auto o = std::make_shared<Options>();
  return {"validate",
          "set forecasts of the input pipeline beside real DataLoaders on this machine",
          "Examples: stoker validate --input --quick\n"
          "          stoker validate --input train.py:loader -o rows.json\n"
          "          stoker validate --input rows.json",
          {{"--input", "the input pipeline (the only part that can be run without a GPU)", &o->input},
           {"what", "FILE.py:FUNCTION for your own data set, or a rows file; default: built-in ones",
            &o->what},
           {"--quick", "few points, one short repetition each", &o->quick},
           {"--budget", "time to spend on measuring; default 20m, 3m for your own, 2m with --quick",
            &o->budget},
           {"-o,--output", "rows file to write, continued when it exists", &o->output},
           {"--json", "the comparison as JSON on stdout", &o->json}},
          [o] { return run(*o); }};
}

}  // namespace stoker::cli
