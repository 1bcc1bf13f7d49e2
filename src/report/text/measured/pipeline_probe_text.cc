#include "report/text/measured/pipeline_probe_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "base/text.h"
#include "report/text/layout.h"
#include "system/contention.h"

namespace stoker {
namespace {
using namespace layout;

/// Where the user named none: what the probe itself takes.
constexpr std::int64_t kUsualBatch = 32;
/// The interpreter's switch interval is 5 ms: above this the samples hardly ever give the lock up.
constexpr double kHoldsLockMs = 1.0;
/// Beyond this a sample waits for something that more workers hide and more cores do not.
constexpr double kWaitsShare = 0.2;

std::int64_t batch_of(const PipelineProbe& probe) {
  return probed_batch(probe).value_or(kUsualBatch);
}

double quantile(std::vector<Nanos> values, double q) {
  std::sort(values.begin(), values.end());
  return milliseconds(values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))]);
}

/// A time with digits enough to be told from zero.
std::string ms(double value) {
  return value >= 10 ? fmt::format("{:.1f}", value)
                     : fmt::format("{:.{}f}", value, value >= 0.1 || value < 5e-5 ? 2 : 4);
}

std::string head(const PipelineProbe& probe) {
  std::string text = probe.name + ": ";
  text += probe.samples > 0 ? with_commas(probe.samples) + " samples" : "unknown number of samples";
  if (probe.iterable) text += " (iterable)";
  if (!probe.output.empty()) text += ", " + probe.output;
  return text + "\n\n";
}

/// Everything that one worker does for a sample.
struct WorkerTime {
  double cpu, wait, collate, handing;
  [[nodiscard]] double all() const { return cpu + wait + collate + handing; }
};

WorkerTime worker_time(const PipelineProbe& probe, const SampleCost& cost, std::int64_t batch) {
  WorkerTime t{milliseconds(cost.mean_cpu()), milliseconds(cost.mean_wait()), 0, 0};
  if (probe.batch.empty()) return t;
  const BatchFacts facts = batch_facts_at(probe.batch, static_cast<double>(batch));
  const double samples = std::max(1.0, facts.samples);
  t.collate = milliseconds(facts.collate_shared) / samples;
  t.handing = milliseconds(cost.transport.per_batch_worker +
                           facts.tensors * cost.transport.per_tensor_worker) /
              samples;
  return t;
}

/// What the user's own loader delivers to a loop that does nothing: order, streams and transport
/// are in it.
std::string as_it_is(const PipelineProbe& probe, const SampleCost& cost) {
  if (!probe.loader) return {};
  LoaderSettings settings = *probe.loader;
  settings.batch = batch_of(probe);
  const auto rate = [&](double factor) {
    return simulate_loader(settings, at_band_end(cost, factor), {.cores = probe.cores},
                           Consumer{.consumption = Consumption::kBlocking})
        .samples_per_s;
  };
  const double value = rate(1);
  return fmt::format(
      "The loader as it is ({} worker{}{}) delivers {} samples/s [{}-{}] to a loop that does "
      "nothing\n",
      settings.workers, settings.workers == 1 ? "" : "s",
      settings.workers > 1 && !settings.in_order ? ", in any order" : "", number(value),
      number(std::min(value, rate(1 + cost.band.above))),
      number(std::max(value, rate(1 - cost.band.below))));
}

std::string answer(const PipelineProbe& probe, const SampleCost& cost) {
  const std::int64_t batch = batch_of(probe);
  const WorkerTime t = worker_time(probe, cost, batch);
  const double rate = 1e3 / t.all();
  std::string text = as_it_is(probe, cost);
  text += fmt::format("One worker prepares {} samples/s [{}-{}] in batches of {}: {} ms each\n",
                      number(rate), number(rate / (1 + cost.band.above)),
                      number(rate / (1 - cost.band.below)), batch, ms(t.all()));
  if (probe.cpu.size() > 1) {
    text += fmt::format(
        "A sample takes {} ms of CPU time (median {}, 95th percentile {}, largest {}; {} "
        "measured)\n",
        ms(t.cpu), ms(quantile(probe.cpu, 0.5)), ms(quantile(probe.cpu, 0.95)),
        ms(quantile(probe.cpu, 1)), with_commas(static_cast<std::int64_t>(probe.cpu.size())));
    if (t.collate > t.cpu + t.wait)
      text += fmt::format("Putting it into a batch takes {} ms more\n", ms(t.collate));
  }
  if (probe.parallel.threads > 1) {
    text += fmt::format("{} workers at once keep {} of that each\n", probe.parallel.threads,
                        percent(probe.parallel.efficiency));
  }
  return text + "\n";
}

