#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "scenario/resolve/resolve.h"

namespace stoker::testing_support {

/// Requests of a zoo model on a host of 16 cores. Nothing is captured or probed: whoever asks for
/// it is counted and refused.
class RequestTest : public testing::Test {
 protected:
  RequestTest() {
    request_.model = "resnet18";
    request_.machine = "V100-SXM2-16GB";
    request_.host = "cores=16,ram=64G,shm=32G";
    tools_.capture = [this](const CaptureOrder& order) -> Status {
      orders_.push_back(order);
      return tl::unexpected(already_explained());
    };
    tools_.probe_folder = [](const std::string& folder, const ProbeOptions&) -> Result<Probe> {
      return fail(ErrorCode::kIo, "not probed in this test", folder);
    };
    tools_.python_package = "/package/stoker";
  }

  Resolved exactly() {
    auto resolved = resolve_exactly(request_, tools_);
    EXPECT_TRUE(resolved) << resolved.error().text();
    return std::move(resolved).value();
  }

  /// Where the refusal of the request points, and its first words; "": it was not refused.
  std::string refusal() {
    const auto resolved = resolve_exactly(request_, tools_);
    return resolved ? "" : resolved.error().text();
  }

  static bool has(const std::vector<std::string>& list, const std::string& sentence) {
    return std::find(list.begin(), list.end(), sentence) != list.end();
  }

  RunRequest request_;
  ScenarioTools tools_;
  std::vector<CaptureOrder> orders_;
};

}  // namespace stoker::testing_support
