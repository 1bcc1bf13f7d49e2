#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "plan/comparison.h"
#include "report/model/report.h"
#include "report/text/layout.h"

namespace stoker {
namespace {

using namespace layout;

/// Where the data set's size is unknown, money and energy are said of so many samples.
constexpr double kMillion = 1e6;

/// "1", "2-4", "-" for what does not run.
std::string place(const Standing& s) {
  if (s.first == 0) return "-";
  return s.first == s.last ? std::to_string(s.first) : fmt::format("{}-{}", s.first, s.last);
}

std::string cost(const Forecast& f, const ReportContext& context) {
  if (f.price_per_gpu_hour <= 0) return "-";
  if (f.epoch_cost.value > 0) return money(f.epoch_cost.value, context.currency);
  const double per_s = f.price_per_gpu_hour * f.job.gpus / kSecondsAnHour;
  return money(per_s * kMillion / f.samples_per_s.value, context.currency);
}

std::string kilowatt_hours(const Forecast& f) {
  if (!f.energy) return "no TDP";
  return two_digits(f.energy->epoch_kwh.value > 0
                        ? f.energy->epoch_kwh
                        : scaled(f.energy->joules_per_sample, kMillion / kJoulesPerKwh));
}

std::string memory(const Forecast& f) {
  return fmt::format("{:.1f} of {:.1f}{}", f.memory.device_peak.value / kGiB.count(),
                     gibibytes(f.memory.usable),
                     !f.memory.fits                                  ? ": NO"
                     : f.memory.only_by_flushing                     ? ", flushes"
                     : f.memory.verdict == MemoryVerdictWord::kRisky ? ", risky"
                                                                     : "");
}

/// "A10", "4 x A10".
std::string counted_name(const Forecast& f) {
  return f.job.gpus == 1 ? f.gpu_name : fmt::format("{} x {}", f.job.gpus, f.gpu_name);
}

/// "; the cheapest of them is T4": what decides between equals, where all have a price.
std::string cheapest_of(const std::vector<const Forecast*>& equals) {
  const auto per_sample = [](const Forecast* f) {
    return f->price_per_gpu_hour * f->job.gpus / f->samples_per_s.value;
  };
  const auto [least, most] = std::minmax_element(
      equals.begin(), equals.end(),
      [&](const Forecast* a, const Forecast* b) { return per_sample(a) < per_sample(b); });
  if (per_sample(*least) <= 0 || per_sample(*least) == per_sample(*most)) return {};
  return "; the cheapest of them is " + counted_name(**least);
}

/// Which places the bands leave open, in words.
std::string doubts(Objective objective, const std::vector<Standing>& ranked,
                   const std::vector<const Forecast*>& forecasts) {
  const auto name = [&](const Standing& s) { return counted_name(*forecasts[s.index]); };
  std::string text;
  for (std::size_t i = 0; i + 1 < ranked.size(); ++i) {
    // The group of neighbours whose bands overlap that of the first of them.
    const Standing& lead = ranked[i];
    if (lead.first == 0 || lead.first == lead.last) continue;
    const Figure mine = objective_figure(objective, *forecasts[lead.index]);
    std::string group = name(lead);
    std::vector<const Forecast*> equals{forecasts[lead.index]};
    std::size_t end = i + 1;
    for (; end < ranked.size() && ranked[end].first != 0; ++end) {
      const Figure other = objective_figure(objective, *forecasts[ranked[end].index]);
      if (other.low > mine.high || other.high < mine.low) break;
      group += ", " + name(ranked[end]);
      equals.push_back(forecasts[ranked[end].index]);
    }
    if (end == i + 1) continue;
    if (i == 0 && objective != Objective::kCost) group += cheapest_of(equals);
    text += fmt::format("{}{}", text.empty() ? "" : "; ", group);
    i = end - 1;
  }
  if (text.empty()) return {};
  return labelled("Undecided", {"90 % bands overlap: " + text});
}

/// What several GPUs warn of alike is said once.
std::string warnings_once(const std::vector<Contender>& contenders) {
  std::vector<std::string> lines;
  for (const Contender& c : contenders) {
    for (std::string& line : split(diagnostics(c.forecast.diagnostics), '\n')) {
      if (!line.empty() && std::find(lines.begin(), lines.end(), line) == lines.end())
        lines.push_back(std::move(line));
    }
  }
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::string footer_of(const ReportContext& context) {
  return layout::footer(context.rests_on, context.assumed, context.excluded);
}

std::string title(const std::string& what, std::size_t gpus, Objective objective) {
  return fmt::format("{} on {} kind{} of GPU, best {} first\n\n", what, gpus, gpus == 1 ? "" : "s",
                     name_of(objective));
}

std::string speed_table(const std::vector<Contender>& contenders,
                        const std::vector<Standing>& ranked, const ReportContext& context) {
  std::vector<std::vector<std::string>> rows{{"place", "GPU", "batch", "GiB per GPU", "step ms",
                                              context.sample_word + "/s [90 %]", "busy", "limit",
                                              "rows"}};
  for (const Standing& s : ranked) {
    const Contender& c = contenders[s.index];
    const Forecast& f = c.forecast;
    const bool runs = f.memory.fits;
    rows.push_back({place(s), counted_name(f), std::to_string(f.job.batch), memory(f),
                    runs ? number(f.step_ms.value) : "-", runs ? rate(f.samples_per_s) : "-",
                    runs ? percent(f.gpu_busy.value) : "-",
                    runs ? std::string(limit_word(f.limiter)) : "memory", c.rows});
  }
  // What is compared stays on a narrow terminal: kinds and speed, then memory.
  return table(rows, {1, 7, 8}, "  ", {8, 6, 7, 4, 2, 3});
}

std::string money_table(const std::vector<Contender>& contenders,
                        const std::vector<Standing>& ranked, const ReportContext& context) {
  const bool epoch = context.dataset_samples > 0;
  const std::string unit = epoch ? "/epoch" : "/million " + context.sample_word;
  const bool priced = std::any_of(contenders.begin(), contenders.end(), [](const Contender& c) {
    return c.forecast.price_per_gpu_hour > 0;
  });
  std::vector<std::vector<std::string>> rows{{"place", "GPU", "GPUs"}};
  if (priced) rows[0].push_back("an hour");
  if (epoch) rows[0].insert(rows[0].end(), {"epoch", "GPU-h/epoch"});
  if (priced) rows[0].push_back("cost" + unit);
  rows[0].insert(rows[0].end(), {"W", "kWh" + unit + " [90 %]"});
  const std::int64_t epochs = contenders.front().forecast.run.epochs;
  if (epochs > 0) {
    rows[0].push_back(fmt::format("run of {}", with_commas(epochs)));
    if (priced) rows[0].push_back("cost/run");
    rows[0].push_back("kWh/run");
  }
  for (const Standing& s : ranked) {
    const Forecast& f = contenders[s.index].forecast;
    if (!f.memory.fits) continue;
    rows.push_back({place(s), f.gpu_name, std::to_string(f.job.gpus)});
    if (priced) {
      rows.back().push_back(f.price_per_gpu_hour > 0
                                ? money(f.price_per_gpu_hour * f.job.gpus, context.currency)
                                : "-");
    }
    if (epoch) {
      rows.back().push_back(human_time(kSecond * f.epoch_s.value));
      rows.back().push_back(fmt::format("{:.3f}", f.gpu_hours_per_epoch.value));
    }
    if (priced) rows.back().push_back(cost(f, context));
    rows.back().push_back(f.energy ? number(f.energy->watts.value) : "-");
    rows.back().push_back(kilowatt_hours(f));
    if (epochs == 0) continue;
    rows.back().push_back(human_time(kSecond * f.run.seconds_total.value));
    if (priced) {
      rows.back().push_back(f.run_cost.value > 0 ? money(f.run_cost.value, context.currency) : "-");
    }
    rows.back().push_back(f.energy ? two_digits(f.energy->run_kwh.value) : "-");
  }
  return rows.size() == 1 ? std::string() : "\n" + table(rows, {1});
}

}  // namespace

std::string contenders_text(const std::vector<Contender>& contenders, Objective objective,
                            const ReportContext& context) {
  std::vector<const Forecast*> forecasts;
  for (const Contender& c : contenders) forecasts.push_back(&c.forecast);
  const auto ranked = rank(objective, forecasts);
  std::string text =
      title(context.model_line, contenders.size(), objective) + settings_line(context.settings) +
      (context.settings.empty() ? "" : "\n") + speed_table(contenders, ranked, context) +
      money_table(contenders, ranked, context) + "\n" + doubts(objective, ranked, forecasts);
  for (const Contender& c : contenders) {
    if (!c.forecast.memory.fits)
      text += fmt::format("{} does not fit: {}\n", c.forecast.gpu_name,
                          c.forecast.memory.out_of_memory);
  }
  text += footer_of(context);
  return text + warnings_once(contenders) + diagnostics(context.data);
}

std::string comparison_text(const std::vector<std::pair<std::string, Plan>>& plans,
                            Objective objective, const ReportContext& context) {
  std::vector<const Forecast*> forecasts;
  for (const auto& [name, plan] : plans) forecasts.push_back(&plan.best.forecast);
  const auto ranked = rank(objective, forecasts);
  // Where the data's size is unknown, money and energy are said of a million samples.
  const bool epoch = context.dataset_samples > 0;
  const std::string unit = epoch ? "/epoch" : "/million " + context.sample_word;
  std::vector<std::vector<std::string>> rows{
      {"place", "GPU", "GPUs", "precision", "batch", "workers", context.sample_word + "/s [90 %]"}};
  if (epoch) rows[0].insert(rows[0].end(), {"epoch", "GPU-h/epoch"});
  rows[0].insert(rows[0].end(), {"cost" + unit, "kWh" + unit, "limit"});
  for (const Standing& s : ranked) {
    const Forecast& f = *forecasts[s.index];
    rows.push_back({place(s), f.gpu_name, std::to_string(f.job.gpus),
                    std::string(name_of(f.job.precision)), std::to_string(f.job.batch),
                    f.input.known ? std::to_string(f.loader.workers) : "-", rate(f.samples_per_s)});
    if (epoch) {
      rows.back().push_back(f.epoch_s.value > 0 ? human_time(kSecond * f.epoch_s.value) : "-");
      rows.back().push_back(f.gpu_hours_per_epoch.value > 0
                                ? fmt::format("{:.3f}", f.gpu_hours_per_epoch.value)
                                : "-");
    }
    rows.back().insert(rows.back().end(),
                       {cost(f, context), kilowatt_hours(f), std::string(limit_word(f.limiter))});
  }
  // The numbers of GPUs are the same for all kinds, unless a machine file says how many it has.
  std::set<std::string> left_out;
  for (const auto& [name, plan] : plans)
    left_out.insert(left_out_counts(plan.uneven_counts, plan.best.forecast.job.nodes));
  // What is compared stays on a narrow terminal: kinds, speed, cost.
  return title(context.model, plans.size(), objective) +
         table(rows, {1, 3, rows[0].size() - 1}, "  ",
               epoch ? std::vector<std::size_t>{10, 8, 5, 3, 4, 11, 7}
                     : std::vector<std::size_t>{8, 5, 3, 4, 9, 7}) +
         fmt::format("{}", fmt::join(left_out, "")) + "\n" + doubts(objective, ranked, forecasts) +
         footer_of(context) + diagnostics(context.data);
}

}  // namespace stoker
