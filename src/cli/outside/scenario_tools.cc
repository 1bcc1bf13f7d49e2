#include "cli/outside/scenario_tools.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "base/text.h"
#include "cli/outside/live_screen.h"
#include "cli/outside/python.h"
#include "device/host/this_host.h"
#include "scenario/sources/script_model.h"

namespace stoker::cli {
namespace {

/// Seconds between progress on a terminal, and where there is none.
constexpr double kDrawnEvery = 0.2, kToldEvery = 10;
/// How much of the work tells how long the rest will take.
constexpr double kToldShare = 0.02;

/// What `stoker capture` is told of a script's run, for the figures' sake and for its limits.
std::vector<std::string> what_it_sees(const ScriptRun& script) {
  std::vector<std::string> words;
  if (!script.fake_data.empty()) words.push_back("--fake-data=" + script.fake_data);
  if (script.allow_network) words.emplace_back("--allow-network");
  if (script.compile) words.emplace_back(*script.compile ? "--compile" : "--no-compile");
  return words;
}

std::vector<std::string> limits_of(const ScriptRun& script) {
  std::vector<std::string> words;
  if (!script.time_limit.empty()) words.push_back("--time-limit=" + script.time_limit);
  if (!script.max_host_memory.empty())
    words.push_back("--max-host-memory=" + script.max_host_memory);
  return words;
}

/// Refuses a Python file that is not there: PyTorch takes seconds to import before Python would.
Status check_file(const std::string& spec) {
  namespace fs = std::filesystem;
  const auto end = is_script(spec) ? spec.size() : spec.rfind(".py:");
  if (end == std::string::npos) return {};
  const fs::path file = end == spec.size() ? spec : spec.substr(0, end + 3);
  std::error_code ignored;
  if (fs::exists(file, ignored)) return {};
  std::vector<std::string> others;
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == file.extension())
      others.push_back((file.parent_path() / entry.path().filename()).string());
  }
  const std::string near = suggestion(file.string(), others);
  return fail(ErrorCode::kNotFound,
              "there is no file " + file.string() + (near.empty() ? "; check the path" : near));
}

Status capture_by_python(const CaptureOrder& order, const ScriptRun& script) {
  TRY(check_file(order.spec));
  std::vector<std::string> arguments{"capture", order.spec, "-o", order.into.string()};
  if (order.script) {
    for (const auto& words : {what_it_sees(script), limits_of(script)})
      arguments.insert(arguments.end(), words.begin(), words.end());
    arguments.insert(arguments.end(), order.script->begin(), order.script->end());
    const int code = TRY(run_python_stoker(arguments, true));
    if (code != 0) return tl::unexpected(already_explained());
    return {};
  }
  arguments.insert(arguments.end(),
                   {"--precision", std::string(capture_precision(order.precision)), "--sources"});
  if (order.device == ModelDevice::kCpu) arguments.insert(arguments.end(), {"--device", "cpu"});
  if (order.compile) arguments.emplace_back("--compile");
  if (!order.mode.empty()) arguments.insert(arguments.end(), {"--mode", order.mode});
  for (const std::string& assumption : order.assumptions)
    arguments.insert(arguments.end(), {"--assume", assumption});
  if (!order.adapters.lora.empty()) arguments.push_back("--lora=" + order.adapters.lora);
  if (order.adapters.four_bit) arguments.emplace_back("--qlora");
  const int code = TRY(run_python_stoker(arguments, true));
  if (code != 0) return tl::unexpected(already_explained());
  return {};
}

}  // namespace

ScenarioTools scenario_tools(const ScriptRun& script) {
  std::string interpreter = python_identity();
  for (const std::string& word : what_it_sees(script)) interpreter += "|" + word;
  return {
      .capture = [script](const CaptureOrder& order) { return capture_by_python(order, script); },
      .probe_folder = probe_with_progress,
      .interpreter = std::move(interpreter),
      .python_package = python_package()};
}

Result<Probe> probe_with_progress(const std::string& folder, const ProbeOptions& options) {
  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  const double every = terminal ? kDrawnEvery : kToldEvery;
  const auto start = std::chrono::steady_clock::now();
  double next = terminal ? 0 : kToldEvery;
  bool shown = false;
  const ProbeProgress progress = [&](std::string_view phase, double share) {
    const double gone =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (gone < next) return;
    next = gone + every;
    std::string line = "probing " + printable(folder) + ": " + std::string(phase) + ", " +
                       human_time(kSecond * gone);
    if (share > kToldShare && share < 1)
      line += ", about " + human_time(kSecond * (gone * (1 - share) / share)) + " left";
    if (terminal) line.resize(std::min(line.size(), terminal_size(stderr).columns - 1));
    std::fprintf(stderr, terminal ? "\r\033[K%s" : "stoker: %s\n", line.c_str());
    std::fflush(stderr);
    shown = true;
  };
  ProbeOptions with_quota = options;
  if (options.threads == 0) with_quota.threads = std::max(1, static_cast<int>(this_host().cores));
  auto probe = probe_folder(folder, with_quota, progress);
  if (shown && terminal) std::fputs("\r\033[K", stderr);
  return probe;
}

}  // namespace stoker::cli
