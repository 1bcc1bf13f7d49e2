#include "study/executor/kubernetes_job.h"

#include <algorithm>

#include "base/text.h"

namespace stoker::study {
namespace {

using json::Value;

/// Beside the trial's own memory: the runner, and what the kernel counts for its files.
constexpr std::int64_t kRunnerBytes = 128LL << 20;
constexpr double kDeadlineMargin = 60;  // beyond the runner's own limit, in seconds
constexpr double kGraceMargin = 30;     // to write the result, in seconds

Value labels_of(const KubernetesTrial& trial) {
  return {{"app.kubernetes.io/managed-by", "stoker"},
          {kStudyLabel, trial.study_id},
          {kTrialLabel, std::to_string(trial.trial)}};
}

Value resources_of(const KubernetesOptions& options, const Needs& needs) {
  Value requests = Value::object(), limits = Value::object();
  if (needs.cores > 0) requests["cpu"] = std::to_string(needs.cores);
  if (needs.cores > 0) limits["cpu"] = std::to_string(needs.cores);
  if (needs.memory_bytes > 0) {
    requests["memory"] = std::to_string(needs.memory_bytes);
    limits["memory"] = std::to_string(needs.memory_bytes + kRunnerBytes);
  }
  if (needs.gpus > 0) limits[options.gpu_resource] = std::to_string(needs.gpus);
  return {{"requests", std::move(requests)}, {"limits", std::move(limits)}};
}

Value container_of(const KubernetesOptions& options, const KubernetesTrial& trial) {
  const std::string program = options.program.empty() ? "stoker" : options.program;
  Value command = Value::array({program, "run-trial", trial.folder});
  if (!options.prologue.empty()) {
    // The words behind -c are $0 and on: the folder is no part of the script.
    command = Value::array({"/bin/sh", "-c", options.prologue + "\nexec \"$0\" run-trial \"$1\"",
                            program, trial.folder});
  }
  // PyTorch's loader workers hand batches over in /dev/shm, of which a container has 64 MB.
  Value mounts = Value::array();
  mounts.push_back({{"name", "shared-memory"}, {"mountPath", "/dev/shm"}});
  if (!options.claim.empty()) mounts.push_back({{"name", "study"}, {"mountPath", options.mount}});
  Value environment = Value::array();
  if (!trial.spec.empty()) environment.push_back({{"name", kSpecVariable}, {"value", trial.spec}});
  return {{"name", "trial"},
          {"image", trial.needs.image},
          {"command", std::move(command)},
          {"env", std::move(environment)},
          {"resources", resources_of(options, trial.needs)},
          {"volumeMounts", std::move(mounts)}};
}

Value pod_of(const KubernetesOptions& options, const KubernetesTrial& trial) {
  Value volumes = Value::array(), containers = Value::array();
  volumes.push_back({{"name", "shared-memory"}, {"emptyDir", {{"medium", "Memory"}}}});
  if (!options.claim.empty())
    volumes.push_back(
        {{"name", "study"}, {"persistentVolumeClaim", {{"claimName", options.claim}}}});
  containers.push_back(container_of(options, trial));
  const Needs& needs = trial.needs;
  Value pod{{"restartPolicy", "Never"},
            {"terminationGracePeriodSeconds",
             static_cast<std::int64_t>(needs.grace_seconds + kGraceMargin)},
            {"containers", std::move(containers)},
            {"volumes", std::move(volumes)}};
  // The pod's deadline and not the Job's, which counts the time of waiting for a node, too.
  if (needs.seconds > 0)
    pod["activeDeadlineSeconds"] =
        static_cast<std::int64_t>(needs.seconds + needs.grace_seconds + kDeadlineMargin);
  if (!needs.node_selector.empty()) pod["nodeSelector"] = needs.node_selector;
  if (!options.service_account.empty()) pod["serviceAccountName"] = options.service_account;
  if (!options.pull_secret.empty()) {
    Value secrets = Value::array();
    secrets.push_back({{"name", options.pull_secret}});
    pod["imagePullSecrets"] = std::move(secrets);
  }
  if (!options.tolerate.empty()) {
    Value tolerations = Value::array();
    for (const std::string& key : options.tolerate)
      tolerations.push_back({{"key", key}, {"operator", "Exists"}});
    pod["tolerations"] = std::move(tolerations);
  }
  return pod;
}

/// Reasons for which a container waits in vain.
constexpr std::string_view kInVain[] = {"InvalidImageName", "CreateContainerConfigError",
                                        "CreateContainerError", "RunContainerError"};

std::string with_message(const Value& state) {
  const std::string& message = state["message"].as_string();
  return state["reason"].as_string() + (message.empty() ? "" : ": " + message);
}

void read_waiting(const Value& pod, PodView& view) {
  for (const Value& condition : pod["status"]["conditions"]) {
    if (condition["type"].as_string() == "PodScheduled" &&
        condition["status"].as_string() == "False")
      view.why_waiting = with_message(condition);
  }
  for (const Value& container : pod["status"]["containerStatuses"]) {
    const Value& waiting = container["state"]["waiting"];
    if (waiting.is_null()) continue;
    const std::string& reason = waiting["reason"].as_string();
    view.cannot_start = std::ranges::find(kInVain, reason) != std::end(kInVain);
    view.image_missing = reason == "ErrImagePull" || reason == "ImagePullBackOff";
    if (view.cannot_start || view.image_missing) view.why_waiting = with_message(waiting);
  }
}

/// How Kubernetes says that it was Kubernetes who ended a pod.
struct PodEnd {
  std::string_view word;
  TrialState state;
  std::string_view cause;
};
constexpr PodEnd kReasons[] = {
    {"DeadlineExceeded", TrialState::kTimedOut, "time_limit"},
    {"OOMKilled", TrialState::kOutOfMemory, "host_out_of_memory"},
    {"Evicted", TrialState::kFailed, "evicted"},
    {"Preempting", TrialState::kFailed, "preempted"},
    {"PreemptionByScheduler", TrialState::kFailed, "preempted"},
    {"PreemptionByKubeScheduler", TrialState::kFailed, "preempted"},
    {"EvictionByEvictionAPI", TrialState::kFailed, "evicted"},
    {"DeletionByTaintManager", TrialState::kFailed, "node_failure"},
    {"DeletionByPodGC", TrialState::kFailed, "node_failure"},
    {"TerminationByKubelet", TrialState::kFailed, "node_failure"},
    {"Terminated", TrialState::kFailed, "node_failure"},
    {"Shutdown", TrialState::kFailed, "node_failure"},
    {"NodeShutdown", TrialState::kFailed, "node_failure"},
    {"NodeLost", TrialState::kFailed, "node_failure"},
    {"NodeAffinity", TrialState::kFailed, "node_failure"},
};

void read_end(const Value& said, PodView& view) {
  for (const PodEnd& end : kReasons) {
    if (view.state || said["reason"].as_string() != end.word) continue;
    view.state = end.state;
    view.cause = end.cause;
    view.reason = "Kubernetes ended it (" + with_message(said) + ")";
  }
}

}  // namespace

Value job_manifest(const KubernetesOptions& options, const KubernetesTrial& trial) {
  Value metadata{{"name", trial.name}, {"labels", labels_of(trial)}};
  return {{"apiVersion", "batch/v1"},
          {"kind", "Job"},
          {"metadata", std::move(metadata)},
          {"spec",
           {{"parallelism", 1},
            {"completions", 1},
            {"backoffLimit", 0},
            {"ttlSecondsAfterFinished", static_cast<std::int64_t>(options.keep_seconds)},
            {"template",
             {{"metadata", {{"labels", labels_of(trial)}}}, {"spec", pod_of(options, trial)}}}}}};
}

std::string job_name(const std::string& study_id, std::int64_t trial, const TrialFiles& files) {
  const std::string folder = files.folder.filename().string();
  const auto dash = folder.find('-');
  return "stoker-" + study_id + "-" + std::to_string(trial) +
         (dash == std::string::npos ? "" : folder.substr(dash));
}

Result<std::string> in_pod(const KubernetesOptions& options, const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  const std::string here = options.here.empty() ? options.mount : options.here;
  const std::string text = path.lexically_normal().string();
  const std::string root = fs::path(here).lexically_normal().string();
  if (text == root) return options.mount;
  if (text.starts_with(root + "/")) return options.mount + text.substr(root.size());
  return fail(ErrorCode::kBadInput,
              "does not lie in " + here + ", which pods have at " + options.mount +
                  "; put the study there with --store, or say here = (and folder =) under "
                  "[kubernetes]",
              text);
}

PodView pod_view(const Value& pod) {
  PodView view;
  const Value& status = pod["status"];
  view.name = pod["metadata"]["name"].as_string();
  view.job = pod["metadata"]["labels"]["job-name"].as_string();
  if (view.job.empty())
    view.job = pod["metadata"]["labels"]["batch.kubernetes.io/job-name"].as_string();
  view.node = pod["spec"]["nodeName"].as_string();
  const std::string& phase = status["phase"].as_string();
  if (phase == "Running") view.phase = PodView::Phase::kRunning;
  if (phase == "Succeeded" || phase == "Failed") view.phase = PodView::Phase::kEnded;
  if (view.phase == PodView::Phase::kWaiting) read_waiting(pod, view);
  if (view.phase != PodView::Phase::kEnded) return view;
  read_end(status, view);
  for (const Value& condition : status["conditions"]) {
    if (condition["type"].as_string() == "DisruptionTarget" &&
        condition["status"].as_string() == "True")
      read_end(condition, view);
  }
  for (const Value& container : status["containerStatuses"]) {
    const Value& terminated = container["state"]["terminated"];
    if (terminated.is_null()) continue;
    view.exit_code = terminated["exitCode"].as_integer();
    read_end(terminated, view);
  }
  return view;
}

std::optional<std::string> result_in_log(std::string_view log, std::string& output) {
  const std::string mark = "\n" + std::string(kResultMark);
  const auto at = log.rfind(mark);
  output = std::string(log.substr(0, at));
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view line = log.substr(at + mark.size());
  return std::string(line.substr(0, line.find('\n')));
}

}  // namespace stoker::study
