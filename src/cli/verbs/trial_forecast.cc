#include "cli/verbs/trial_forecast.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string_view>

#include "base/setting.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/arguments/arguments.h"
#include "cli/arguments/typed_names.h"
#include "cli/outside/scenario_tools.h"
#include "cli/request/run_options.h"
#include "cli/request/run_request.h"
#include "report/text/layout.h"
#include "scenario/resolve/resolve.h"
#include "scenario/settings/settings.h"
#include "scenario/sources/script_model.h"
#include "scenario/sources/tools.h"
#include "study/definition/template.h"

namespace stoker::cli {
namespace {

std::string flag_for(std::string name) {
  for (char& c : name) c = c == '_' ? '-' : c;
  return "--" + name;
}

bool is_setting(const std::string& name) {
  for (const SettingRow* setting : settings_of("predict")) {
    if (!setting->positional && answers_to(*setting, flag_for(name))) return true;
  }
  return false;
}

void keep(std::map<std::string, double>& figures, const std::string& name, const Figure& figure) {
  figures[name] = figure.value;
  figures[name + "_low"] = figure.low;
  figures[name + "_high"] = figure.high;
}

/// Names of axes that change no step, or that the forecast is told by a flag of its own.
bool leaves_the_step(std::string name) {
  constexpr std::string_view kNames =
      " lr learning-rate max-lr min-lr base-lr weight-decay wd seed warmup warmup-steps "
      "warmup-epochs "
      "warmup-ratio gamma beta1 beta2 eps label-smoothing epochs max-epochs num-train-epochs "
      "max-steps batch batch-size bs workers num-workers prefetch prefetch-factor ";
  for (char& c : name)
    c = c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return kNames.find(" " + name + " ") != std::string_view::npos;
}

Result<TrialForecast> forecast_of(const std::vector<std::string>& words,
                                  const std::vector<std::string>& script_arguments) {
  RunOptions options;
  options.script_arguments = script_arguments;
  std::string batch;
  Command predict{"predict", {}, {}, run_bindings(options, &batch), {}};
  const TypedWords typed = TRY(in_our_names("predict", words));
  TRY(parse_words(predict, typed.words));
  RunRequest request = TRY(exact_request(options, {options.gpu}));
  request.batch = TRY(parse_batch(batch));
  const Resolved resolved = TRY(resolve_exactly(request, scenario_tools(options.script_run)));
  const Forecast f = TRY(forecast(resolved.base, resolved.knowledge));
  TrialForecast result;
  result.fits = f.memory.fits;
  if (!f.memory.fits)
    result.reason = "by forecast it does not fit: " + with_flags(f.memory.out_of_memory.empty()
                                                                     ? f.memory.failure_words
                                                                     : f.memory.out_of_memory);
  result.samples_per_s = f.samples_per_s;
  result.peak_bytes = f.memory.device_peak;
  result.gpu_busy = f.gpu_busy;
  keep(result.figures, "samples_per_s", f.samples_per_s);
  keep(result.figures, "device_peak_bytes", f.memory.device_peak);
  result.figures["gpus"] = result.gpus = f.job.gpus;
  if (f.energy && f.energy->watts.value > 0) {
    keep(result.figures, "gpu_watts", f.energy->watts);
    result.power_limit_w = resolved.base.machine.device.facts().tdp_watts * f.job.gpus;
  }
  if (f.run.epochs == 0) return result;
  result.wall_s = f.run.seconds_total;
  result.cost = f.run_cost;
  keep(result.figures, "wall_s", f.run.seconds_total);
  if (f.run_cost.value > 0) keep(result.figures, "cost", f.run_cost);
  return result;
}

std::string time_text(double seconds) { return human_time(Nanos(seconds * 1e9)); }

}  // namespace

std::string TrialForecast::text() const {
  std::string text = "forecast " + layout::rate(samples_per_s) + " samples/s, " +
                     human_bytes(Bytes(static_cast<std::int64_t>(peak_bytes.value)));
  if (wall_s.value > 0) text += ", " + time_text(wall_s.value);
  return text;
}

Result<std::vector<std::string>> TrialForecaster::words(const study::TrialValues& trial) const {
  auto settings = TRY(study::forecast_settings(study_, trial));
  const auto axes = study::axis_names(study_);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    // "batch_size" beside a given "batch" is the same setting: the given one counts.
    bool given = false;
    for (const auto& [name, value] : settings) {
      const auto ours = in_our_names("predict", {flag_for(name), flag_for(axes[i])});
      given = given || name == axes[i] || (ours && ours->words[0] == ours->words[1]) || !ours;
    }
    if (!given && is_setting(axes[i])) settings[axes[i]] = trial.values[i];
  }
  if (!settings.contains("gpu") && !settings.contains("device")) settings["gpu"] = "cpu";
  std::vector<std::string> words{settings.at("model")};
  for (const auto& [name, value] : settings) {
    if (name == "model") continue;
    // Switches of scripts are true and false; those of predict stand or do not.
    const std::string flag = flag_for(name);
    if (value == "true" || value == "True") words.push_back(flag);
    else if (value == "false" || value == "False") words.push_back("--no-" + flag.substr(2));
    else words.insert(words.end(), {flag, value});
  }
  return words;
}

Result<std::vector<std::string>> TrialForecaster::script_arguments(const std::string& script,
                                                                   study::TrialValues trial) {
  const auto axes = study::axis_names(study_);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (leaves_the_step(axes[i]))
      trial.values[i] = first_.try_emplace(axes[i], trial.values[i]).first->second;
  }
  trial.seed = study_.seed;
  trial.repetition = 0;
  auto command = TRY(study::command_of(study_, trial, 0, "."));
  std::vector<std::string> run = std::move(command.words);
  if (study_.shell) run = TRY(study::split_words(run.back()));
  const auto name = std::filesystem::path(script).filename();
  const auto at = std::find_if(run.begin(), run.end(), [&](const std::string& word) {
    return std::filesystem::path(word).filename() == name;
  });
  if (at == run.end()) return std::vector<std::string>{};
  return std::vector<std::string>(at + 1, run.end());
}

Result<TrialForecast> TrialForecaster::of(const study::TrialValues& trial) {
  const auto asked = TRY(words(trial));
  const auto own =
      is_script(asked[0]) ? TRY(script_arguments(asked[0], trial)) : std::vector<std::string>();
  std::vector<std::string> known_by = asked;
  known_by.insert(known_by.end(), own.begin(), own.end());
  if (const auto found = known_.find(known_by); found != known_.end()) return found->second;
  auto forecast = forecast_of(asked, own);
  if (!forecast && is_already_explained(forecast.error())) return forecast;
  if (!forecast) {
    std::string line = "stoker predict " + study::shell_line(asked);
    if (!own.empty()) line += " -- " + study::shell_line(own);
    return fail(forecast.error().code, forecast.error().text() + " (" + line + ")", "the forecast");
  }
  known_[known_by] = *forecast;
  return forecast;
}

void ForecastTotal::add(const TrialForecast& forecast) {
  ++trials_;
  if (!forecast.fits) return;
  ++fit_;
}

std::string ForecastTotal::text() const {
  return "forecast: " + with_commas(fit_) + " of " + with_commas(trials_) + " trials fit";
}

}  // namespace stoker::cli
