#include "study/definition/trials.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/random.h"
#include "base/text.h"
#include "study/definition/duration.h"
#include "study/definition/template.h"
#include "study/definition/values.h"

namespace stoker::study {
namespace {

using Values = std::vector<std::string>;

Lookup lookup_in(const std::vector<std::string>& names, const Values& values) {
  return [&names, &values](std::string_view name) -> const std::string* {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (names[i] == name) return &values[i];
    }
    return nullptr;
  };
}

double combinations_of(const Study& study) {
  double product = static_cast<double>(study.repeat);
  for (const Axis& axis : study.axes) product *= static_cast<double>(axis.rows.size());
  return product;
}

Status check_number(double trials, const char* at_least) {
  constexpr auto kMost = static_cast<double>(kMostTrials);
  if (trials <= kMost) return {};
  const double number = *at_least == 0 ? trials : kMost;
  return fail(ErrorCode::kBadInput, std::string("there are ") + at_least +
                                        with_commas(static_cast<std::int64_t>(number)) +
                                        " trials, and a study has at most " +
                                        with_commas(static_cast<std::int64_t>(kMostTrials)) +
                                        "; part it");
}

Result<std::vector<Expression>> parsed(const std::vector<std::string>& texts) {
  std::vector<Expression> all;
  for (const std::string& text : texts) all.push_back(TRY(Expression::parse(text)));
  return all;
}

/// All combinations of the axes from `at` on, appended to `values`.
class Product {
 public:
  static Result<Product> of(const Study& study) {
    Product product(study);
    product.conditions_ = TRY(parsed(study.conditions));
    product.exclude_ = TRY(parsed(study.exclude));
    for (const Axis& axis : study.axes)
      product.when_.push_back(axis.when.empty() ? Expression() : TRY(Expression::parse(axis.when)));
    return product;
  }

  Status expand(std::size_t at) {
    if (at == study_.axes.size()) return keep();
    const Axis& axis = study_.axes[at];
    if (!axis.when.empty() && !TRY(when_[at].holds(lookup_in(names_, values_))))
      return expand_row(at, axis.otherwise);
    for (const Values& row : axis.rows) TRY(expand_row(at, row));
    return {};
  }

  std::vector<Values> found;
  std::size_t left_out = 0;

 private:
  explicit Product(const Study& study) : study_(study), names_(axis_names(study)) {}

  Status expand_row(std::size_t at, const Values& row) {
    const std::size_t before = values_.size();
    values_.insert(values_.end(), row.begin(), row.end());
    TRY(expand(at + 1));
    values_.resize(before);
    return {};
  }

  Status keep() {
    const Lookup lookup = lookup_in(names_, values_);
    for (const Expression& condition : conditions_) {
      if (!TRY(condition.holds(lookup))) return ++left_out, Status{};
    }
    for (const Expression& condition : exclude_) {
      if (TRY(condition.holds(lookup))) return ++left_out, Status{};
    }
    if (seen_.insert(values_).second) found.push_back(values_);
    // A wrong study is refused before it fills memory.
    return check_number(static_cast<double>(found.size()), "more than ");
  }

  const Study& study_;
  std::vector<std::string> names_;
  std::vector<Expression> conditions_, exclude_, when_;
  Values values_;
  std::set<Values> seen_;
};

void shuffle(std::vector<TrialValues>& trials, std::uint64_t seed) {
  Random random(seed);
  for (std::size_t i = trials.size(); i > 1; --i) std::swap(trials[i - 1], trials[random.below(i)]);
}

/// In how many values two trials differ.
int distance(const TrialValues& a, const TrialValues& b) {
  int count = a.repetition == b.repetition ? 0 : 1;
  for (std::size_t i = 0; i < a.values.size(); ++i) count += a.values[i] == b.values[i] ? 0 : 2;
  return count;
}

constexpr std::size_t kMostToSpread = 2000;  // pairs are compared: a fraction of a second

/// Each next trial is as unlike those before it as there is one, so that a study which stops early
/// has seen all its axes.
void spread(std::vector<TrialValues>& trials) {
  const std::size_t end = std::min(trials.size(), kMostToSpread);
  std::vector<int> nearest(trials.size(), 1 << 20);
  for (std::size_t i = 1; i < end; ++i) {
    std::size_t farthest = i;
    for (std::size_t j = i; j < trials.size(); ++j) {
      nearest[j] = std::min(nearest[j], distance(trials[j], trials[i - 1]));
      if (nearest[j] > nearest[farthest]) farthest = j;
    }
    std::swap(trials[i], trials[farthest]);
    std::swap(nearest[i], nearest[farthest]);
  }
}

Result<std::string> filled(const std::string& text, const Lookup& lookup) {
  return TRY(Template::parse(text)).fill(lookup);
}

Result<int> whole_of(const std::string& text, const char* what, const Lookup& lookup) {
  if (text.empty()) return 0;
  const std::string value = TRY(filled(text, lookup));
  const auto number = as_number(value);
  if (!number || *number < 0 || *number != std::floor(*number) || *number > 1e6)
    return fail(ErrorCode::kBadInput, "\"" + value + "\" is no number of " + what,
                std::string("resources ") + what);
  return static_cast<int>(*number);
}

Result<double> seconds_of(const std::string& text, const char* what, const Lookup& lookup) {
  if (text.empty()) return 0.0;
  const std::string value = TRY(filled(text, lookup));
  const auto parsed_time = parse_seconds(value);
  if (!parsed_time)
    return fail(ErrorCode::kBadInput, "\"" + value + "\" is no time; write 90s, 10min, 1h30min",
                std::string("resources ") + what);
  return *parsed_time;
}

Result<Needs> needs_of(const Study& study, const Lookup& lookup) {
  const Resources& resources = study.resources;
  Needs needs;
  needs.cores = TRY(whole_of(resources.cores, "cores", lookup));
  needs.gpus = TRY(whole_of(resources.gpus, "gpus", lookup));
  if (!resources.memory.empty()) {
    const auto bytes = parse_bytes(TRY(filled(resources.memory, lookup)));
    if (!bytes) return fail(ErrorCode::kBadInput, bytes.error().message, "resources memory");
    needs.memory_bytes = bytes->count();
  }
  needs.seconds = TRY(seconds_of(resources.time, "time", lookup));
  needs.grace_seconds = TRY(seconds_of(resources.grace, "grace", lookup));
  const auto either = [](const std::string& first, const std::string& second) {
    return first.empty() ? second : first;
  };
  needs.constraint = TRY(filled(either(resources.constraint, study.slurm.constraint), lookup));
  needs.image = TRY(filled(either(resources.image, study.kubernetes.image), lookup));
  for (const auto& [label, text] : study.kubernetes.node_selector)
    needs.node_selector[label] = TRY(filled(text, lookup));
  return needs;
}

}  // namespace

