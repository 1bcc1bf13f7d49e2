#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "observe/sample/sample.h"
#include "system/nvml.h"

namespace stoker {

/// Reads the GPUs of this machine for a job.
class GpuWatch {
 public:
  /// `nvml` may be null: there are none.
  explicit GpuWatch(std::unique_ptr<Nvml> nvml) : nvml_(std::move(nvml)) {}

  /// Those GPUs that hold a process of the job; all of them where none does, since in a container
  /// the driver may number processes otherwise. `rare`: what takes long too.
  [[nodiscard]] std::vector<GpuSample> sample(const std::set<std::int64_t>& job_pids,
                                              Nvml::Depth depth);
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  std::unique_ptr<Nvml> nvml_;
};

}  // namespace stoker
