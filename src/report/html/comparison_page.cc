#include <fmt/core.h>

#include <algorithm>

#include "base/counted.h"
#include "base/text.h"
#include "plan/comparison.h"
#include "report/html/page_parts.h"
#include "report/html/plan_parts.h"
#include "report/model/page_report.h"
#include "report/text/layout.h"
#include "report/text/plan_words.h"

namespace stoker {
namespace {

using namespace page;

/// Maps of settings are large; the best kinds have one.
constexpr std::size_t kMostMaps = 2;

std::string settings_words(const Forecast& f) {
  std::string text =
      fmt::format("{}, batch {}, {}", gpus_text(f.job.gpus), f.job.batch, name_of(f.job.precision));
  if (f.input.known) text += ", " + counted(f.loader.workers, "worker");
  return text;
}

/// "1", "1-2" where bands overlap, "-" where it does not fit.
std::string place_words(const Standing& s) {
  if (s.first == 0) return "-";
  return s.first == s.last ? std::to_string(s.first) : fmt::format("{}-{}", s.first, s.last);
}

Json speed_bars(const std::vector<const Forecast*>& ranked, const ReportContext& context) {
  std::vector<Bar> rows;
  for (const Forecast* f : ranked) {
    if (f->memory.fits)
      rows.push_back({f->gpu_name, shown(f->samples_per_s, ""), settings_words(*f)});
  }
  return bars(rows, context.sample_word + "/s");
}

Json memory_bars(const std::vector<const Forecast*>& ranked) {
  std::vector<Bar> rows;
  for (const Forecast* f : ranked) {
    const auto usable = static_cast<double>(f->memory.usable.count());
    rows.push_back({f->gpu_name, shown_share(scaled(f->memory.device_peak, 1 / usable)),
                    fmt::format("{} of {}", layout::gib(f->memory.device_peak),
                                human_bytes(f->memory.usable))});
  }
  return bars(rows, "share of the memory");
}

Json ranking(const std::vector<Standing>& standings, const std::vector<ComparedGpu>& gpus,
             const ReportContext& context) {
  const bool any_run = std::any_of(gpus.begin(), gpus.end(), [](const ComparedGpu& g) {
    return g.forecast->run_cost.value > 0;
  });
  std::vector<std::vector<Cell>> rows;
  for (std::size_t i = 0; i < standings.size(); ++i) {
    const Forecast& f = *gpus[standings[i].index].forecast;
    const auto known = [&](const Figure& figure, const auto& write) {
      return f.memory.fits && figure.value > 0 ? Cell{"", write(figure)} : Cell{"-", {}};
    };
    const auto money = [&](const Figure& v) { return shown_money(v, context.currency); };
    rows.push_back(
        {{"", plain(place_words(standings[i]), static_cast<double>(i))},
         {f.gpu_name, {}},
         {std::string(name_of(f.memory.verdict)), {}},
         {settings_words(f), {}},
         known(f.samples_per_s, [](const Figure& v) { return shown(v, ""); }),
         known(f.epoch_s, shown_seconds),
         known(f.gpu_hours_per_epoch, [](const Figure& v) { return shown(v, ""); }),
         known(f.epoch_cost, money),
         {"", shown_bytes(f.memory.device_peak)},
         {f.memory.fits ? std::string(layout::limit_word(f.limiter)) : f.memory.out_of_memory,
          {}}});
    if (any_run) rows.back().insert(rows.back().end() - 2, known(f.run_cost, money));
  }
  std::vector<Column> columns{{"place"},
                              {"GPU", false},
                              {"fits", false},
                              {"settings", false},
                              {context.sample_word + "/s"},
                              {"epoch"},
                              {"GPU-h/epoch"},
                              {"cost/epoch"},
                              {"memory"},
                              {"limit", false}};
  if (any_run) columns.insert(columns.end() - 2, Column{"cost of the run"});
  return table(columns, rows);
}

std::vector<Json> step_stacks(const std::vector<const Forecast*>& ranked) {
  std::vector<Json> blocks;
  for (const Forecast* f : ranked) {
    if (!f->memory.fits) continue;
    Json block = step_blocks(*f).front();
    if (block.is_null()) continue;
    block["title"] = f->gpu_name;
    blocks.push_back(std::move(block));
  }
  return blocks;
}

}  // namespace

std::string comparison_page(const std::vector<ComparedGpu>& gpus, Objective objective,
                            const ReportContext& context, const std::string& text) {
  std::vector<const Forecast*> forecasts, ranked;
  for (const ComparedGpu& g : gpus) forecasts.push_back(g.forecast);
  const std::vector<Standing> standings = rank(objective, forecasts);
  for (const Standing& s : standings) ranked.push_back(forecasts[s.index]);
  const Forecast& best = *ranked.front();
  Page page("compare", fmt::format("{} GPUs for {}", gpus.size(), context.model),
            gpus.front().picture == nullptr ? context.model_line
                                            : "each in the settings that suit it best");
  page.headline(verdict_of(best.memory.verdict),
                best.memory.fits ? fmt::format("{}: {}", best.gpu_name, settings_words(best))
                                 : "None of them has the memory",
                {fmt::format("Best by {}{}", name_of(objective),
                             standings.front().last > 1 ? "; bands overlap, see the places" : "")});
  if (best.memory.fits) add_tiles(page, best, context);
  page.section("Side by side", "Places overlap where bands do.",
               {ranking(standings, gpus, context)});
  page.section("Speed", "With 90 % bands.", {speed_bars(ranked, context)});
  std::vector<std::pair<std::string, const PlanPicture*>> pictures;
  for (const Standing& s : standings) {
    if (gpus[s.index].picture != nullptr)
      pictures.emplace_back(forecasts[s.index]->gpu_name, gpus[s.index].picture);
  }
  if (!pictures.empty()) {
    const Price price = price_of(*pictures.front().second);
    page.section(time_against(price),
                 "Settings that no other of the same kind of GPU beats. Those on the line are "
                 "beaten by none at all; whiskers are 90 % bands.",
                 {time_and_money(pictures, price, context)});
    for (std::size_t i = 0; i < std::min(kMostMaps, pictures.size()); ++i) {
      page.section("What could be set on " + pictures[i].first,
                   "Colour says whether it fits, its strength how good the number is; the frame "
                   "is the plan.",
                   {settings_map(*pictures[i].second, price, context)});
    }
  }
  page.section("Where a step's time goes", "", step_stacks(ranked));
  page.section("Memory", "", {memory_bars(ranked)});
  Diagnostics none;
  add_footer(page, context, none);
  page.text(text);
  return page.html(context.tool_version);
}

}  // namespace stoker
