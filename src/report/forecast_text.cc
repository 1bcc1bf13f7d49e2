#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "report/layout.h"
#include "report/report.h"

namespace stoker {
namespace {

using namespace layout;

std::string verdict(const Forecast& f, const std::optional<BatchLimits>& limits) {
  std::string text;
  const MemoryForecast& m = f.memory;
  if (!m.fits) {
    text = fmt::format("DOES NOT FIT: batch {} needs {} of {} ({})\n  {}\n", f.job.batch,
                       gib(m.device_peak), human_bytes(m.usable), f.gpu_name, m.out_of_memory);
    if (limits && limits->value > 0) {
      text += fmt::format("  Batch up to {} is safe, {} may run.\n", limits->low, limits->value);
    }
    return text;
  }
  text = fmt::format("FITS: {} of {} per GPU", gib(m.device_peak), human_bytes(m.usable));
  if (m.only_by_flushing) text += "; only by flushing the cache, expect slower steps";
  if (limits) {
    text += fmt::format(
        "; batch up to {} is safe{}", limits->low,
        limits->first_failing > 0 ? fmt::format(", {} may fail", limits->first_failing) : "");
  }
  return text + "\n";
}

std::string speed(const Forecast& f, const ReportContext& context) {
  std::string text = fmt::format("  {} {}/s", rate(f.samples_per_s), context.sample_word);
  if (f.epoch_s.value > 0) {
    text += fmt::format("; epoch of {}: {} [{}-{}]", with_commas(context.dataset_samples),
                        human_time(kSecond * f.epoch_s.value), human_time(kSecond * f.epoch_s.low),
                        human_time(kSecond * f.epoch_s.high));
  }
  if (f.epoch_cost.value > 0)
    text += fmt::format(", {}{:.2f}", context.currency, f.epoch_cost.value);
  text += fmt::format("\n  Limited by {}", f.limiter.what);
  if (f.next_limiter.what != f.limiter.what) {
    text += fmt::format("; next: {} at {} {}/s", f.next_limiter.what,
                        number(f.next_limiter.samples_per_s), context.sample_word);
  }
  return text + "\n";
}

std::string time_block(const Forecast& f) {
  std::string text = fmt::format("Step      {}\n", millis(f.step_ms));
  text += fmt::format("          forward {} ms, backward {} ms, optimizer {} ms\n",
                      number(f.forward_ms.value), number(f.backward_ms.value),
                      number(f.optimizer_ms.value));
  text += fmt::format("          the host needs {} ms to issue it{}\n", number(f.host_ms.value),
                      f.time.host_bound() ? "; the GPU waits for it" : "");
  if (f.job.gpus > 1) {
    text += fmt::format(
        "          all-reduce {} ms; the step waits {} ms for it and for the slowest rank\n",
        number(milliseconds(f.time.communication)),
        number(milliseconds(f.time.exposed_communication)));
  }
  text += fmt::format(
      "GPU       busy {} (what nvidia-smi shows), MFU {} (achieved over data-sheet FLOP/s)\n",
      percent(f.gpu_busy.value), percent(f.mfu.value));
  return text;
}

std::string memory_block(const Forecast& f) {
  const MemoryForecast& m = f.memory;
  std::string text = fmt::format("Memory    device {}; reserved {}; allocated {}\n",
                                 gib(m.device_peak), gib(m.reserved_peak), gib(m.allocated_peak));
  std::string parts;
  for (std::size_t r = 0; r < kBufferRoles; ++r) {
    const Bytes bytes = m.outcome.live.by_role[r];
    if (bytes.count() == 0) continue;
    parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", name_of(static_cast<BufferRole>(r)),
                         human_bytes(bytes));
  }
  text += fmt::format("          at the peak: {}\n", parts);
  std::string outside;
  for (const OutsideMemory& o : m.outside) {
    outside += fmt::format("{}{} {}", outside.empty() ? "" : ", ", o.name, human_bytes(o.bytes));
  }
  return text + fmt::format("          outside the allocator: {}; fragmentation {}\n", outside,
                            human_bytes(m.outcome.fragmentation));
}

std::string input_block(const Forecast& f) {
  if (!f.input.known) return "Input     not known (--data DIR); taken as fast enough\n";
  const LoaderForecast& l = f.input.loader;
  std::string text = fmt::format(
      "Input     {} workers per GPU, prefetch {}: up to {} samples/s; workers busy {}, GPU waits "
      "{} a step\n",
      f.loader.workers, f.loader.prefetch, rate(f.input.samples_per_s),
      percent(l.worker_utilization), human_time(l.wait));
  return text + fmt::format(
                    "          first batch after {}; /dev/shm {}, pinned {}, workers {}, {} file "
                    "descriptors\n",
                    human_time(l.first_batch), human_bytes(l.shared_memory),
                    human_bytes(l.pinned_memory), human_bytes(l.worker_memory), l.file_descriptors);
}

/// "layer1.0.conv1" -> "layer1": the parts that a person thinks in.
std::string top_module(const std::string& name) {
  const auto first = name.find('.');
  if (first == std::string::npos) return name.empty() ? "(model)" : name;
  const auto second = name.find('.', first + 1);
  return name.substr(0, second);
}

template <class Value>
std::vector<std::pair<std::string, Value>> largest(const std::map<std::string, Value>& from,
                                                   std::size_t n) {
  std::vector<std::pair<std::string, Value>> sorted(from.begin(), from.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  if (sorted.size() > n) sorted.resize(n);
  return sorted;
}

}  // namespace

std::string forecast_text(const Forecast& f, const std::optional<BatchLimits>& limits,
                          const ReportContext& context) {
  std::string text = context.model_line + "\n\n" + verdict(f, limits);
  // What does not run has no speed.
  if (f.memory.fits) text += speed(f, context) + "\n" + time_block(f);
  text += memory_block(f);
  if (f.memory.fits) text += input_block(f);
  text += "\n";
  text += labelled("Rests on", context.rests_on);
  text += labelled("Assumed", context.assumed);
  text += labelled("Excluded", context.excluded);
  return text + diagnostics(f.diagnostics) + diagnostics(context.data);
}

std::string explain_text(const Forecast& f, const ReportContext& context) {
  constexpr std::size_t kRows = 14;
  std::string text = "\nTime by operator class\n";
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
  const auto& names = context.step->module_names;
  for (const auto& [module, time] : f.module_time)
    time_by_module[top_module(names[index(module)])] += milliseconds(time);
  for (const ModuleBytes& m : f.memory.outcome.live.by_module) {
    bytes_by_module[top_module(names[index(m.module)])] += static_cast<double>(m.bytes.count());
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
