#include "cli/verbs/tune_arguments.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "base/text.h"
#include "study/definition/duration.h"
#include "study/definition/study_file.h"
#include "study/definition/study_words.h"
#include "study/definition/template.h"
#include "study/definition/values.h"
#include "tune/run/trial_jobs.h"

namespace stoker::cli {
namespace {

/// Values from small to large. Refused: one alone, none that are numbers, none above 0.
Result<std::vector<std::string>> numbers(const std::string& typed, const std::string& flag) {
  auto values = study::parse_values(typed, "--repeat 2");
  if (!values) return fail(ErrorCode::kUsage, values.error().message, flag);
  for (const std::string& value : *values) {
    const auto number = study::as_number(value);
    if (!number || !(*number > 0))
      return fail(ErrorCode::kUsage, "\"" + value + "\" is no number above 0", flag);
  }
  const auto number_of = [](const std::string& v) { return *study::as_number(v); };
  std::ranges::stable_sort(*values, {}, number_of);
  const auto same = std::ranges::unique(*values, {}, number_of);  // "16" and "16.0"
  values->erase(same.begin(), same.end());
  if (values->size() < 2)
    return fail(ErrorCode::kUsage,
                "has one value, and there is nothing to choose; give two or more, or write it into "
                "the command",
                flag + " " + typed);
  return values;
}

bool uses(const TuneArguments& a, const std::string& name) {
  std::vector<std::string> texts = a.command;
  texts.insert(texts.end(), a.env.begin(), a.env.end());
  return std::ranges::any_of(texts, [&](const std::string& text) {
    const auto parsed = study::Template::parse(text);
    if (!parsed) return false;
    const auto names = parsed->names();
    return std::ranges::find(names, name) != names.end();
  });
}

Result<tune::Objective> objective_of(const TuneArguments& a) {
  if (a.metric.empty())
    return fail(ErrorCode::kUsage,
                "say what is to be as good as it can: --metric accuracy, told by "
                "stoker.report(accuracy=...)",
                "--metric");
  const study::Metric metric = TRY(study::parse_metric(a.metric));
  study::Goal goal =
      metric.goal == study::Goal::kUnknown ? study::usual_goal(metric.name) : metric.goal;
  if (!a.direction.empty()) goal = a.direction == "max" ? study::Goal::kMost : study::Goal::kLeast;
  if (goal == study::Goal::kUnknown)
    return fail(ErrorCode::kUsage,
                "whether more of \"" + metric.name +
                    "\" is better is not known; say --direction max or --direction min",
                "--metric " + a.metric);
  tune::Objective objective{metric.name, goal == study::Goal::kMost};
  if (a.objective != "energy") {
    for (const auto& [given, flag] : {std::pair{a.target.has_value(), "--target"},
                                      {a.energy_weight.has_value(), "--energy-weight"}})
      if (given) return fail(ErrorCode::kUsage, "belongs to --objective energy", flag);
    return objective;
  }
  constexpr double kUsualWeight = 0.5;  // eta_knob's default in Zeus (tune/curve/energy.h)
  objective.energy_weight = a.energy_weight.value_or(kUsualWeight);
  if (a.target && !std::isfinite(*a.target))
    return fail(ErrorCode::kUsage, "is no value that a metric can reach: --target 0.75",
                "--target");
  if (a.target) objective.target = objective.score(*a.target);
  return objective;
}

Result<tune::TuneBudget> budget_of(const TuneArguments& a) {
  tune::TuneBudget budget;
  if (!a.budget.empty()) {
    const auto seconds = study::parse_seconds(a.budget);
    if (!seconds || *seconds <= 0)
      return fail(ErrorCode::kUsage, "\"" + a.budget + "\" is no time; write 90s, 10min, 1h30min",
                  "--budget");
    budget.seconds = *seconds;
  }
  budget.steps = a.budget_steps.value_or(0);
  budget.money = a.budget_money.value_or(0);
  budget.price_of_gpu_hour = a.price.value_or(0);
  if (budget.money > 0 && (budget.price_of_gpu_hour == 0 || a.gpus.empty()))
    return fail(ErrorCode::kUsage, "needs --price MONEY of a GPU-hour and --gpus N of a trial",
                "--budget-money");
  return budget;
}

/// What the file says of the cluster; what flags say of resources goes before it.
Status add_cluster(const TuneArguments& a, study::Study& study) {
  const study::Study read = TRY(study::read_cluster_file(a.cluster));
  study.slurm = read.slurm;
  study.kubernetes = read.kubernetes;
  study::Resources& to = study.resources;
  const study::Resources& from = read.resources;
  for (auto [target, given] : {std::pair{&to.cores, &from.cores},
                               {&to.gpus, &from.gpus},
                               {&to.memory, &from.memory},
                               {&to.time, &from.time},
                               {&to.constraint, &from.constraint},
                               {&to.image, &from.image}}) {
    if (target->empty()) *target = *given;
  }
  if (a.grace.empty()) to.grace = from.grace;
  return {};
}

Result<study::Study> study_of(const TuneArguments& a, const tune::Objective& objective) {
  SweepRequest request;
  for (const auto& [name, values] : {std::pair{"batch", &a.batch}, {"lr", &a.lr}}) {
    if (!values->empty()) request.vary.push_back(std::string(name) + "=" + *values);
  }
  request.vary.insert(request.vary.end(), a.vary.begin(), a.vary.end());
  for (const study::Axis& own : tune::own_axes())
    request.vary.push_back(own.names[0] + "=" + own.rows[0][0]);
  request.metric = {a.metric};
  request.env = a.env;
  request.forecast = a.forecast;
  request.command = a.command;
  request.seed = a.seed;
  request.model = a.model;
  request.gpu = a.gpu;
  request.cores = a.cores;
  request.gpus = a.gpus;
  request.memory = a.memory;
  request.time = a.time;
  request.grace = a.grace;
  request.image = a.image;
  request.shell = a.shell;
  request.store = a.store.empty() ? "tune.db" : a.store;
  SweepStudy made = TRY(sweep_study(request));
  if (!a.cluster.empty()) TRY(add_cluster(a, *made.study));
  made.study->metrics[0].goal = objective.most ? study::Goal::kMost : study::Goal::kLeast;
  // The best of a trial counts for the search, and so in tables.
  made.study->metrics[0].take = study::Take::kBest;
  return std::move(*made.study);
}

Status check_used(const TuneArguments& a, const std::string& name) {
  if (uses(a, name)) return {};
  return fail(
      ErrorCode::kUsage,
      "the command has no {{" + name + "}}: python train.py --" + name + " {{" + name + "}}",
      "--" + name);
}

Result<std::vector<tune::Dimension>> space_of(const TuneArguments& a) {
  std::vector<tune::Dimension> space;
  if (!a.batch.empty()) space.push_back(TRY(tune::parse_dimension("batch", a.batch)));
  if (!a.lr.empty()) space.push_back(TRY(tune::parse_dimension("lr", a.lr)));
  for (const std::string& typed : a.vary) {
    const auto equals = typed.find('=');
    if (equals == std::string::npos || equals == 0 || typed.find(',') < equals)
      return fail(ErrorCode::kUsage, "write NAME=VALUES: --vary optimizer=sgd,adam",
                  "--vary " + typed);
    space.push_back(TRY(tune::parse_dimension(typed.substr(0, equals), typed.substr(equals + 1))));
  }
  if (space.empty())
    return fail(ErrorCode::kUsage,
                "say what is to be chosen: --batch 512..16384x2, --lr 1e-5..1e-1, --vary NAME=...");
  std::size_t more = 0;
  for (const tune::Dimension& d : space) {
    TRY(check_used(a, d.name));
    more += d.continuous() || d.values.size() > 1 ? 1 : 0;
  }
  if (more == 0)
    return fail(ErrorCode::kUsage, "every setting has one value, and there is nothing to choose");
  return space;
}

Status search_of(const TuneArguments& a, TuneStudy& made) {
  tune::SearchOptions& s = made.search;
  s.objective = made.options.objective;
  s.space = TRY(space_of(a));
  s.kind = a.method == "asha"        ? tune::SearchKind::kAsha
           : a.method == "hyperband" ? tune::SearchKind::kHyperband
                                     : tune::SearchKind::kWhole;
  s.all_combinations = a.method == "grid";
  made.sampler = a.method == "tpe" && a.sampler.empty() ? "tpe" : a.sampler;
  if (made.sampler == "random") made.sampler.clear();
  s.sampled = !made.sampler.empty();
  s.least_steps = a.min_steps.value_or(0);
  s.most_steps = a.max_steps.value_or(0);
  s.eta = static_cast<int>(a.eta.value_or(s.eta));
  s.median = a.stop != "none";
  s.rules.patience = static_cast<int>(a.patience.value_or(0));
  s.rules.min_delta = a.min_delta.value_or(0);
  s.seed = a.seed.value_or(0);
  s.configs = a.trials.value_or(0);
  const bool rungs = s.kind != tune::SearchKind::kWhole;
  if (rungs && (s.least_steps == 0 || s.most_steps <= s.least_steps))
    return fail(ErrorCode::kUsage,
                "needs the steps of its first and its last rung, as the script reports them: "
                "--min-steps 100 --max-steps 2700",
                "--method " + a.method);
  const bool knows = s.all_combinations || s.kind == tune::SearchKind::kHyperband;
  if (!knows && s.configs == 0)
    return fail(ErrorCode::kUsage, "needs the number of settings to try: --trials 27",
                "--method " + a.method);
  if (knows && s.configs > 0)
    return fail(ErrorCode::kUsage, "the number follows from the method " + a.method, "--trials");
  if (s.all_combinations && s.sampled)
    return fail(ErrorCode::kUsage, "a grid is not sampled", "--sampler");
  if (s.objective.energy_weight && rungs)
    return fail(
        ErrorCode::kUsage,
        "goes by the metric at each rung; energy is what greedy, grid, random and tpe go by",
        "--method " + a.method);
  if (s.objective.energy_weight && !s.objective.target)
    return fail(ErrorCode::kUsage,
                "needs what is to be reached, as the energy of trials that come to nothing says "
                "nothing: --target 0.75",
                "--objective energy");
  return {};
}

Result<tune::GreedyOptions> greedy_of(const TuneArguments& a, const tune::Objective& objective) {
  tune::GreedyOptions g;
  g.objective = objective;
  if (!a.batch.empty()) g.batches = TRY(numbers(a.batch, "--batch"));
  if (!a.lr.empty()) g.rates = TRY(numbers(a.lr, "--lr"));
  if (g.batches.empty() && g.rates.empty())
    return fail(ErrorCode::kUsage,
                "say what is to be chosen: --batch 512..16384x2, --lr 1e-5..1e-1, or both");
  if (!g.batches.empty()) TRY(check_used(a, "batch"));
  if (!g.rates.empty()) TRY(check_used(a, "lr"));
  g.threshold = a.threshold.value_or(g.threshold);
  if (objective.energy_weight && !a.by.empty())
    return fail(ErrorCode::kUsage, "the batch is chosen by energy already", "--by");
  if (objective.energy_weight && g.batches.empty() && !objective.target)
    return fail(ErrorCode::kUsage,
                "needs batches to choose from, or what is to be reached: --batch 64..1024x2, "
                "--target 0.75",
                "--objective energy");
  g.by = objective.energy_weight ? tune::BatchBy::kEnergy
         : a.by == "utilisation" ? tune::BatchBy::kUtilisation
                                 : tune::BatchBy::kThroughput;
  constexpr double kUsualShare = 0.25;
  g.share = a.share.value_or(uses(a, "share") ? kUsualShare : 1.0);
  constexpr int kUsualPatience = 5;
  g.rules.patience = static_cast<int>(a.patience.value_or(kUsualPatience));
  g.rules.min_delta = a.min_delta.value_or(0);
  g.rules.min_share = a.min_share.value_or(g.rules.min_share);
  g.refine = static_cast<int>(a.refine.value_or(g.refine));
  g.smaller_batches = static_cast<int>(a.smaller_batches.value_or(g.smaller_batches));
  g.repeat = static_cast<int>(a.repeat.value_or(1));
  g.seed = a.seed.value_or(0);
  g.probe_steps = a.probe_steps.value_or(g.probe_steps);
  g.final_run = a.final_run.value_or(true);
  return g;
}

}  // namespace

std::vector<Binding> tune_identity(TuneArguments& a) {
  return {{"batch", &a.batch},
          {"lr", &a.lr},
          {"metric", &a.metric},
          {"direction", &a.direction},
          {"method", &a.method},
          {"threshold", &a.threshold},
          {"by", &a.by},
          {"objective", &a.objective},
          {"target", &a.target},
          {"energy-weight", &a.energy_weight},
          {"vary", &a.vary},
          {"trials", &a.trials},
          {"sampler", &a.sampler},
          {"stop", &a.stop},
          {"min-steps", &a.min_steps},
          {"max-steps", &a.max_steps},
          {"eta", &a.eta},
          {"probe-steps", &a.probe_steps},
          {"share", &a.share},
          {"repeat", &a.repeat},
          {"refine", &a.refine},
          {"smaller-batches", &a.smaller_batches},
          {"final", &a.final_run},
          {"patience", &a.patience},
          {"min-delta", &a.min_delta},
          {"min-share", &a.min_share},
          {"seed", &a.seed},
          {"width", &a.width},
          {"env", &a.env},
          {"shell", &a.shell},
          {"model", &a.model},
          {"gpu", &a.gpu},
          {"forecast", &a.forecast},
          {"cores", &a.cores},
          {"gpus", &a.gpus},
          {"memory", &a.memory},
          {"time", &a.time},
          {"grace", &a.grace},
          {"image", &a.image}};
}

std::vector<Binding> tune_other(TuneArguments& a) {
  return {{"tune-store", &a.file},
          {"lr-test", &a.lr_test},
          {"points", &a.points},
          {"noise-scale", &a.noise_scale},
          {"store", &a.store},
          {"budget", &a.budget},
          {"budget-steps", &a.budget_steps},
          {"budget-money", &a.budget_money},
          {"price", &a.price},
          {"checkpoint-space", &a.checkpoint_space},
          {"keep-checkpoints", &a.keep_checkpoints},
          {"on", &a.place.on},
          {"cluster", &a.cluster},
          {"at-most", &a.place.at_most},
          {"share-gpu", &a.place.share_gpu},
          {"quiet", &a.quiet},
          {"html", &a.html},
          {"json", &a.json}};
}

json::Value arguments_json(TuneArguments& a) {
  json::Value all = json::Value::object();
  for (const Binding& binding : tune_identity(a)) {
    if (!was_given(binding)) continue;
    std::visit(
        [&](const auto* target) {
          if constexpr (requires { target->value(); })
            all.append(std::string(binding.name), target->value());
          else all.append(std::string(binding.name), *target);
        },
        binding.target);
  }
  all.append("command", a.command);
  return all;
}

void arguments_from(const json::Value& stored, TuneArguments& a) {
  const auto texts = [](const json::Value& list) {
    std::vector<std::string> all;
    for (const json::Value& one : list) all.push_back(one.as_string());
    return all;
  };
  for (const Binding& binding : tune_identity(a)) {
    const json::Value* value = stored.find(binding.name);
    if (value == nullptr) continue;
    if (auto* const* text = std::get_if<std::string*>(&binding.target)) **text = value->as_string();
    if (auto* const* list = std::get_if<std::vector<std::string>*>(&binding.target))
      **list = texts(*value);
    if (auto* const* whole = std::get_if<std::optional<std::int64_t>*>(&binding.target))
      **whole = value->as_integer();
    if (auto* const* number = std::get_if<std::optional<double>*>(&binding.target))
      **number = value->as_double();
    if (auto* const* pair = std::get_if<std::optional<bool>*>(&binding.target))
      **pair = value->as_bool();
    if (auto* const* flag = std::get_if<bool*>(&binding.target)) **flag = value->as_bool();
  }
  a.command = texts(stored["command"]);
}

Result<TuneStudy> tune_study(const TuneArguments& a) {
  TuneStudy made;
  made.options.objective = TRY(objective_of(a));
  made.is_greedy = a.method.empty() || a.method == "greedy";
  if (made.is_greedy && !a.vary.empty())
    return fail(ErrorCode::kUsage,
                "greedy chooses batch and learning rate alone; --method asha takes any settings",
                "--vary");
  if (made.is_greedy) made.greedy = TRY(greedy_of(a, made.options.objective));
  else TRY(search_of(a, made));
  made.study = TRY(study_of(a, made.options.objective));
  made.store = std::filesystem::absolute(a.store.empty() ? "tune.db" : a.store).lexically_normal();
  tune::add_environment(made.study, tune::checkpoint_folder(made.store).string(),
                        made.options.objective.metric);
  made.options.budget = TRY(budget_of(a));
  made.options.width = static_cast<std::size_t>(a.width.value_or(a.place.at_most.value_or(1)));
  made.options.checkpoints.count = a.keep_checkpoints.value_or(0);
  if (!a.checkpoint_space.empty()) {
    const auto bytes = parse_bytes(a.checkpoint_space);
    if (!bytes) return fail(ErrorCode::kUsage, bytes.error().message, "--checkpoint-space");
    made.options.checkpoints.bytes = bytes->count();
  }
  return made;
}

}  // namespace stoker::cli
