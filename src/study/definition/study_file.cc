#include "study/definition/study_file.h"

#include "base/files.h"
#include "base/text.h"
#include "base/toml_table.h"
#include "study/definition/duration.h"
#include "study/definition/study_words.h"
#include "study/definition/template.h"
#include "study/definition/values.h"

namespace stoker::study {
namespace {

constexpr Bytes kLargestFile{4LL << 20};
constexpr const char* kPage = "docs/reference/study-file.md";
constexpr Range kCount{0, 1e9, "times"}, kHours{0, 1e9, "hours"},
    kMoney{0, 1e12, "of any currency"};

std::vector<std::vector<std::string>> rows_of(const std::vector<std::string>& values) {
  std::vector<std::vector<std::string>> rows;
  for (const std::string& value : values) rows.push_back({value});
  return rows;
}

/// Elements of a list may be ranges; a single text may be a whole list.
Result<std::vector<std::string>> axis_values(const std::vector<std::string>& words, bool one_text) {
  if (one_text && words.size() == 1) return parse_values(words[0], "repeat = 2");
  std::vector<std::string> all;
  for (const std::string& word : words) {
    const auto range = TRY(parse_range(word));
    if (range) all.insert(all.end(), range->begin(), range->end());
    else all.push_back(word);
  }
  return all;
}

/// Reads one study file; the first error in the file's order is reported.
class Reader {
 public:
  Reader(TomlTable root) : root_(std::move(root)) {}

  /// A key that nobody knows comes first: it may be the command, written otherwise.
  Result<Study> read() {
    Study study = TRY(read_all());
    if (!root_.has("command"))
      return fail(ErrorCode::kBadInput, "is missing: what is to be run", root_.place("command"));
    return study;
  }

  /// Reads a file that may tell of a cluster alone, without a command.
  Result<Study> read_all() {
    command();
    root_.text("name", study_.name);
    root_.text("folder", study_.folder);
    environment();
    axes();
    linked();
    study_.conditions = root_.words("conditions").value_or(std::vector<std::string>{});
    study_.exclude = root_.words("exclude").value_or(std::vector<std::string>{});
    whole(root_, "repeat", study_.repeat);
    whole(root_, "seed", study_.seed);
    order();
    resources();
    metrics();
    budget();
    slurm();
    kubernetes();
    forecast();
    Bytes output(study_.output_bytes);
    root_.size("output", Range{0, 1e15, "bytes"}, output);
    study_.output_bytes = output.count();
    if (auto error = root_.finish()) return tl::unexpected(std::move(*error));
    if (first_) return tl::unexpected(std::move(*first_));
    return std::move(study_);
  }

 private:
  void keep(std::optional<Error> error) {
    if (error && !first_) first_ = std::move(error);
  }

  static void whole(TomlTable& table, const char* key, std::int64_t& target) {
    int value = static_cast<int>(target);
    table.integer(key, kCount, value);
    target = value;
  }

  void command() {
    root_.boolean("shell", study_.shell);
    const bool text = root_.is_text("command");
    auto words = root_.words("command");
    if (!words) return;
    if (study_.shell || !text) {
      if (study_.shell && words->size() != 1)
        return root_.reject("command", "must be one text where a shell runs it");
      study_.command = std::move(*words);
      return;
    }
    auto split = split_words((*words)[0]);
    if (!split) return root_.reject("command", split.error().message);
    study_.command = std::move(*split);
  }

  void environment() {
    TomlTable table = root_.table("environment");
    for (const std::string& key : table.keys()) {
      if (auto value = table.words(key); value && value->size() == 1)
        study_.environment[key] = (*value)[0];
    }
    keep(table.finish());
  }

  void forecast() {
    TomlTable table = root_.table("forecast");
    for (const std::string& key : table.keys()) {
      if (auto value = table.words(key); value && value->size() == 1)
        study_.forecast[key] = (*value)[0];
    }
    if (!study_.forecast.empty() && !study_.forecast.contains("model"))
      table.reject("", "needs model = the model that is trained");
    keep(table.finish());
  }

