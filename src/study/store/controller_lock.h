#pragma once

#include <filesystem>

#include "base/result.h"

namespace stoker::study {

/// Held by the one controller of a study. Two controllers of one store refuse each other, also over
/// a shared folder; the lock goes with the process that holds it.
class ControllerLock {
 public:
  /// Refused with who holds it. A controller that has died may leave the lock to a child for a
  /// moment, which is waited for.
  [[nodiscard]] static Result<ControllerLock> take(const std::filesystem::path& store);
  /// Whether somebody runs the study, "process 123 on node1"; empty: nobody.
  [[nodiscard]] static std::string holder(const std::filesystem::path& store);

  ControllerLock(ControllerLock&& other) noexcept : descriptor_(other.descriptor_) {
    other.descriptor_ = -1;
  }
  ControllerLock(const ControllerLock&) = delete;
  ControllerLock& operator=(const ControllerLock&) = delete;
  ControllerLock& operator=(ControllerLock&&) = delete;
  ~ControllerLock();

 private:
  explicit ControllerLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

}  // namespace stoker::study
