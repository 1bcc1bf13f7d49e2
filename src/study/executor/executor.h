#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "study/definition/trials.h"
#include "study/store/store.h"
#include "study/trial/trial_files.h"
#include "study/trial/trial_result.h"
#include "study/trial/trial_spec.h"

namespace stoker::study {

/// What became of a trial since the last look.
struct TrialNews {
  enum class Kind : std::uint8_t {
    kRunning,    ///< it has started
    kEnded,      ///< `result` says how
    kWithdrawn,  ///< nobody ran it and nobody will: it may be handed over again
    kRequeued    ///< its batch system puts it back in the queue; it has not begun
  };
  std::int64_t trial = 0;
  Kind kind = Kind::kEnded;
  TrialResult result{};
  std::string host{}, why{};
};

/// Where trials run. It owns nothing that is not also in the trials' folders or known to the batch
/// system, so that another process can go on where one stopped.
class Executor {
 public:
  Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  Executor(Executor&&) = delete;
  Executor& operator=(Executor&&) = delete;
  virtual ~Executor() = default;

  /// Why a trial can never run here; nothing where it can.
  [[nodiscard]] virtual std::optional<std::string> impossible(const Needs& needs) const = 0;
  /// Whether a trial can be handed over at present.
  [[nodiscard]] virtual bool has_room(const Needs& needs) const = 0;
  /// Hands a trial over whose folder and spec exist; what the executor calls it. The spec is the
  /// executor's to complete and write before.
  [[nodiscard]] virtual Result<std::string> start(std::int64_t trial, const TrialFiles& files,
                                                  const TrialSpec& spec) = 0;
  /// Takes over a trial that an earlier controller handed over and that is submitted or running.
  virtual void adopt(const TrialRow& row, const TrialFiles& files, const Needs& needs) = 0;
  /// What is new, after waiting for it for at most so many seconds.
  [[nodiscard]] virtual Result<std::vector<TrialNews>> news(double wait_seconds) = 0;
  /// Asks all its trials to end.
  virtual void cancel_all() = 0;
  /// Takes trials that have not begun out of a batch system's queue: they are withdrawn.
  virtual void take_back() {}
  /// Several starts are over: what was gathered is handed over now.
  [[nodiscard]] virtual Status flush() { return {}; }
  /// What the executor calls trials that it named only when they were handed over together.
  [[nodiscard]] virtual std::vector<std::pair<std::int64_t, std::string>> take_names() {
    return {};
  }
};

}  // namespace stoker::study