  void axes() {
    TomlTable table = root_.table("axes");
    for (const std::string& key : table.keys()) {
      Axis axis{{key}, {}};
      axis.place = table.place(key);
      if (table.is_table(key)) {
        TomlTable detail = table.table(key);
        values(detail, "values", axis);
        condition(detail, axis);
        keep(detail.finish());
      } else {
        values(table, key, axis);
      }
      study_.axes.push_back(std::move(axis));
    }
    keep(table.finish());
  }

  static void values(TomlTable& table, const std::string& key, Axis& axis) {
    const bool text = table.is_text(key);
    const auto words = table.words(key);
    if (!words) return;
    auto found = axis_values(*words, text);
    if (found) axis.rows = rows_of(*found);
    else table.reject(key, found.error().message);
  }

  static void condition(TomlTable& table, Axis& axis) {
    table.text("when", axis.when);
    if (auto otherwise = table.words("otherwise")) axis.otherwise = std::move(*otherwise);
  }

  void linked() {
    for (TomlTable& table : root_.tables("linked")) {
      Axis axis;
      axis.place = table.location();
      axis.names = table.words("names").value_or(std::vector<std::string>{});
      axis.rows = table.rows("rows").value_or(std::vector<std::vector<std::string>>{});
      if (axis.names.empty()) table.reject("names", "must be a list of names");
      condition(table, axis);
      keep(table.finish());
      if (!axis.names.empty()) study_.axes.push_back(std::move(axis));
    }
  }

  void order() {
    std::string typed(name_of(study_.order));
    root_.text("order", typed);
    if (const auto found = order_named(typed)) study_.order = *found;
    else root_.reject("order", "is written, random, cheapest or informative");
  }

  void resources() {
    TomlTable table = root_.table("resources");
    for (const auto& [key, target] : {std::pair{"cores", &study_.resources.cores},
                                      {"gpus", &study_.resources.gpus},
                                      {"memory", &study_.resources.memory},
                                      {"time", &study_.resources.time},
                                      {"grace", &study_.resources.grace},
                                      {"constraint", &study_.resources.constraint},
                                      {"image", &study_.resources.image}}) {
      if (auto word = table.word(key)) *target = std::move(*word);
    }
    keep(table.finish());
  }

  void metrics() {
    TomlTable table = root_.table("metrics");
    for (const std::string& key : table.keys()) {
      Metric metric{key};
      if (!table.is_table(key)) {
        if (auto word = table.words(key); word && word->size() == 1) metric.pattern = (*word)[0];
        study_.metrics.push_back(std::move(metric));
        continue;
      }
      TomlTable detail = table.table(key);
      std::string goal, take(name_of(metric.take));
      detail.text("pattern", metric.pattern);
      detail.text("goal", goal);
      detail.text("take", take);
      bool needed = true;
      detail.boolean("needed", needed);
      metric.needed = needed;
      if (const auto found = goal_named(goal)) metric.goal = *found;
      else detail.reject("goal", "is max or min");
      if (const auto found = take_named(take)) metric.take = *found;
      else detail.reject("take", "is last, best, first, mean, max or min");
      keep(detail.finish());
      study_.metrics.push_back(std::move(metric));
    }
    keep(table.finish());
  }

  void budget() {
    TomlTable table = root_.table("budget");
    Budget& budget = study_.budget;
    whole(table, "failures", budget.failures);
    std::string time;
    if (auto word = table.word("time")) time = *word;
    if (!time.empty()) {
      if (const auto seconds = parse_seconds(time)) budget.seconds = *seconds;
      else table.reject("time", "is no time; write 90s, 10min, 1h30min");
    }
    table.number("gpu_hours", kHours, 1, budget.gpu_hours);
    table.number("money", kMoney, 1, budget.money);
    table.number("price", kMoney, 1, budget.price_of_gpu_hour);
    if (budget.money > 0 && budget.price_of_gpu_hour == 0)
      table.reject("money", "needs price = what a GPU-hour costs");
    keep(table.finish());
  }

  void slurm() {
    TomlTable table = root_.table("slurm");
    SlurmOptions& slurm = study_.slurm;
    table.text("partition", slurm.partition);
    table.text("account", slurm.account);
    table.text("constraint", slurm.constraint);
    table.text("qos", slurm.qos);
    table.text("prologue", slurm.prologue);
    if (auto options = table.words("options")) slurm.options = std::move(*options);
    keep(table.finish());
  }

