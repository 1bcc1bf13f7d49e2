#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "report/model/report.h"
#include "report/text/layout.h"
#include "report/text/memory_words.h"
#include "report/text/module_words.h"
#include "report/text/screen.h"
#include "report/text/timeline_text.h"

namespace stoker {
namespace {

using namespace layout;

constexpr std::size_t kRows = 14;
/// Widths of the chart over an iteration and of the words to its right.
constexpr std::size_t kChartColumns = 72, kBesideChart = 24;

template <class Value>
std::vector<std::pair<std::string, Value>> largest(const std::map<std::string, Value>& from,
                                                   std::size_t n) {
  std::vector<std::pair<std::string, Value>> sorted(from.begin(), from.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  if (sorted.size() > n) sorted.resize(n);
  return sorted;
}

/// Where a part of the memory comes from, for those that no tensor of the model explains.
std::string source_of(BufferRole role, Parallel parallel) {
  switch (role) {
    case BufferRole::kOptimizerState:
      return "made in the first optimizer step";
    case BufferRole::kBucket:
      return parallel == Parallel::kDdp            ? "DDP's second copy of the gradients"
             : parallel == Parallel::kDataParallel ? "copies between the GPUs"
                                                   : "gathered parameters, gradients to reduce";
    case BufferRole::kActivation:
      return "kept by autograd for the backward";
    default:
      return {};
  }
}

/// Parts that add up to the device's peak.
std::string parts_table(const Forecast& f, bool cpu) {
  const MemoryForecast& m = f.memory;
  const double total = m.device_peak.value;
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](std::string what, Bytes bytes, std::string source) {
    if (bytes.count() == 0) return;
    rows.push_back({std::move(what), human_bytes(bytes),
                    percent(static_cast<double>(bytes.count()) / total), std::move(source)});
  };
  const LiveBytes& live = m.outcome.live;
  for (std::size_t r = 0; r < kBufferRoles; ++r) {
    const auto role = static_cast<BufferRole>(r);
    if (role == BufferRole::kWorkspace) {
      add("cuBLAS and cuBLASLt workspaces", live.by_role[r] - live.optional_workspaces,
          "PyTorch keeps one for each thread");
      add("cuDNN workspaces", live.optional_workspaces,
          f.job.cudnn == CudnnProfile::kBenchmark ? "profile \"benchmark\" (docs/accuracy.md)"
                                                  : "profile \"default\" (docs/accuracy.md)");
      continue;
    }
    add(std::string(name_of(role)), live.by_role[r], source_of(role, f.job.parallel));
  }
  add("fragmentation", m.outcome.fragmentation, "reserved less allocated, each at its peak");
  for (const OutsideMemory& o : m.outside) add(o.name, o.bytes, o.basis);
  add(cpu ? "resident" : "device", Bytes(static_cast<std::int64_t>(m.device_peak.value)),
      cpu ? "what ps and top show as RES" : "what nvidia-smi would show");
  rows.push_back({"usable", human_bytes(m.usable), "",
                  cpu ? "" : "of " + human_bytes(m.nameplate) + " on the nameplate"});
  return table(rows, {0, 3});
}

std::string activations_table(const Forecast& f, const Step& step) {
  std::map<std::string, std::int64_t> by_module;
  const int parts = telling_parts(step, f.memory.outcome.live.activations);
  for (const ModuleBytes& m : f.memory.outcome.live.activations)
    by_module[shortened(step, m.module, parts)] += m.bytes.count();
  if (by_module.empty()) return {};
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, bytes] : largest(by_module, kRows))
    rows.push_back({name, human_bytes(Bytes(bytes))});
  return "Activations at the peak by module\n" + table(rows, {0});
}

