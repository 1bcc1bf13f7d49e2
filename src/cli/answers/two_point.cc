#include "cli/answers/two_point.h"

#include <cctype>
#include <charconv>

#include "base/text.h"
#include "forecast/settings.h"
#include "lower/loop/lower.h"

namespace stoker::cli {
namespace {

Result<ReadingRequest> parse_reading(const std::string& text) {
  const auto malformed = [&](const std::string& why) {
    return fail(ErrorCode::kUsage,
                "\"" + text + "\" is no reading (" + why + "); write BATCH:MEMORY such as " +
                    "10:3.1GB, or 10:auto to have it simulated",
                "--reading");
  };
  const auto colon = text.find(':');
  if (colon == std::string::npos) return malformed("no colon");
  ReadingRequest request;
  const char* end = text.data() + colon;
  const auto [stop, error] = std::from_chars(text.data(), end, request.batch);
  constexpr std::int64_t kLargest = 1LL << 32;
  if (error != std::errc() || stop != end || request.batch < 1 || request.batch > kLargest)
    return malformed("its batch is no number from 1 up");
  const std::string memory = text.substr(colon + 1);
  if (memory == "auto") return request;
  if (!memory.empty() && std::isdigit(static_cast<unsigned char>(memory.back())) != 0)
    return malformed("its memory has no unit");
  const auto bytes = parse_bytes(memory);
  if (!bytes) return malformed("its memory: " + bytes.error().message);
  request.bytes = *bytes;
  return request;
}

Result<MemoryReading> simulated(std::int64_t batch, const Scenario& scenario) {
  Scenario s = scenario;
  set_batch(s, batch);
  const auto program = TRY(lower(*s.step, s.job, s.machine));
  const ReplayOptions options = replay_options(s.machine, s.allocator, ReplayDetail::kVerdict);
  return MemoryReading{batch, replay(program, options).reserved_peak + outside_bytes(program)};
}

/// What the straight line leaves out, as far as these numbers show it.
std::vector<std::string> reasons_for(const TwoPointAnswer& a, const DeviceFacts& gpu) {
  std::vector<std::string> reasons;
  reasons.push_back("it keeps back " + human_bytes(kKeptBackMost) +
                    " of the card's nameplate beside the context that is already in X; the " +
                    "simulation stops at the usable " + human_bytes(gpu.usable_memory));
  if (a.estimate.batch < a.simulated_largest)
    reasons.emplace_back(
        "a reading counts memory that is only cached; a full device makes the allocator give it "
        "back");
  reasons.emplace_back(
      "memory is no straight line in the batch: segments come in steps, and which one is reused "
      "changes with the sizes");
  return reasons;
}

}  // namespace

Result<std::array<ReadingRequest, 2>> parse_readings(const std::vector<std::string>& texts) {
  if (texts.empty())
    return std::array<ReadingRequest, 2>{ReadingRequest{kThesisBatches[0], {}},
                                         ReadingRequest{kThesisBatches[1], {}}};
  if (texts.size() != 2) {
    return fail(ErrorCode::kUsage,
                "the method takes exactly two readings, not " + std::to_string(texts.size()) +
                    "; such as --reading 10:3.1GB --reading 50:9.8GB",
                "--reading");
  }
  std::array<ReadingRequest, 2> requests;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto request = TRY(parse_reading(texts[i]));
    requests[i] = request;
  }
  return requests;
}

Result<TwoPointAnswer> answer_measured(const std::array<ReadingRequest, 2>& requests,
                                       const DeviceFacts& gpu, int gpus) {
  TwoPointAnswer answer;
  answer.gpu_name = gpu.name;
  answer.gpu_memory = gpu.memory;
  for (std::size_t i = 0; i < requests.size(); ++i)
    answer.readings[i] = {requests[i].batch, requests[i].bytes.value_or(Bytes(0))};
  auto estimate = TRY(two_point_estimate(answer.readings, gpu.memory, gpus));
  answer.estimate = estimate;
  return answer;
}

Result<TwoPointAnswer> answer_simulated(const std::array<ReadingRequest, 2>& requests,
                                        const Scenario& scenario, const BatchLimits& limits) {
  std::array<ReadingRequest, 2> filled = requests;
  for (ReadingRequest& request : filled) {
    if (request.bytes) continue;
    const auto reading = TRY(simulated(request.batch, scenario));
    request.bytes = reading.bytes;
  }
  auto answer = answer_measured(filled, scenario.machine.device.facts(), scenario.job.gpus);
  if (!answer) return answer;
  for (std::size_t i = 0; i < requests.size(); ++i) answer->simulated[i] = !requests[i].bytes;
  answer->simulated_largest = limits.value;
  answer->simulated_safe = limits.low;
  answer->reasons = reasons_for(*answer, scenario.machine.device.facts());
  return answer;
}

}  // namespace stoker::cli