  void kubernetes() {
    TomlTable table = root_.table("kubernetes");
    KubernetesOptions& k = study_.kubernetes;
    for (const auto& [key, target] : {std::pair{"context", &k.context},
                                      {"namespace", &k.name_space},
                                      {"image", &k.image},
                                      {"service_account", &k.service_account},
                                      {"pull_secret", &k.pull_secret},
                                      {"claim", &k.claim},
                                      {"mount", &k.mount},
                                      {"here", &k.here},
                                      {"folder", &k.folder},
                                      {"program", &k.program},
                                      {"gpu_resource", &k.gpu_resource},
                                      {"prologue", &k.prologue}})
      table.text(key, *target);
    if (auto tolerate = table.words("tolerate")) k.tolerate = std::move(*tolerate);
    if (auto keep = table.word("keep")) {
      if (const auto seconds = parse_seconds(*keep)) k.keep_seconds = *seconds;
      else table.reject("keep", "is no time; write 90s, 10min, 1h30min");
    }
    TomlTable selector = table.table("node_selector");
    k.node_selector = selector.texts();
    keep(selector.finish());
    if (!k.claim.empty() && k.mount.empty())
      table.reject("claim", "needs mount = where pods have it");
    keep(table.finish());
  }

  TomlTable root_;
  Study study_;
  std::optional<Error> first_;
};

}  // namespace

Result<Study> parse_study(std::string_view text, const std::string& file) {
  const TomlDocument document = TRY(TomlDocument::parse(text, file, kPage));
  Study study = TRY(Reader(document.root()).read());
  if (const Status good = check_study(study); !good) {
    Error error = good.error();
    if (!error.where.starts_with(file))
      error.where = error.where.empty() ? file : file + ", " + error.where;
    return tl::unexpected(std::move(error));
  }
  return study;
}

Result<Study> read_study_file(const std::filesystem::path& path) {
  return parse_study(TRY(read_file(path, kLargestFile)), path.string());
}

Result<Study> read_cluster_file(const std::filesystem::path& path) {
  const std::string text = TRY(read_file(path, kLargestFile));
  const TomlDocument document = TRY(TomlDocument::parse(text, path.string(), kPage));
  const Study read = TRY(Reader(document.root()).read_all());
  Study cluster;
  cluster.slurm = read.slurm;
  cluster.kubernetes = read.kubernetes;
  cluster.resources = read.resources;
  return cluster;
}

Result<Axis> parse_axis(const std::string& typed) {
  const std::string place = "--vary " + typed;
  const auto equals = typed.find('=');
  if (equals == std::string::npos || equals == 0)
    return fail(ErrorCode::kUsage, "write NAME=VALUES: --vary batch=32,64,128", place);
  Axis axis;
  axis.place = place;
  for (const std::string& name : split(typed.substr(0, equals), ',')) axis.names.push_back(name);
  const std::string values = typed.substr(equals + 1);
  if (axis.names.size() == 1) {
    auto found = parse_values(values, "--repeat 2");
    if (!found) return fail(ErrorCode::kBadInput, found.error().message, place);
    axis.rows = rows_of(*found);
    return axis;
  }
  for (const std::string& row : split(values, ',')) axis.rows.push_back(split(row, ':'));
  return axis;
}

Result<Metric> parse_metric(const std::string& typed) {
  const auto equals = typed.find('=');
  Metric metric{typed.substr(0, equals)};
  if (const auto colon = metric.name.rfind(':'); colon != std::string::npos) {
    const auto goal = goal_named(metric.name.substr(colon + 1));
    if (!goal)
      return fail(ErrorCode::kUsage, "the goal is max or min: --metric loss:min",
                  "--metric " + typed);
    metric.goal = *goal;
    metric.name.resize(colon);
  }
  if (equals != std::string::npos) metric.pattern = typed.substr(equals + 1);
  if (metric.name.empty() || (equals != std::string::npos && metric.pattern.empty()))
    return fail(ErrorCode::kUsage, "write NAME or NAME=PATTERN: --metric 'accuracy=acc: ([0-9.]+)'",
                "--metric " + typed);
  return metric;
}

}  // namespace stoker::study
