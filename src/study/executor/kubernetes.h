#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "study/definition/study.h"
#include "study/executor/executor.h"

namespace stoker::study {

struct KubernetesSettings {
  KubernetesOptions options;
  std::string study_id;           ///< a label that all Jobs of this study share
  std::filesystem::path folder;   ///< STORE.trials
  std::filesystem::path program;  ///< this binary: put on the claim where no other is named
  /// How often Jobs are listed. Pods are watched: what happens to them is heard of at once.
  double poll_seconds = 30;
  /// How long an image may fail to come before its trial has failed.
  double image_patience_seconds = 120;
  /// Told what hinders trials or Stoker, once each.
  std::function<void(const std::string& sentence)> say = [](const std::string&) {};
};

/// Each trial as a Job through `kubectl`, as the user's context has it. With a volume claim results
/// come as files of the shared folder; without one they are read from pods' logs, and a trial that
/// Kubernetes starts twice is run twice. Jobs are never tried again (backoffLimit 0). Refused
/// without kubectl, a context, or an image.
[[nodiscard]] Result<std::unique_ptr<Executor>> kubernetes_executor(KubernetesSettings settings);

}  // namespace stoker::study
