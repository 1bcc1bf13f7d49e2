#include "study/executor/kubernetes.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <map>
#include <set>

#include "base/files.h"
#include "base/text.h"
#include "json/text.h"
#include "study/executor/kubernetes_job.h"
#include "study/executor/outcome.h"
#include "study/executor/program.h"
#include "study/executor/program_stream.h"
#include "system/clocks.h"
#include "system/system_files.h"

namespace stoker::study {
namespace fs = std::filesystem;
namespace {

constexpr int kLooksBeforeGone = 3;       // lists of Jobs in which a trial's is missing
constexpr double kWatchAgainSeconds = 5;  // after a watch that ended
constexpr double kResultLateSeconds = 5;  // shared folders show files late
constexpr double kClaimLateSeconds = 60;  // and let go of locks of dead machines later still
constexpr const char* kRequestTimeout = "--request-timeout=30s";

std::vector<std::string> kubectl(const KubernetesOptions& options,
                                 const std::vector<std::string>& words) {
  std::vector<std::string> all{"kubectl"};
  if (!options.context.empty()) all.push_back("--context=" + options.context);
  if (!options.name_space.empty()) all.push_back("--namespace=" + options.name_space);
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

class KubernetesExecutor final : public Executor {
 public:
  explicit KubernetesExecutor(KubernetesSettings settings) : settings_(std::move(settings)) {}

  [[nodiscard]] std::optional<std::string> impossible(const Needs& needs) const override {
    if (needs.image.empty())
      return "has no image: say --image, or image = under [kubernetes] or [resources]";
    return std::nullopt;
  }
  [[nodiscard]] bool has_room(const Needs& /*needs*/) const override { return true; }

  Result<std::string> start(std::int64_t trial, const TrialFiles& files,
                            const TrialSpec& spec) override {
    TrialSpec mapped = spec;
    if (!options().folder.empty()) mapped.folder = options().folder;
    else mapped.folder = shared() ? TRY(in_pod(options(), spec.folder)) : std::string();
    for (auto& [name, value] : mapped.environment) {
      // What the study's own variables say is the user's word for pods.
      if (shared() && name == "STOKER_CHECKPOINT_DIR") value = TRY(in_pod(options(), value));
    }
    TRY(write_spec(files, mapped));
    KubernetesTrial one{job_name(settings_.study_id, trial, files), settings_.study_id, trial,
                        spec.needs};
    one.folder = shared() ? TRY(in_pod(options(), files.folder)) : "/tmp/stoker-trial";
    if (!shared()) one.spec = spec_text(mapped);
    gathered_.push_back(std::move(one));
    trials_[trial] = {files, gathered_.back().name};
    return std::string();
  }

  Status flush() override {
    if (gathered_.empty()) return {};
    const auto asked = std::move(gathered_);
    gathered_.clear();
    json::Value items = json::Value::array();
    for (const KubernetesTrial& one : asked) items.push_back(job_manifest(options(), one));
    const json::Value list{{"apiVersion", "v1"}, {"kind", "List"}, {"items", std::move(items)}};
    const fs::path file = settings_.folder / ("jobs-" + std::to_string(asked.front().trial) + "-" +
                                              std::to_string(asked.back().trial) + ".json");
    TRY(write_file(file, list.dump() + "\n"));
    // The server checks what it is given; checking here would fetch the schemas of all its kinds.
    const auto answer =
        TRY(call({"create", "--validate=false", "-f", file.string(), "-o", "name"}));
    return take_created(asked, answer);
  }

  std::vector<std::pair<std::int64_t, std::string>> take_names() override {
    return std::move(names_);
  }

  void adopt(const TrialRow& row, const TrialFiles& files, const Needs& /*needs*/) override {
    trials_[row.id] = {files, job_name(settings_.study_id, row.id, files),
                       row.state == TrialState::kRunning};
  }

  Result<std::vector<TrialNews>> news(double wait_seconds) override {
    std::vector<TrialNews> all;
    if (seconds(wall_time()) >= next_list_) list_jobs();
    if (!watch_.runs() && seconds(wall_time()) >= next_watch_) start_watch();
    if (watch_.runs()) take_events(watch_.read(wait_seconds), all);
    else usleep(static_cast<useconds_t>(wait_seconds * 1e6));
    std::vector<std::int64_t> ids;
    for (const auto& [id, trial] : trials_) ids.push_back(id);
    for (const std::int64_t id : ids) settle(id, all);
    remove_jobs();
    return all;
  }

  void take_back() override {
    for (auto& [id, trial] : trials_) {
      const bool began =
          trial.running || (trial.pod && trial.pod->phase != PodView::Phase::kWaiting);
      if (began || Claim::look(trial.files) != Claim::Found::kNone) continue;
      remove_.push_back(trial.job);
      trial.gone = true;
    }
    remove_jobs();
  }

  void cancel_all() override {
    cancelling_ = true;
    const auto answer = call({"delete", "jobs", "-l", selector(), "--wait=false"});
    if (answer && answer->code != 0) say("Kubernetes did not cancel: " + said(*answer));
    next_list_ = 0;
  }

 private:
  struct Trial {
    TrialFiles files;
    std::string job;
    bool running = false;
    int lists_without = 0;
    bool job_over = false, gone = false;  ///< by the list of Jobs
    std::optional<PodView> pod{};         ///< as it was last heard of
    std::optional<double> over_since{}, image_since{};
    std::string failed_by_us{};  ///< why its Job is given up
  };

  [[nodiscard]] const KubernetesOptions& options() const { return settings_.options; }
  [[nodiscard]] bool shared() const { return !options().claim.empty(); }
  [[nodiscard]] std::string selector() const {
    return std::string(kStudyLabel) + "=" + settings_.study_id;
  }

  [[nodiscard]] Result<ProgramAnswer> call(std::vector<std::string> words) const {
    words.insert(words.begin(), kRequestTimeout);
    return run_program(kubectl(options(), words));
  }

  static std::string said(const ProgramAnswer& answer) {
    return printable(std::string(trimmed(answer.errors)));
  }

  void say(const std::string& sentence) {
    if (said_.insert(sentence).second) settings_.say(sentence);
  }

  Status take_created(const std::vector<KubernetesTrial>& asked, const ProgramAnswer& answer) {
    std::set<std::string> created;
    for (const std::string& line : split(answer.output, '\n'))
      created.insert(line.substr(line.find('/') + 1));
    std::vector<std::string> refused;
    for (const KubernetesTrial& one : asked) {
      // One that exists was made by a controller that died before it heard of that.
      const bool exists =
          answer.errors.find('"' + one.name + "\" already exists") != std::string::npos;
      if (created.contains(one.name) || exists) {
        names_.emplace_back(one.trial, one.name);
        continue;
      }
      refused.push_back(one.name);
      trials_.erase(one.trial);
    }
    next_list_ = std::min(next_list_, seconds(wall_time()) + settings_.poll_seconds);
    if (refused.empty()) return {};
    remove_.insert(remove_.end(), refused.begin(), refused.end());  // whatever became of them
    remove_jobs();
    return fail(ErrorCode::kBadInput, "Kubernetes refused the trials: " + said(answer),
                "kubectl create");
  }

  void list_jobs() {
    next_list_ = seconds(wall_time()) + settings_.poll_seconds;
    if (trials_.empty()) return;
    const auto answer = call({"get", "jobs", "-l", selector(), "-o", "json"});
    if (!answer || answer->code != 0) {
      if (answer) say("Jobs cannot be listed at present: " + said(*answer));
      return;
    }
    const auto list = json::parse(answer->output);
    if (!list) return;
    std::map<std::string, bool> over;
    for (const json::Value& job : (*list)["items"]) {
      bool ended = false;
      for (const json::Value& condition : job["status"]["conditions"]) {
        const std::string& type = condition["type"].as_string();
        ended = ended || ((type == "Complete" || type == "Failed") &&
                          condition["status"].as_string() == "True");
      }
      over[job["metadata"]["name"].as_string()] = ended;
    }
    for (auto& [id, trial] : trials_) {
      const auto found = over.find(trial.job);
      if (found == over.end()) {
        trial.gone = trial.gone || ++trial.lists_without >= kLooksBeforeGone || cancelling_;
        continue;
      }
      trial.lists_without = 0;
      trial.job_over = found->second;
    }
  }

  void start_watch() {
    next_watch_ = seconds(wall_time()) + kWatchAgainSeconds;
    if (!watch_.errors().empty())
      say("kubectl watches again: " + printable(std::string(trimmed(watch_.errors()))));
    if (trials_.empty()) return;
    stream_ = {};
    const auto started =
        watch_.start(kubectl(options(), {"get", "pods", "-l", selector(), "--watch",
                                         "--output-watch-events", "-o", "json"}));
    if (!started) say(started.error().text());
  }

  void take_events(const std::string& bytes, std::vector<TrialNews>& all) {
    for (const std::string& text : stream_.add(bytes)) {
      const auto event = json::parse(text);
      if (!event) continue;
      const PodView pod = pod_view((*event)["object"]);
      for (auto& [id, trial] : trials_) {
        if (trial.job == pod.job) take_pod(id, trial, pod, (*event)["type"].as_string(), all);
      }
    }
  }

  void take_pod(std::int64_t id, Trial& trial, const PodView& pod, const std::string& type,
                std::vector<TrialNews>& all) {
    if (trial.pod && trial.pod->name != pod.name)
      say("Kubernetes started a second pod for trial " + std::to_string(id) + ": " + pod.name);
    trial.pod = pod;
    trial.image_since = pod.image_missing ? trial.image_since.value_or(seconds(wall_time()))
                                          : std::optional<double>();
    if (!pod.why_waiting.empty())
      say("trial " + std::to_string(id) + " waits: " + printable(pod.why_waiting));
    if (pod.cannot_start) trial.failed_by_us = pod.why_waiting;
    if (pod.phase == PodView::Phase::kRunning && !trial.running) {
      trial.running = true;
      all.push_back({id, TrialNews::Kind::kRunning, {}, pod.node, {}});
    }
    if (type == "DELETED") {
      trial.gone = trial.gone || cancelling_;
      next_list_ = 0;
    }
  }

  [[nodiscard]] static bool over(const Trial& trial) {
    return trial.gone || trial.job_over || !trial.failed_by_us.empty() ||
           (trial.pod && trial.pod->phase == PodView::Phase::kEnded);
  }

  void settle(std::int64_t id, std::vector<TrialNews>& all) {
    Trial& trial = trials_.at(id);
    if (trial.image_since &&
        seconds(wall_time()) - *trial.image_since > settings_.image_patience_seconds)
      trial.failed_by_us = trial.pod->why_waiting;
    if (!over(trial)) return;
    if (!trial.over_since) trial.over_since = seconds(wall_time());
    if (trial.job_over && (!trial.pod || trial.pod->phase != PodView::Phase::kEnded))
      look_at_pod(trial);
    auto news = shared() ? from_folder(id, trial) : from_log(id, trial);
    if (!news) return;
    explain(trial, *news);
    if (news->kind == TrialNews::Kind::kEnded || !trial.gone) remove_.push_back(trial.job);
    all.push_back(std::move(*news));
    trials_.erase(id);
  }

  /// The list of Jobs may know of an end before the watch tells of it.
  void look_at_pod(Trial& trial) const {
    const auto answer = call({"get", "pods", "-l", "job-name=" + trial.job, "-o", "json"});
    const auto list = json::parse(answer && answer->code == 0 ? answer->output : "");
    if (!list || (*list)["items"].empty()) return;
    trial.pod = pod_view((*list)["items"][0]);
  }

  std::optional<TrialNews> from_folder(std::int64_t id, const Trial& trial) const {
    const double since = seconds(wall_time()) - *trial.over_since;
    std::error_code error;
    const bool there = fs::exists(trial.files.result(), error);
    if (!there && trial.failed_by_us.empty() && since < kResultLateSeconds) return std::nullopt;
    auto news = settle_trial(id, trial.files, trial.running || !trial.failed_by_us.empty());
    if (news || since < kClaimLateSeconds) return news;
    return without_result(id, trial);  // its machine is gone and has not let go of the lock
  }

  std::optional<TrialNews> from_log(std::int64_t id, const Trial& trial) const {
    if (const auto there = read_file(trial.files.result(), Bytes(256LL << 20))) {
      if (auto result = parse_result(*there, trial.files.result().string()))
        return TrialNews{id, TrialNews::Kind::kEnded, std::move(*result), {}, {}};
    }
    if (!trial.failed_by_us.empty() || !trial.pod) return without_result(id, trial);
    const auto answer = call({"logs", trial.pod->name});
    const double since = seconds(wall_time()) - *trial.over_since;
    // A server that does not answer at present may do so later; a pod that is gone will not.
    if (!answer || (answer->code != 0 && !trial.gone && since < kClaimLateSeconds))
      return std::nullopt;
    std::string output;
    const auto text = result_in_log(answer->output, output);
    [[maybe_unused]] const auto kept = write_file(trial.files.output(), output);
    auto result = text ? parse_result(*text, "the log of " + trial.pod->name)
                       : Result<TrialResult>(tl::unexpected(Error{}));
    if (!result) return without_result(id, trial);
    // In the folder first, so that it outlives the pod whatever becomes of this process.
    if (!write_file(trial.files.result(), *text + "\n")) return std::nullopt;
    return TrialNews{id, TrialNews::Kind::kEnded, std::move(*result), {}, {}};
  }

  TrialNews without_result(std::int64_t id, const Trial& trial) const {
    TrialNews news{id, TrialNews::Kind::kEnded};
    const bool began = trial.running || (trial.pod && trial.pod->phase != PodView::Phase::kWaiting);
    if (!began && trial.failed_by_us.empty() && trial.gone) {
      news.kind = TrialNews::Kind::kWithdrawn;
      news.why = "its Job was deleted before it began";
      return news;
    }
    news.result.state = cancelling_ ? TrialState::kCancelled : TrialState::kFailed;
    news.result.cause = cancelling_ ? "cancelled" : "lost";
    news.result.reason = cancelling_ ? "was cancelled" : "lost: its pod ended without a result";
    news.result.ended = news.result.started = now_seconds();
    if (trial.pod) news.result.host = trial.pod->node;
    if (trial.pod) news.result.exit_code = trial.pod->exit_code;
    return news;
  }

  /// Kubernetes knows why a pod left no result, or why its runner was told to end.
  void explain(const Trial& trial, TrialNews& news) const {
    TrialResult& result = news.result;
    if (news.kind != TrialNews::Kind::kEnded) return;
    if (!trial.failed_by_us.empty()) {
      result.state = TrialState::kFailed;
      result.cause = "cannot_start";
      result.reason = "its pod cannot start: " + printable(trial.failed_by_us);
      return;
    }
    const bool unasked = result.state == TrialState::kCancelled && !cancelling_;
    if (result.cause != "lost" && !unasked) return;
    if (!trial.pod || !trial.pod->state) {
      if (unasked) result.reason = "was cancelled: its pod was told to end, not by this study";
      return;
    }
    result.state = *trial.pod->state;
    result.cause = trial.pod->cause;
    result.reason = printable(trial.pod->reason);
  }

  /// Jobs whose results are kept.
  void remove_jobs() {
    if (remove_.empty()) return;
    std::vector<std::string> words{"delete", "jobs", "--ignore-not-found", "--wait=false"};
    words.insert(words.end(), remove_.begin(), remove_.end());
    remove_.clear();  // one that stays is removed by the cluster after keep_seconds
    [[maybe_unused]] const auto answer = call(words);
  }

  KubernetesSettings settings_;
  std::vector<KubernetesTrial> gathered_;
  std::map<std::int64_t, Trial> trials_;
  std::vector<std::pair<std::int64_t, std::string>> names_;
  std::vector<std::string> remove_;
  std::set<std::string> said_;
  ProgramStream watch_;
  ObjectStream stream_;
  double next_list_ = 0, next_watch_ = 0;
  bool cancelling_ = false;
};

Status check_context(const KubernetesOptions& options) {
  const bool in_cluster = std::getenv("KUBERNETES_SERVICE_HOST") != nullptr;
  const auto words = options.context.empty()
                         ? std::vector<std::string>{"kubectl", "config", "current-context"}
                         : std::vector<std::string>{"kubectl",       "config", "get-contexts",
                                                    options.context, "-o",     "name"};
  const auto answer = run_program(words);
  if (!answer)
    return fail(ErrorCode::kNotFound,
                "there is no kubectl here: install it (Debian's package kubernetes-client)",
                "--on kubernetes");
  if (answer->code == 0 || (options.context.empty() && in_cluster)) return {};
  return fail(ErrorCode::kBadInput,
              "kubectl does not know which cluster is meant (" +
                  printable(std::string(trimmed(answer->errors))) +
                  "); `kubectl config get-contexts` lists those there are, `kubectl config "
                  "use-context NAME` chooses one, or say context = under [kubernetes]",
              "--on kubernetes");
}

Status check_rights(const KubernetesOptions& options) {
  const auto answer = TRY(
      run_program(kubectl(options, {kRequestTimeout, "auth", "can-i", "create", "jobs.batch"})));
  if (answer.code == 0) return {};
  const bool no = trimmed(answer.output).starts_with("no");
  const std::string words = printable(std::string(trimmed(answer.errors)));
  return fail(ErrorCode::kBadInput,
              no ? "the user of this context may not create Jobs there; ask for the right, or for "
                   "another namespace"
                 : "the cluster does not answer: " + words,
              "--on kubernetes");
}

/// This program, where pods find it: one copy beside the trials.
Status put_program(const fs::path& from, const fs::path& to) {
  std::error_code error;
  if (fs::exists(to, error) && fs::file_size(to, error) == fs::file_size(from, error) &&
      fs::last_write_time(to, error) >= fs::last_write_time(from, error))
    return {};
  const fs::path draft = to.string() + ".tmp";
  if (fs::copy_file(from, draft, fs::copy_options::overwrite_existing, error))
    fs::rename(draft, to, error);
  if (!error) return {};
  return fail(ErrorCode::kIo, "cannot be written: " + error.message(), to.string());
}

}  // namespace

Result<std::unique_ptr<Executor>> kubernetes_executor(KubernetesSettings settings) {
  TRY(check_context(settings.options));
  TRY(check_rights(settings.options));
  std::error_code error;
  fs::create_directories(settings.folder, error);
  if (error)
    return fail(ErrorCode::kIo, "cannot be made: " + error.message(), settings.folder.string());
  KubernetesOptions& options = settings.options;
  if (!options.claim.empty() && options.program.empty()) {
    const std::string here = options.here.empty() ? options.mount : options.here;
    const fs::path program = settings.folder / "stoker";
    TRY(put_program(settings.program, program));
    const std::string text = program.string();
    if (text.starts_with(here + "/")) options.program = options.mount + text.substr(here.size());
  }
  return std::unique_ptr<Executor>(std::make_unique<KubernetesExecutor>(std::move(settings)));
}

}  // namespace stoker::study