Result<std::vector<TrialValues>> trials_of(const Study& study) {
  if (const double count = combinations_of(study); count > static_cast<double>(kMostCombinations))
    return fail(ErrorCode::kBadInput,
                "the axes have " + with_commas(static_cast<std::int64_t>(std::min(count, 9e18))) +
                    " combinations, and at most " +
                    with_commas(static_cast<std::int64_t>(kMostCombinations)) +
                    " are looked at; give fewer values");
  const bool all_count =
      study.conditions.empty() && study.exclude.empty() &&
      std::ranges::all_of(study.axes, [](const Axis& a) { return a.when.empty(); });
  if (all_count) TRY(check_number(combinations_of(study), ""));
  Product product = TRY(Product::of(study));
  TRY(product.expand(0));
  if (product.found.empty())
    return fail(ErrorCode::kBadInput, "conditions and exclusions leave none of the " +
                                          std::to_string(product.left_out) + " combinations");
  const std::size_t count = product.found.size() * static_cast<std::size_t>(study.repeat);
  TRY(check_number(static_cast<double>(count), ""));
  std::vector<TrialValues> trials;
  trials.reserve(count);
  for (const Values& values : product.found) {
    for (std::int64_t r = 0; r < study.repeat; ++r) trials.push_back({values, r, study.seed + r});
  }
  if (study.order == Order::kRandom) shuffle(trials, static_cast<std::uint64_t>(study.seed));
  if (study.order == Order::kInformative) spread(trials);
  return trials;
}

Result<std::map<std::string, std::string>> forecast_settings(const Study& study,
                                                             const TrialValues& trial) {
  std::vector<std::string> names = axis_names(study);
  Values values = trial.values;
  names.insert(names.end(), {"seed", "repeat", "trial", "folder"});
  values.insert(values.end(),
                {std::to_string(trial.seed), std::to_string(trial.repetition), "", ""});
  std::map<std::string, std::string> settings;
  for (const auto& [name, text] : study.forecast)
    settings[name] = TRY(filled(text, lookup_in(names, values)));
  return settings;
}

Result<TrialCommand> command_of(const Study& study, const TrialValues& trial, std::int64_t number,
                                const std::string& trial_folder) {
  std::vector<std::string> names = axis_names(study);
  Values values = trial.values;
  names.insert(names.end(), {"seed", "repeat", "trial", "folder"});
  for (const std::string& own : {std::to_string(trial.seed), std::to_string(trial.repetition),
                                 std::to_string(number), trial_folder})
    values.push_back(own);
  const Lookup lookup = lookup_in(names, values);
  TrialCommand command;
  if (study.shell) {
    const Template line = TRY(Template::parse(study.command[0]));
    command.words = {"/bin/sh", "-c", TRY(line.fill_for_shell(lookup))};
  } else {
    for (const std::string& word : study.command)
      command.words.push_back(TRY(filled(word, lookup)));
  }
  for (const auto& [name, text] : study.environment)
    command.environment.emplace_back(name, TRY(filled(text, lookup)));
  command.folder = TRY(filled(study.folder, lookup));
  command.needs = TRY(needs_of(study, lookup));
  return command;
}

}  // namespace stoker::study
