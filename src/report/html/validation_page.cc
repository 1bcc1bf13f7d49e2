#include <fmt/core.h>

#include "base/text.h"
#include "report/html/page.h"
#include "report/model/input_validation_report.h"
#include "report/model/page_report.h"
#include "report/text/layout.h"

namespace stoker {
namespace {

using namespace page;

Verdict held(bool within) { return within ? Verdict::kGood : Verdict::kBad; }

/// One figure of all runs, forecast beside fact.
Json figure_pairs(const TrainingValidation& v, std::string_view figure, const Axis& axis) {
  std::vector<Pair> rows;
  for (const ComparedRun& run : v.runs) {
    const ComparedFigure* f = run.figure(figure);
    if (f == nullptr) continue;
    const bool bytes = f->unit == "bytes";
    rows.push_back({run.run.label(), bytes ? shown_bytes(f->forecast) : shown(f->forecast, f->unit),
                    bytes ? plain(human_bytes(Bytes(std::llround(f->fact))), f->fact)
                          : plain(layout::number(f->fact) + " " + f->unit, f->fact),
                    held(f->within())});
  }
  Json block = pairs(rows, axis);
  if (!block.is_null()) block["title"] = figure;
  return block;
}

Json errors_table(const TrainingValidation& v) {
  std::vector<std::vector<Cell>> rows;
  for (const FigureSummary& s : v.summaries) {
    rows.push_back({{s.name, {}},
                    {"", plain(std::to_string(s.count), static_cast<double>(s.count))},
                    {"", shown_exact_percent(s.median)},
                    {"", shown_exact_percent(s.worst)},
                    {"", shown_signed_percent(s.bias)},
                    {"", shown_exact_percent(s.coverage)},
                    {s.worst_label, {}}});
  }
  if (rows.empty()) return {};
  return table({{"figure", false},
                {"runs"},
                {"median error"},
                {"worst"},
                {"bias"},
                {"in band"},
                {"worst at", false}},
               rows);
}

Json classes_table(const TrainingValidation& v) {
  std::vector<std::vector<Cell>> rows;
  for (const ClassError& c : v.classes) {
    rows.push_back({{c.name, {}},
                    {"", shown_exact_percent(c.share)},
                    {"", plain(layout::number(c.factor), c.factor)},
                    {"", shown_signed_percent(c.carried)}});
  }
  if (rows.empty()) return {};
  return table(
      {{"operator class", false}, {"of the step"}, {"real / forecast"}, {"adds to the step"}},
      rows);
}

std::string missed(std::size_t failures) {
  return failures == 0 ? "Bands held"
                       : fmt::format("{} band{} missed", failures, failures == 1 ? "" : "s");
}

}  // namespace

std::string training_validation_page(const TrainingValidation& v, const TrainingSaid& said) {
  Page page("validate", "Forecast against fact", "training steps on " + said.device);
  page.headline(v.failures.empty() ? Verdict::kGood : Verdict::kBad, missed(v.failures.size()),
                v.failures);
  page.section(
      "Steps",
      "The bar is the forecast's 90 % band, the stroke its value, the dot what was measured.",
      {figure_pairs(v, "step", {"ms a step", true}),
       figure_pairs(v, "peak memory", {"bytes", true})});
  page.section("Errors by figure", "", {errors_table(v)});
  page.section("What carries the errors", "By operator class, as far as the runs tell.",
               {classes_table(v)});
  page.footer("Measured with", said.measured_with);
  std::vector<std::string> notes;
  for (const Diagnostic& d : said.data.all()) notes.push_back(d.name + ": " + d.advice);
  page.footer("Noted", notes);
  page.text(training_validation_text(v, said));
  return page.html(said.version);
}

std::string input_validation_page(const InputValidation& v, const LoaderRuns& runs,
                                  const std::string& tool_version) {
  Page page("validate", "Forecast against fact", "real DataLoaders");
  page.headline(v.failures.empty() ? Verdict::kGood : Verdict::kBad, missed(v.failures.size()),
                v.failures);
  page.tile("Epoch, mean error", shown_exact_percent(v.epoch.mean));
  page.tile("Epoch, worst error", shown_exact_percent(v.epoch.worst), v.epoch.worst_label);
  page.tile("Within the band", shown_exact_percent(v.coverage));
  std::vector<Pair> epochs;
  for (const ComparedPoint& p : v.points) {
    const double s = seconds(p.forecast_epoch());
    epochs.push_back({p.label(), shown_seconds(with_band(s, p.band, p.forecast.basis)),
                      plain(human_time(p.epoch), seconds(p.epoch)), held(p.within_band)});
  }
  page.section(
      "Epochs",
      "The bar is the forecast's 90 % band, the stroke its value, the dot what was measured.",
      {pairs(epochs, {"seconds an epoch", true})});
  std::vector<std::vector<Cell>> choices;
  for (const RecommendationCheck& c : v.recommendations)
    choices.push_back(
        {{c.scenario, {}}, {c.chosen, {}}, {c.best, {}}, {"", shown_exact_percent(c.loss)}});
  if (!choices.empty()) {
    page.section(
        "Is the recommended number of workers the best?", "",
        {table({{"scenario", false}, {"recommended", false}, {"measured best", false}, {"lost"}},
               choices)});
  }
  std::vector<std::string> dropped;
  for (const DroppedPoint& d : v.dropped) dropped.push_back(d.label + ": " + d.why);
  page.footer("Left out", dropped);
  page.text(validation_text(v, runs));
  return page.html(tool_version);
}

}  // namespace stoker
