#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "step/sizes.h"
#include "step/step_reader.h"

namespace stoker::testing_support {

/// A step of tests/rewrites: "transformer.fp32.plain".
inline Step rewrite_case(const std::string& name) {
  auto step = read_step_file(std::filesystem::path(STOKER_SOURCE_DIR) / "tests/rewrites" /
                             (name + ".step.gz"));
  EXPECT_TRUE(step) << step.error().text();
  return std::move(step).value();
}

/// All step files of the zoo.
inline std::vector<std::filesystem::path> zoo_files() {
  std::vector<std::filesystem::path> files;
  const auto folder = std::filesystem::path(STOKER_SOURCE_DIR) / "data/zoo";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".gz") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// Bytes of what a step allocates, without rounding.
struct LiveBytes {
  std::int64_t peak = 0;
  std::int64_t forward_peak = 0;  ///< before the loss
  std::int64_t at_backward = 0;   ///< when the backward begins, or at the end
  std::int64_t transient_at_end = 0;
};

inline LiveBytes live_bytes(const Step& step, std::int64_t batch) {
  const Sizes sizes = Sizes::at(step, {{"batch", batch}}).value();
  LiveBytes live;
  std::int64_t now = 0, transient = 0;
  bool forward = true, backward = false;
  for (const Event& event : step.events) {
    if (event.kind == EventKind::kPhase) {
      forward = forward && Phase(event.value) != Phase::kLoss;
      backward = backward || Phase(event.value) == Phase::kBackward;
    }
    if (event.kind == EventKind::kAllocate || event.kind == EventKind::kFree) {
      const std::int64_t sign = event.kind == EventKind::kAllocate ? 1 : -1;
      const std::int64_t bytes = sign * sizes.storage(StorageId(event.value)).count();
      now += bytes;
      if (step.storages[event.value].kind == StorageKind::kTransient) transient += bytes;
    }
    live.peak = std::max(live.peak, now);
    if (forward) live.forward_peak = std::max(live.forward_peak, now);
    if (!backward) live.at_backward = now;
  }
  live.transient_at_end = transient;
  return live;
}

/// How often each operator runs.
inline std::map<std::string, int> operator_counts(const Step& step) {
  std::map<std::string, int> counts;
  for (const Event& event : step.events) {
    if (event.kind == EventKind::kOperator)
      ++counts[std::string(step.operator_name(step.operators[event.value]))];
  }
  return counts;
}

}  // namespace stoker::testing_support
