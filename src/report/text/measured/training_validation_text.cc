#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/counted.h"
#include "base/percent.h"
#include "base/text.h"
#include "report/model/training_report.h"
#include "report/text/layout.h"

namespace stoker {
namespace {

using namespace layout;

constexpr std::size_t kMostClasses = 6;
constexpr double kUnexplained = 0.01;  ///< of the step, and worth a line from here on

std::string in_unit(double value, const std::string& unit) {
  if (unit == "bytes") return human_bytes(Bytes(static_cast<std::int64_t>(value)));
  return number(value);
}

const FigureSummary* summary_of(const TrainingValidation& v, std::string_view name) {
  const auto found = std::ranges::find(v.summaries, name, &FigureSummary::name);
  return found == v.summaries.end() ? nullptr : &*found;
}

std::string errors_words(const TrainingValidation& v) {
  std::string text;
  for (const auto& [name, words] :
       {std::pair("step", "step time"), {"peak memory", "peak memory"}}) {
    const FigureSummary* s = summary_of(v, name);
    if (s == nullptr) continue;
    text += text.empty() ? "" : "; ";
    text += s->count == 1 ? fmt::format("{} {} off", words, exact_percent(s->median))
                          : fmt::format("{} {} off in the middle, {} at worst", words,
                                        exact_percent(s->median), exact_percent(s->worst));
  }
  return text;
}

std::string answer(const TrainingValidation& v) {
  const std::string errors = errors_words(v);
  if (v.failures.empty()) {
    if (errors.empty()) return "NOTHING TO COMPARE: no run came to its end undisturbed\n";
    if (v.judged == 0)
      return fmt::format("NOT JUDGED, as no run's repetitions agree: {}\n", errors);
    return fmt::format("BANDS HELD: {}\n", errors);
  }
  std::string text =
      fmt::format("{} BAND{} MISSED{}{}\n", v.failures.size(), v.failures.size() == 1 ? "" : "S",
                  errors.empty() ? "" : ": ", errors);
  for (const std::string& failure : v.failures) text += "  " + failure + "\n";
  return text;
}

std::string runs_table(const TrainingValidation& v) {
  std::vector<std::vector<std::string>> rows{
      {"run", "step ms", "forecast [90 %]", "error", "peak", "forecast", "error", "samples/s"}};
  for (const ComparedRun& run : v.runs) {
    const ComparedFigure* step = run.figure("step");
    if (step == nullptr) continue;
    std::vector<std::string> row{
        run.run.label(), number(step->fact),
        fmt::format("{} [{}-{}]", number(step->forecast.value), number(step->forecast.low),
                    number(step->forecast.high)),
        signed_percent(step->error()) + (step->within() ? "" : " !")};
    if (const ComparedFigure* peak = run.figure("peak memory")) {
      row.insert(row.end(),
                 {in_unit(peak->fact, peak->unit), in_unit(peak->forecast.value, peak->unit),
                  signed_percent(peak->error()) + (peak->within() ? "" : " !")});
    } else {
      row.insert(row.end(), {"-", "-", "-"});
    }
    row.push_back(number(run.figure("throughput")->fact));
    rows.push_back(std::move(row));
  }
  if (rows.size() == 1) return {};
  return table(rows, {0}) + "  ! outside of its band\n";
}

std::string phases_table(const TrainingValidation& v) {
  std::vector<std::vector<std::string>> rows{
      {"figure", "runs", "median", "worst", "bias", "in band", "worst at"}};
  for (const FigureSummary& s : v.summaries) {
    rows.push_back({s.name, std::to_string(s.count), exact_percent(s.median),
                    exact_percent(s.worst), signed_percent(s.bias), percent(s.coverage),
                    s.worst_label});
  }
  if (rows.size() == 1) return {};
  return "\nErrors by figure, of what was measured\n" + table(rows, {0, 6});
}

/// What of the error no class explains.
std::string unexplained(const TrainingValidation& v) {
  double forecast = 0, measured = 0, explained = 0;
  for (const ComparedRun& run : v.runs) {
    const ComparedFigure* step = run.counts() ? run.figure("step") : nullptr;
    if (step == nullptr) continue;
    forecast += step->forecast.value;
    measured += step->fact;
  }
  for (const ClassError& c : v.classes) explained += c.carried;
  const double rest = measured > 0 ? 1 - forecast / measured - explained : 0;
  if (std::fabs(rest) < kUnexplained) return {};
  return fmt::format("  {} of the step lies in none of them\n", signed_percent(rest));
}

std::string classes_table(const TrainingValidation& v) {
  if (v.classes.empty()) return {};
  std::vector<std::vector<std::string>> rows{
      {"operator class", "of the step", "real / forecast", "adds to the step"}};
  for (std::size_t i = 0; i < std::min(kMostClasses, v.classes.size()); ++i) {
    const ClassError& c = v.classes[i];
    rows.push_back({c.name == "host" ? "PyTorch around operators" : c.name, percent(c.share),
                    fmt::format("{:.2f} +- {:.2f}", c.factor, c.deviation),
                    signed_percent(c.carried)});
  }
  return "\nWhich operators carry the error, as far as these runs tell\n" + table(rows, {0}) +
         unexplained(v);
}

std::string rankings_text(const TrainingValidation& v) {
  if (v.rankings.empty()) return {};
  std::vector<std::vector<std::string>> rows{{"batches of", "pairs beyond noise", "ranked right",
                                              "fastest", "forecast's fastest", "lost"}};
  for (const BatchRanking& r : v.rankings) {
    rows.push_back({r.label, std::to_string(r.pairs),
                    r.pairs > 0 ? fmt::format("{} of {}", r.right, r.pairs) : "-",
                    std::to_string(r.measured_best), std::to_string(r.forecast_best),
                    exact_percent(r.lost)});
  }
  return "\nBatches by throughput\n" + table(rows, {0});
}

std::string others(const TrainingValidation& v) {
  std::string text;
  for (const ComparedRun& run : v.runs) {
    if (!run.not_forecast.empty())
      text += fmt::format("  {}: no forecast: {}\n", run.run.label(), run.not_forecast);
    if (run.run.status == RunStatus::kFailed)
      text += fmt::format("  {}: not measured: {}\n", run.run.label(), run.run.note);
    if (run.run.status == RunStatus::kOutOfMemory) {
      const bool said = run.forecast && !run.forecast->forecast.memory.fits;
      text += fmt::format("  {}: out of memory{}\n", run.run.label(),
                          said           ? ", as forecast"
                          : run.forecast ? ", though forecast to fit"
                                         : "");
    }
    if (run.fact && !run.fact->settled)
      text += fmt::format("  {}: not judged: {}\n", run.run.label(), run.fact->disturbed_by);
  }
  return text.empty() ? text : "\nBesides\n" + text;
}

std::string learning_text(const TrainingSaid& said) {
  if (!said.learning) return {};
  const Learning& l = *said.learning;
  if (!l.helps) return labelled("Learned", {"nothing: " + l.why_not});
  std::string text = labelled(
      "Learned",
      {fmt::format("{} from these runs, into {}", counted(std::ssize(l.figures), "correction"),
                   said.learned_into),
       fmt::format("steps of {} that were held out would be {} off in the middle instead of {}, {} "
                   "instead of {} at worst",
                   l.by_model ? "models" : "runs", exact_percent(l.after.median),
                   exact_percent(l.before.median), exact_percent(l.after.worst),
                   exact_percent(l.before.worst))});
  return text;
}

std::string next_words(const TrainingValidation& v, const TrainingSaid& said) {
  std::vector<std::string> steps;
  if (!said.complete) {
    steps.emplace_back(said.rows_given
                           ? "measure the rest: training-runs goes on where the file stops"
                           : "a larger --budget measures the rest");
  }
  if (!said.calibrated) {
    steps.emplace_back(
        "stoker calibrate -o MACHINE.toml, then validate with --machine MACHINE.toml");
  } else if (said.machine_file && !said.learning && !v.classes.empty() && !v.failures.empty()) {
    steps.emplace_back("--learn corrects the machine file by these runs, if that helps others");
  }
  std::string text;
  for (std::size_t i = 0; i < steps.size(); ++i)
    text += fmt::format("{} {}. {}\n", i == 0 ? "Next " : "     ", i + 1, steps[i]);
  return text.empty() ? text : "\n" + text;
}

}  // namespace

std::string training_validation_text(const TrainingValidation& v, const TrainingSaid& said) {
  std::string text =
      fmt::format("{} on {}, forecast {}\n\n", counted(std::ssize(v.runs), "measured run"),
                  said.device.empty() ? "an unknown device" : said.device,
                  said.machine.empty() ? "by its own facts alone" : "by " + said.machine);
  text += answer(v);
  if (const std::string runs = runs_table(v); !runs.empty()) text += "\n" + runs;
  text += phases_table(v) + classes_table(v) + rankings_text(v) + others(v);
  std::vector<std::string> basis;
  for (const ComparedRun& run : v.runs) {
    const ComparedFigure* step = run.figure("step");
    if (step != nullptr && std::ranges::find(basis, step->forecast.basis) == basis.end())
      basis.push_back(step->forecast.basis);
  }
  text += "\n" + learning_text(said);
  if (!basis.empty()) text += footer(basis);
  if (!said.measured_with.empty()) text += labelled("Measured", said.measured_with);
  if (!said.rule.empty()) text += labelled("Rule", {said.rule});
  return text + next_words(v, said) + diagnostics(said.data);
}

std::string accuracy_text(const std::vector<AccuracyEntry>& entries,
                          const std::filesystem::path& log) {
  if (entries.empty())
    return "The accuracy log " + log.string() + " is empty; `stoker validate MODEL` adds to it\n";
  struct Sum {
    std::size_t count = 0, within = 0;
    double absolute = 0, worst = 0;
  };
  std::map<std::pair<std::string, std::string>, Sum> sums;
  std::vector<std::vector<std::string>> rows{{"date", "model", "batch", "threads", "precision",
                                              "figure", "forecast", "fact", "error", "band"}};
  for (const AccuracyEntry& e : entries) {
    rows.push_back({e.date, e.model, std::to_string(e.batch),
                    e.threads > 0 ? std::to_string(e.threads) : "-", e.precision, e.figure,
                    in_unit(e.forecast, e.unit), in_unit(e.fact, e.unit), signed_percent(e.error()),
                    e.within() ? "held" : "missed"});
    Sum& sum = sums[{e.model, e.figure}];
    ++sum.count;
    sum.within += e.within() ? 1 : 0;
    sum.absolute += std::fabs(e.error());
    sum.worst = std::max(sum.worst, std::fabs(e.error()));
  }
  std::vector<std::vector<std::string>> by_model{
      {"model", "figure", "forecasts", "mean error", "worst", "in band"}};
  for (const auto& [key, sum] : sums) {
    const auto n = static_cast<double>(sum.count);
    by_model.push_back({key.first, key.second, std::to_string(sum.count),
                        exact_percent(sum.absolute / n), exact_percent(sum.worst),
                        percent(static_cast<double>(sum.within) / n)});
  }
  return fmt::format("{} in {}\n", counted(std::ssize(entries), "forecast"), log.string()) +
         table(by_model, {0, 1}) + "\n" + table(rows, {0, 1, 4, 5, 9});
}

}  // namespace stoker
