#include "report/html/page_parts.h"

#include <algorithm>

#include "base/text.h"
#include "forecast/input_figures.h"
#include "report/text/layout.h"

namespace stoker::page {
namespace {

constexpr double kMilli = 1000;

Shown shown_ms(Nanos time, const std::string& basis) {
  const double ms = milliseconds(time);
  return {layout::number(ms) + " ms", "", ms, ms, ms, basis};
}

std::string odd_words(const Diagnostic& d) {
  return (d.severity == Severity::kWarning ? "WARNING " : "") + d.name + ": " + d.advice;
}

}  // namespace

void add_footer(Page& page, const ReportContext& context, const Diagnostics& odd) {
  page.footer("Settings", context.settings);
  page.footer("Rests on", context.rests_on);
  page.footer("Assumed", context.assumed);
  page.footer("Excluded", context.excluded);
  std::vector<std::string> notes;
  for (const Diagnostic& d : odd.all()) notes.push_back(odd_words(d));
  for (const Diagnostic& d : context.data.all()) notes.push_back(odd_words(d));
  page.footer("Noted", notes);
}

void add_tiles(Page& page, const Forecast& f, const ReportContext& context) {
  page.tile("Throughput", shown(f.samples_per_s, context.sample_word + "/s"));
  if (f.epoch_s.value > 0) page.tile("Epoch", shown_seconds(f.epoch_s));
  if (f.epoch_cost.value > 0)
    page.tile("Cost an epoch", shown_money(f.epoch_cost, context.currency));
  if (f.run.epochs > 0)
    page.tile("Run of " + with_commas(f.run.epochs), shown_seconds(f.run.seconds_total));
  if (f.run_cost.value > 0) page.tile("Cost of the run", shown_money(f.run_cost, context.currency));
  page.tile("Step", shown(f.step_ms, "ms"));
  if (!context.cpu) page.tile("GPU busy", shown_share(f.gpu_busy));
  page.tile(context.cpu ? "Memory" : "Memory per GPU", shown_bytes(f.memory.device_peak),
            "of " + human_bytes(f.memory.usable));
  if (f.energy && f.energy->epoch_kwh.value > 0) {
    page.tile("Energy an epoch", shown_energy(f.energy->epoch_kwh));
  }
}

std::vector<Json> step_blocks(const Forecast& f) {
  std::vector<Bar> phases;
  const auto add = [&](const char* label, const Figure& ms, const char* note) {
    if (ms.value > 0) phases.push_back({label, shown(ms, "ms"), note});
  };
  add("forward", f.forward_ms, "");
  add("backward", f.backward_ms, "gradients shared beside it included");
  add("optimizer", f.optimizer_ms, "");
  add("load and loop", f.load_ms, "what copies of the batch and the turn of the loop add");
  if (f.input.known) {
    const Figure wait = input_figures(f.input).wait_ms;
    if (wait.value > 0.01 * f.step_ms.value)
      phases.push_back({"waits for input", shown(wait, "ms"), "the loop has no batch yet"});
  }
  std::vector<Bar> classes;
  for (std::size_t c = 0; c < kKernelClasses; ++c) {
    if (f.time.class_device[c].count() <= 0) continue;
    classes.push_back({std::string(name_of(static_cast<KernelClass>(c))),
                       shown_ms(f.time.class_device[c], f.time.basis), ""});
  }
  if (f.time.communication.count() > 0) {
    classes.push_back({"collectives", shown_ms(f.time.communication, f.time.basis),
                       "of them waited for: " + human_time(f.time.exposed_communication)});
  }
  std::stable_sort(classes.begin(), classes.end(),
                   [](const Bar& a, const Bar& b) { return a.shown.value > b.shown.value; });
  const double least = classes.empty() ? 0 : 1e-3 * classes.front().shown.value;
  std::erase_if(classes, [&](const Bar& bar) { return bar.shown.value < least; });
  return {stack(phases, "the time from batch to batch"), bars(classes, "ms a step")};
}

Json loader_block(const LoaderTimeline& timeline) {
  if (timeline.spans.empty()) return {};
  Lanes out;
  out.kinds = {"worker prepares a batch", "pin thread",
               timeline.workers > 0 ? "loop waits" : "loop loads", "step on the device"};
  for (int w = 0; w < timeline.workers; ++w) out.lanes.push_back("worker " + std::to_string(w));
  const int pin = timeline.pinned && timeline.workers > 0 ? static_cast<int>(out.lanes.size()) : -1;
  if (pin >= 0) out.lanes.emplace_back("pin thread");
  const int loop = static_cast<int>(out.lanes.size());
  out.lanes.emplace_back("training loop");
  out.lanes.emplace_back("device");
  Seconds end;
  for (const LoaderSpan& s : timeline.spans) {
    int lane = s.worker;
    if (s.kind == LoaderSpan::Kind::kPin) lane = pin;
    if (s.kind == LoaderSpan::Kind::kWait) lane = loop;
    if (s.kind == LoaderSpan::Kind::kStep) lane = loop + 1;
    if (lane < 0) continue;
    end = std::max(end, s.to);
    out.spans.push_back({lane, static_cast<int>(s.kind), s.from.count() * kMilli,
                         s.to.count() * kMilli, std::to_string(s.batch)});
  }
  constexpr double kFirstShown = 0.25;
  out.shown_to = kFirstShown * end.count() * kMilli;
  return lanes(out);
}

}  // namespace stoker::page