std::string changes(const MemoryAdvice& advice, const MemoryForecast& m) {
  const Remedies& remedies = advice.remedies;
  std::vector<std::vector<std::string>> rows{{"saves", "time", "device"}};
  if (!m.fits) rows[0].push_back("fits");
  const std::size_t flags = rows[0].size();
  rows[0].insert(rows[0].end(), {"flags", "what"});
  for (const Remedy& r : remedies.list) {
    rows.push_back({r.saving.count() > 0 ? human_bytes(r.saving) : "-",
                    r.time_change ? fmt::format("{:+.0f} %", 100 * *r.time_change) : "-",
                    human_bytes(r.device_peak)});
    if (!m.fits) rows.back().push_back(fits_words(r));
    rows.back().push_back(r.settings.empty() ? "-" : r.settings);
    rows.back().push_back(r.what + (r.estimate ? " (estimate)" : ""));
  }
  std::string text = "\nWhat to change\n";
  if (remedies.list.empty()) text += "  nothing here saves as much as 1 %\n";
  else text += table(rows, {flags, flags + 1}, "  ", {2, flags});
  if (remedies.too_small > 0 && !remedies.list.empty())
    text += fmt::format("  {} more would save less than 1 %\n", remedies.too_small);
  return text;
}

std::string memory_explanation(const Prediction& prediction, const ReportContext& context) {
  const MemoryForecast& m = prediction.forecast.memory;
  std::string text = fmt::format("\nMemory at the peak ({})\n", m.peak_words);
  text += parts_table(prediction.forecast, context.cpu);
  if (prediction.advice && prediction.advice->runs_from) {
    text += fmt::format("  runs in {} and more, where PyTorch then empties its cache on the way\n",
                        human_bytes(*prediction.advice->runs_from));
  }
  if (context.step != nullptr) text += activations_table(prediction.forecast, *context.step);
  const std::string chart = timeline_text(
      m.outcome.timeline, {.columns = columns_within(kChartColumns + kBesideChart) - kBesideChart,
                           .unicode = context.unicode});
  if (!chart.empty()) text += "\nAllocated over one iteration, in order of execution\n" + chart;
  if (prediction.advice) text += changes(*prediction.advice, m);
  return text;
}

}  // namespace

std::string explain_text(const Prediction& prediction, const ReportContext& context) {
  const Forecast& f = prediction.forecast;
  std::string text = memory_explanation(prediction, context);
  if (!f.memory.fits) return text;  // what does not run has no speed
  text += "\nTime by operator class\n";
  std::vector<std::vector<std::string>> rows{{"class", "ms", "share"}};
  std::map<std::string, double> by_class;
  for (std::size_t c = 0; c < kKernelClasses; ++c) {
    if (f.time.class_device[c].count() > 0)
      by_class[std::string(name_of(static_cast<KernelClass>(c)))] =
          milliseconds(f.time.class_device[c]);
  }
  double total = 0;
  for (const auto& [name, ms] : by_class) total += ms;
  for (const auto& [name, ms] : largest(by_class, kRows))
    rows.push_back({name, number(ms), percent(ms / total)});
  text += table(rows, {0});

  if (context.step == nullptr) return text;
  std::map<std::string, double> time_by_module;
  std::map<std::string, double> bytes_by_module;
  const Step& step = *context.step;
  const int parts = telling_parts(step, f.memory.outcome.live.by_module);
  for (const auto& [module, time] : f.module_time)
    time_by_module[shortened(step, module, parts)] += milliseconds(time);
  for (const ModuleBytes& m : f.memory.outcome.live.by_module) {
    bytes_by_module[shortened(step, m.module, parts)] += static_cast<double>(m.bytes.count());
  }
  text += "\nTime and memory at the peak by module\n";
  rows = {{"module", "ms", "share", "memory"}};
  for (const auto& [name, ms] : largest(time_by_module, kRows)) {
    const auto held = bytes_by_module.find(name);
    const double bytes = held == bytes_by_module.end() ? 0 : held->second;
    rows.push_back({name, number(ms), percent(ms / total),
                    human_bytes(Bytes(static_cast<std::int64_t>(bytes)))});
  }
  return text + table(rows, {0});
}

}  // namespace stoker
