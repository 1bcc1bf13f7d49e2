#include <filesystem>
#include <memory>

#include "base/files.h"
#include "cli/outside/output.h"
#include "cli/outside/python.h"
#include "cli/verbs/study_arguments.h"
#include "cli/verbs/study_pages.h"
#include "cli/verbs/verbs.h"
#include "report/study/study_page.h"
#include "study/definition/template.h"
#include "study/executor/outcome.h"
#include "study/findings/selection.h"

namespace stoker::cli {
namespace fs = std::filesystem;
namespace {

struct StudyArguments {
  std::string store, where, html, plots, plot_format;
  std::vector<std::string> by, metric, target;
  std::optional<std::int64_t> trial;
  bool csv = false, json = false, findings = false;
};

Result<int> show_trial(const study::Store& store, const study::StudyView& view, std::int64_t id) {
  for (const study::TrialRow& row : view.rows) {
    if (row.id != id) continue;
    const auto files = study::latest_files(store.path(), id);
    const auto command = study::command_of(view.study, row.trial, id, files.folder.string());
    print(trial_text(view, row, command ? study::shell_line(command->words) : "",
                     files.folder.string()));
    return 0;
  }
  return fail(ErrorCode::kNotFound, "has no trial " + std::to_string(id), store.path().string());
}

/// study.json in the folder of pictures; Python draws what it tells.
Result<int> plot(const study::Store& store, const study::StudyView& view,
                 const study::Findings& found, const std::vector<study::Convergence>& convergences,
                 const StudyArguments& o) {
  const fs::path folder = fs::absolute(o.plots).lexically_normal();
  std::error_code error;
  fs::create_directories(folder, error);
  if (error || !fs::is_directory(folder))
    return fail(ErrorCode::kIo,
                "is no folder and cannot be made one" +
                    (error ? ": " + error.message() : std::string()) + "; name another",
                "--plots " + o.plots);
  std::vector<study::Curves> curves;
  for (const auto& one : convergences) curves.push_back(TRY(store.curves(one.metric)));
  TRY(write_file(folder / "study.json",
                 plots_json(view, STOKER_VERSION, found, convergences, curves)));
  return run_python_stoker(
      {"study-plots", folder.string(), o.plot_format.empty() ? "png" : o.plot_format}, false);
}

Result<int> run_study(const StudyArguments& o) {
  const auto store = TRY(study::Store::open(store_of(o.store), study::Store::Access::kRead));
  auto view = TRY(study::select(store, {o.where, o.metric}));
  if (o.trial && !o.json && !o.csv) return show_trial(store, view, *o.trial);
  if (o.trial) std::erase_if(view.rows, [&](const auto& row) { return row.id != *o.trial; });
  if (!o.html.empty())
    TRY(write_page(o.html, study_page(TRY(study_picture(store, view, o.target)), STOKER_VERSION)));
  if (!o.by.empty()) {
    const auto groups = TRY(study::grouped(view, o.by));
    print((o.json ? groups_json(view, o.by, groups, STOKER_VERSION)
                  : groups_text(view, o.by, groups)));
    return 0;
  }
  const bool findings = o.findings || !o.plots.empty();
  if (!o.target.empty() && !findings && o.html.empty())
    return fail(ErrorCode::kUsage, "is of --findings and --plots, which tell when trials reach it",
                "--target");
  if (!o.plot_format.empty() && o.plots.empty())
    return fail(ErrorCode::kUsage, "is of --plots FOLDER", "--plot-format");
  if (!findings) {
    print((o.json ? study_json(view, STOKER_VERSION) : o.csv ? study_csv(view) : study_text(view)));
    return 0;
  }
  const study::Findings found = study::findings(view);
  const auto convergences = TRY(convergences_of(store, view, o.target));
  if (!o.plots.empty()) {
    if (o.json || o.csv)
      return fail(ErrorCode::kUsage,
                  "draws pictures, and prints which; leave out --json and --csv (study.json in the "
                  "folder has the numbers)",
                  "--plots");
    const int code = TRY(plot(store, view, found, convergences, o));
    if (!o.findings || code != 0) return code;
    print("\n");
  }
  if (!o.json && !o.csv) {
    std::string text = findings_text(view, found);
    for (const auto& one : convergences) text += convergence_text(view, one);
    print(text + usage_text(view) + verdict_text(study::verdict_of(view.rows)));
    return 0;
  }
  print(o.json ? study_json(view, STOKER_VERSION, &found, convergences)
               : findings_csv(view, found, convergences));
  return 0;
}

}  // namespace

Command study_command() {
  auto o = std::make_shared<StudyArguments>();
  return {"study",
          "what the trials of a study measured, also while it runs",
          "Example: stoker study study.db --where 'batch > 32' --by workers --metric samples_per_s",
          {{"store", &o->store},
           {"where", &o->where},
           {"by", &o->by},
           {"metric", &o->metric},
           {"trial", &o->trial},
           {"findings", &o->findings},
           {"target", &o->target},
           {"plots", &o->plots},
           {"plot-format", &o->plot_format},
           {"csv", &o->csv},
           {"html", &o->html},
           {"json", &o->json}},
          [o] { return run_study(*o); }};
}

}  // namespace stoker::cli