std::string stage_table(const PipelineProbe& probe, const SampleCost& cost) {
  const WorkerTime t = worker_time(probe, cost, batch_of(probe));
  const auto share = [&](double value) { return percent(value / t.all()); };
  std::vector<std::vector<std::string>> rows{{"where a sample's time goes", "ms", "share"}};
  double named = 0;
  for (const auto& stage : probe.stages) named += stage.share;
  // The stages were timed in a pass of their own; their shares hold, the sum is the sample's.
  for (const auto& stage : probe.stages) {
    const double time = t.cpu * stage.share / std::max(1.0, named);
    rows.push_back({stage.name, ms(time), share(time)});
  }
  if (probe.stages.empty()) rows.push_back({"making the sample", ms(t.cpu), share(t.cpu)});
  if (t.wait > 0.005 * t.all()) rows.push_back({"waiting (no CPU)", ms(t.wait), share(t.wait)});
  if (!probe.batch.empty()) {
    rows.push_back({"collating", ms(t.collate), share(t.collate)});
    rows.push_back({"handing over", ms(t.handing), share(t.handing)});
  }
  return table(rows, {0});
}

std::string batch_table(const PipelineProbe& probe) {
  if (probe.batch.empty()) return {};
  std::vector<std::vector<std::string>> rows{
      {"batch", "MB", "tensors", "pickled", "collating, worker", "training process"}};
  for (const BatchFacts& b : probe.batch) {
    rows.push_back(
        {std::to_string(b.batch), fmt::format("{:.2f}", b.bytes.count() * 1e-6),
         fmt::format("{:.3g}", b.tensors), human_bytes(b.pickled),
         ms(milliseconds(b.collate_shared)) + " ms",
         b.collate_private.count() > 0 ? ms(milliseconds(b.collate_private)) + " ms" : "-"});
  }
  return "\n" + table(rows);
}

std::string process_lines(const PipelineProbe& probe) {
  std::string text;
  std::vector<std::string> starts;
  const auto add = [&](const char* name, Nanos time) {
    if (time.count() > 0) starts.push_back(fmt::format("{} {} ms", name, ms(milliseconds(time))));
  };
  add("fork", probe.start.fork);
  add("spawn", probe.start.spawn);
  add("forkserver", probe.start.forkserver);
  if (probe.start.warm_up.count() > 0) {
    starts.push_back(fmt::format("the first batch of a worker takes {} ms more than the others",
                                 ms(milliseconds(probe.start.warm_up))));
  }
  if (!starts.empty()) text += labelled("Start", starts);
  if (probe.memory.worker_private.count() > 0) {
    std::vector<std::string> memory{
        human_bytes(probe.memory.worker_private) + " of its own a worker",
        human_bytes(probe.memory.worker_peak) + " while it makes a batch"};
    if (probe.memory.copied_on_read) {
      memory.push_back(fmt::format("{} Python objects of the data set ({}) are copied by reading",
                                   with_commas(probe.memory.objects),
                                   human_bytes(probe.memory.object_bytes)));
    }
    text += labelled("Memory", memory);
  }
  return text.empty() ? text : "\n" + text;
}

/// Whether samples in threads of the training process would stand in each other's way, and workers
/// are worth their while: a probe that others disturbed cannot tell.
bool holds_lock(const PipelineProbe& probe, const SampleCost& cost) {
  if (!probe.gil_wait || milliseconds(*probe.gil_wait) <= kHoldsLockMs) return false;
  if (probe.contention.disturbed) return false;
  const auto rate = [&](int workers) {
    return simulate_loader({.batch = batch_of(probe), .workers = workers, .pin = false}, cost,
                           {.cores = std::max(2.0, probe.cores)},
                           Consumer{.consumption = Consumption::kBlocking})
        .samples_per_s;
  };
  return rate(2) > rate(0);
}

std::string next_steps(const PipelineProbe& probe, const SampleCost& cost) {
  std::vector<std::string> next;
  const WorkerTime t = worker_time(probe, cost, batch_of(probe));
  if (t.wait > kWaitsShare * t.all())
    next.emplace_back("samples wait for storage or sleep: more workers than cores pay off");
  if (holds_lock(probe, cost))
    next.emplace_back("samples hold the interpreter's lock: make them in workers, not in threads");
  next.emplace_back(
      "how many workers and what else for a model: stoker plan MODEL --gpu GPU --data PROBE-FILE");
  return "\n" + labelled("Next", next);
}

}  // namespace

std::string pipeline_probe_text(const PipelineProbe& probe, const LoaderProfile& profile) {
  const SampleCost cost = sample_cost_from_pipeline(probe, profile);
  std::string text = head(probe) + answer(probe, cost) + stage_table(probe, cost) +
                     batch_table(probe) + process_lines(probe);
  if (const std::string warning = contention_warning(probe.contention); !warning.empty())
    text += "\nwarning: " + warning + "\n";
  if (!probe.findings.empty()) text += "\n" + diagnostics(probe.findings);
  text += next_steps(probe, cost);
  return text + footer({cost.basis, probe.cpu_model});
}

}  // namespace stoker
