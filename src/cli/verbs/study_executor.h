#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "study/executor/executor.h"
#include "study/executor/slots.h"
#include "study/store/store.h"

namespace stoker::cli {

/// What the words of `stoker sweep` and `stoker tune` say of where trials run.
struct StudyPlace {
  std::string on;  ///< "slurm", "kubernetes"; else this machine
  std::optional<std::int64_t> at_most, share_gpu;

  [[nodiscard]] bool is_cluster() const { return on == "slurm" || on == "kubernetes"; }
};

/// This machine's cores and GPUs, as far as trials may use them.
[[nodiscard]] study::Capacity capacity_of(const StudyPlace& place);

/// What runs the trials of this store in that place. Options of a cluster are those of the study.
[[nodiscard]] Result<std::unique_ptr<study::Executor>> executor_for(study::Store& store,
                                                                    const StudyPlace& place);

}  // namespace stoker::cli
