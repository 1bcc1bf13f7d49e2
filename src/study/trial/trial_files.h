#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"

namespace stoker::study {

/// The files of one trial's folder.
struct TrialFiles {
  std::filesystem::path folder;

  [[nodiscard]] std::filesystem::path spec() const { return folder / "trial.json"; }
  [[nodiscard]] std::filesystem::path claim() const { return folder / "claim"; }
  [[nodiscard]] std::filesystem::path result() const { return folder / "result.json"; }
  [[nodiscard]] std::filesystem::path reports() const { return folder / "reports.jsonl"; }
  [[nodiscard]] std::filesystem::path heartbeat() const { return folder / "heartbeat"; }
  /// Made by whoever wants the trial to end early: the reason is its text.
  [[nodiscard]] std::filesystem::path stop() const { return folder / "stop"; }
  [[nodiscard]] std::filesystem::path output() const { return folder / "stdout.txt"; }
  [[nodiscard]] std::filesystem::path errors() const { return folder / "stderr.txt"; }
};

/// STORE.trials/000123 beside the store.
[[nodiscard]] TrialFiles files_of(const std::filesystem::path& store, std::int64_t trial);

/// The right to run a trial. It is a file that can be made only once, so that of two runners, or of
/// a runner and a controller that gives up on it, exactly one gets it. Its owner holds a lock on it
/// while it lives, by which others on this machine see whether it does.
class Claim {
 public:
  enum class Found : std::uint8_t {
    kNone,       ///< nobody has begun, and anybody still may
    kHeld,       ///< its owner is alive, on this machine
    kLeft,       ///< its owner died, or lives on another machine
    kWithdrawn,  ///< nobody ran it, and nobody will
    kUnknown     ///< the folder cannot be read
  };

  /// nullopt: somebody else has it.
  [[nodiscard]] static Result<std::optional<Claim>> take(const TrialFiles& files);
  /// Takes it so that no runner can any more. False: a runner has it.
  [[nodiscard]] static Result<bool> withdraw(const TrialFiles& files);
  [[nodiscard]] static Found look(const TrialFiles& files);

  /// Host and process group that stand in a claim, "" and 0 where it says none.
  struct Owner {
    std::string host;
    int process = 0, group = 0;
    std::int64_t group_started = 0;  ///< in ticks since the machine started, as /proc tells it
  };
  [[nodiscard]] static Owner owner(const TrialFiles& files);
  /// Writes the process group of the command into the claim.
  void note_group(int group) const;

  Claim(Claim&& other) noexcept : descriptor_(other.descriptor_) { other.descriptor_ = -1; }
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;
  Claim& operator=(Claim&&) = delete;
  ~Claim();

 private:
  explicit Claim(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

[[nodiscard]] std::string host_name();
/// When a process started, in ticks since the machine did; 0: there is none.
[[nodiscard]] std::int64_t start_ticks(int process);
/// Whether there is such a process that has not ended; one that waits to be reaped has.
[[nodiscard]] bool runs(int process);

}  // namespace stoker::study
