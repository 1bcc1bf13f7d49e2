#include "cli/verbs/study_executor.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/random.h"
#include "cli/outside/output.h"
#include "study/executor/kubernetes.h"
#include "study/executor/local.h"
#include "study/executor/slurm.h"

namespace stoker::cli {
namespace fs = std::filesystem;
namespace {

/// What the variable says in seconds: tests do not wait as long as a cluster may.
double seconds_in(const char* variable, double otherwise) {
  const char* seconds = std::getenv(variable);
  return seconds == nullptr ? otherwise : std::max(std::strtod(seconds, nullptr), 0.1);
}

/// A name for a study that no other has on the same cluster.
Result<std::string> study_id(study::Store& store) {
  if (const auto known = TRY(store.noted("kubernetes_study"))) return *known;
  const auto now = static_cast<std::uint64_t>(study::now_seconds() * 1e6);
  char name[17];
  std::snprintf(name, sizeof name, "%08llx",
                static_cast<unsigned long long>(
                    Random(now ^ (static_cast<std::uint64_t>(getpid()) << 40U)).next() >> 32U));
  TRY(store.note("kubernetes_study", name));
  return std::string(name);
}

Result<std::unique_ptr<study::Executor>> on_kubernetes(study::Store& store) {
  study::KubernetesSettings settings;
  settings.options = store.study().kubernetes;
  settings.study_id = TRY(study_id(store));
  settings.folder = store.path().string() + ".trials";
  std::error_code error;
  settings.program = fs::read_symlink("/proc/self/exe", error);
  settings.poll_seconds = seconds_in("STOKER_KUBERNETES_POLL", settings.poll_seconds);
  settings.image_patience_seconds =
      seconds_in("STOKER_IMAGE_PATIENCE", settings.image_patience_seconds);
  settings.say = [](const std::string& text) { say(stderr, text + "\n"); };
  return study::kubernetes_executor(std::move(settings));
}

Result<std::unique_ptr<study::Executor>> on_slurm(const study::Store& store) {
  study::SlurmSettings settings;
  settings.options = store.study().slurm;
  settings.folder = store.path().string() + ".trials";
  if (!store.study().name.empty()) settings.name = store.study().name;
  std::error_code error;
  settings.program = fs::read_symlink("/proc/self/exe", error).string();
  settings.poll_seconds = seconds_in("STOKER_SLURM_POLL", settings.poll_seconds);
  return study::slurm_executor(std::move(settings));
}

}  // namespace

study::Capacity capacity_of(const StudyPlace& place) {
  study::Capacity capacity = study::this_capacity();
  capacity.at_most = static_cast<int>(place.at_most.value_or(0));
  capacity.share_gpu = static_cast<int>(place.share_gpu.value_or(1));
  return capacity;
}

Result<std::unique_ptr<study::Executor>> executor_for(study::Store& store,
                                                      const StudyPlace& place) {
  if (place.on == "kubernetes") return on_kubernetes(store);
  if (place.on == "slurm") return on_slurm(store);
  return study::local_executor(capacity_of(place), study::own_runner());
}

}  // namespace stoker::cli
