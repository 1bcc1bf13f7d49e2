#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"
#include "study/definition/study.h"
#include "study/executor/executor.h"

/// Internal to src/study/executor: what goes to Kubernetes and what comes from it, as values.
namespace stoker::study {

/// The variable in which a container without a claim finds its trial's command.
inline constexpr const char* kSpecVariable = "STOKER_TRIAL_SPEC";
/// Begins the line of a log that is a trial's result.
inline constexpr std::string_view kResultMark = "stoker-trial-result ";
inline constexpr const char* kStudyLabel = "stoker-study";
inline constexpr const char* kTrialLabel = "stoker-trial";

/// One trial on its way to Kubernetes.
struct KubernetesTrial {
  std::string name;      ///< of its Job
  std::string study_id;  ///< what all Jobs of one study share
  std::int64_t trial = 0;
  Needs needs{};
  std::string folder{};  ///< the trial's, as the pod sees it
  /// The trial's command, for a container that shares no folder; empty with a claim.
  std::string spec{};
};

/// A Job (batch/v1) of one pod that is never tried again.
[[nodiscard]] json::Value job_manifest(const KubernetesOptions& options,
                                       const KubernetesTrial& trial);

/// "stoker-1f00ba12-12", and with -2 behind it for a second attempt.
[[nodiscard]] std::string job_name(const std::string& study_id, std::int64_t trial,
                                   const TrialFiles& files);

/// A path of this machine as pods have it.
[[nodiscard]] Result<std::string> in_pod(const KubernetesOptions& options,
                                         const std::filesystem::path& path);

/// What the status of a pod says.
struct PodView {
  std::string name, job, node;
  enum class Phase : std::uint8_t { kWaiting, kRunning, kEnded } phase = Phase::kWaiting;
  std::string why_waiting{};   ///< "no node has room: ...", "ImagePullBackOff: ..."
  bool cannot_start = false;   ///< waiting will not help
  bool image_missing = false;  ///< it may still come, but has failed to
  std::optional<std::int64_t> exit_code{};
  /// Why it ended, where Kubernetes ended it.
  std::optional<TrialState> state{};
  std::string cause{}, reason{};
};
[[nodiscard]] PodView pod_view(const json::Value& pod);

/// The result that a log ends with; nullopt: none. `output` is what stands before it.
[[nodiscard]] std::optional<std::string> result_in_log(std::string_view log, std::string& output);

}  // namespace stoker::study
