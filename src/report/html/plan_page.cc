#include <fmt/core.h>

#include "base/text.h"
#include "forecast/input_figures.h"
#include "report/html/page_parts.h"
#include "report/html/plan_parts.h"
#include "report/model/page_report.h"
#include "report/text/layout.h"
#include "report/text/plan_words.h"

namespace stoker {
namespace {

using namespace page;

Json counts_table(const Plan& plan, const ReportContext& context) {
  std::vector<Column> columns{
      {"GPUs"},        {"batch"},    {"workers"},        {context.sample_word + "/s"},
      {"epoch"},       {"GPU busy"}, {"memory per GPU"}, {"host memory"},
      {"limit", false}};
  std::vector<std::vector<Cell>> rows;
  for (const PlanRow& row : plan.by_gpus) {
    const Forecast& f = row.forecast;
    const LoaderForecast& l = f.input.loader;
    const Bytes host = l.shared_memory + l.pinned_memory + l.worker_memory;
    const auto number = [](std::int64_t n) {
      return Cell{"", plain(std::to_string(n), static_cast<double>(n))};
    };
    rows.push_back({number(f.job.gpus),
                    number(f.job.batch),
                    f.input.known ? number(f.loader.workers) : Cell{"-", {}},
                    {"", shown(f.samples_per_s, "")},
                    f.epoch_s.value > 0 ? Cell{"", shown_seconds(f.epoch_s)} : Cell{"-", {}},
                    {"", shown_share(f.gpu_busy)},
                    {"", shown_bytes(f.memory.device_peak)},
                    host.count() > 0
                        ? Cell{"", plain(human_bytes(host), static_cast<double>(host.count()))}
                        : Cell{"-", {}},
                    {f.limiter.what, {}}});
  }
  return table(columns, rows);
}

Json utilisation(const Plan& plan, const ReportContext& context) {
  const Forecast& f = plan.best.forecast;
  std::vector<Bar> rows;
  rows.push_back({context.cpu ? "processor busy" : "GPU busy", shown_share(f.gpu_busy),
                  "what nvidia-smi would show"});
  if (!context.cpu) rows.push_back({"MFU", shown_share(f.mfu), mfu_words(f, context)});
  rows.push_back(
      {context.cpu ? "memory" : "GPU memory",
       shown_share(scaled(f.memory.device_peak, 1 / static_cast<double>(f.memory.usable.count()))),
       "of " + human_bytes(f.memory.usable)});
  if (f.input.known) {
    const InputFigures in = input_figures(f.input);
    rows.push_back({"workers", shown_share(in.worker_utilization),
                    "share of the time that they prepare batches"});
    if (context.host_cores > 0)
      rows.push_back(
          {"host cores", shown_share(scaled(in.cores_used, 1 / context.host_cores)),
           fmt::format("{:.1f} of {:g} by loading", in.cores_used.value, context.host_cores)});
    rows.push_back({"main or pin thread",
                    shown_share({f.input.loader.main_utilization, f.input.loader.main_utilization,
                                 f.input.loader.main_utilization, in.cores_used.basis}),
                    "by loading"});
    if (f.input.loader.disk_utilization > 0)
      rows.push_back({"storage",
                      shown_share({f.input.loader.disk_utilization, f.input.loader.disk_utilization,
                                   f.input.loader.disk_utilization, in.cores_used.basis}),
                      ""});
  }
  return bars(rows, "share");
}

Json advice_table(const Plan& plan, bool cpu) {
  if (plan.next.empty()) return {};
  std::vector<std::vector<Cell>> rows;
  for (const Advice& a : plan.next) {
    rows.push_back({{a.what, {}},
                    {"", plain(fmt::format("{:+.0f} %", 100 * a.gain), a.gain)},
                    {"", plain(fmt::format("{:+.0f} %", 100 * a.price), a.price)}});
  }
  return table({{"what", false}, {"speed"}, {cpu ? "hours an epoch" : "GPU-hours an epoch"}}, rows);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines = split(text, '\n');
  std::erase(lines, "");
  return lines;
}

std::vector<std::string> input_findings(const Plan& plan) {
  std::vector<std::string> list;
  if (!plan.input) return list;
  for (const Finding& f : plan.input->findings) {
    if (f.severity == Severity::kWarning) list.push_back(f.evidence + ". Cure: " + f.cure + ".");
  }
  return list;
}

}  // namespace

std::string plan_page(const Plan& plan, const PlanPicture& picture, const ReportContext& context) {
  const Forecast& f = plan.best.forecast;
  const Price price = price_of(picture);
  Page page("plan", "Plan: " + context.model, context.model_line);
  page.headline(verdict_of(f.memory.verdict), best_settings(f, context), {limit_words(f, context)});
  add_tiles(page, f, context);
  page.section(
      "What could be set",
      fmt::format("A forecast for each cell, with the loader that suits {}. Colour says whether it "
                  "fits, its strength how good the number is; the frame is the plan.",
                  context.cpu ? "it" : "that number of GPUs"),
      {settings_map(picture, price, context), sentences(lines_of(why_batch(plan, context)))});
  // One device without a price: its hours are the time again.
  if (!context.cpu || price == Price::kMoney)
    page.section(time_against(price),
                 "Every setting above that runs. Those on the line are beaten by none in both; "
                 "whiskers are 90 % bands. Settings of one model share their errors: differences "
                 "are known better than levels.",
                 {time_and_money({{"", &picture}}, price, context)});
  if (!context.cpu)
    page.section("Numbers of GPUs", "The best settings of each.", {counts_table(plan, context)});
  page.section("Where a step's time goes",
               "From batch to batch in the best settings, and the device's time by operator class.",
               step_blocks(f));
  page.section("The loader, batch by batch",
               "The first batches of a first epoch as they are simulated: who prepares what, and "
               "when the loop has to wait.",
               {loader_block(picture.loader)});
  page.section("How busy everything is", "In the best settings, in the steady state.",
               {utilisation(plan, context)});
  page.section("What to do next", "Each alone, on top of the best settings.",
               {advice_table(plan, context.cpu)});
  page.section("Input, with these settings", "", {sentences(input_findings(plan))});
  add_footer(page, context, f.diagnostics);
  page.text(plan_text(plan, context));
  return page.html(context.tool_version);
}

}  // namespace stoker
