#include "report/html/plan_parts.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "base/counted.h"
#include "base/text.h"
#include "report/text/layout.h"
#include "report/text/plan_words.h"

namespace stoker::page {
namespace {

/// What one setting costs; of an epoch where its size is known, else of a million samples.
Shown cost_of(const GridSetting& s, Price price, const ReportContext& context) {
  constexpr double kMillion = 1e6, kSecondsAnHour = 3600;
  if (price == Price::kMoney) return shown_money(s.epoch_cost, context.currency);
  const char* const unit = context.cpu ? "h" : "GPU-h";
  if (price == Price::kGpuHours) return shown(s.gpu_hours_per_epoch, unit);
  const auto hours = [&](double rate) { return s.gpus * kMillion / rate / kSecondsAnHour; };
  const Figure& r = s.samples_per_s;
  return shown({hours(r.value), hours(r.high), hours(r.low), r.basis}, unit);
}

bool runs(const GridSetting& s) { return s.samples_per_s.value > 0; }

HeatCell heat_cell(const GridSetting& s, Price price, const ReportContext& context) {
  HeatCell cell;
  cell.verdict = verdict_of(s.verdict);
  cell.chosen = s.chosen;
  if (!runs(s)) {
    cell.metrics.resize(3);
    if (s.device_peak.value > 0) cell.metrics[2] = shown_bytes(s.device_peak);
    return cell;
  }
  cell.metrics = {shown(s.samples_per_s, ""), cost_of(s, price, context),
                  shown_bytes(s.device_peak)};
  cell.note = "limited by " + s.limiter.what;
  if (s.input_known) cell.note += ", " + counted(s.workers, "worker");
  return cell;
}

/// Settings that no other one beats in speed and in cost.
std::vector<bool> front_of(const std::vector<Point>& points) {
  std::vector<bool> front;
  for (const Point& p : points) {
    front.push_back(std::none_of(points.begin(), points.end(), [&](const Point& o) {
      return o.x.value <= p.x.value && o.y.value <= p.y.value &&
             (o.x.value < p.x.value || o.y.value < p.y.value);
    }));
  }
  return front;
}

Point point_of(const GridSetting& s, const std::string& gpu, Price price,
               const ReportContext& context) {
  constexpr double kThousand = 1000;
  const Figure& r = s.samples_per_s;
  Point p;
  p.label = fmt::format("{}{}, batch {}, {}", gpu.empty() ? "" : gpu + ": ", gpus_text(s.gpus),
                        s.batch, name_of(s.precision));
  p.group = !gpu.empty()  ? gpu
            : context.cpu ? std::string(name_of(s.precision))
                          : gpus_text(s.gpus);
  p.x = price != Price::kNone
            ? shown_seconds(s.epoch_s)
            : shown_seconds({kThousand / r.value, kThousand / r.high, kThousand / r.low, r.basis});
  p.y = cost_of(s, price, context);
  p.verdict = verdict_of(s.verdict);
  p.chosen = s.chosen;
  p.note = layout::rate(r) + " " + context.sample_word + "/s";
  return p;
}

}  // namespace

Price price_of(const PlanPicture& picture) {
  for (const GridSetting& s : picture.grid) {
    if (s.epoch_cost.value > 0) return Price::kMoney;
    if (s.gpu_hours_per_epoch.value > 0) return Price::kGpuHours;
  }
  return Price::kNone;
}

std::string cost_words(Price price, const ReportContext& context) {
  if (price == Price::kMoney) return "cost of an epoch (" + context.currency + ")";
  const std::string hours = context.cpu ? "hours" : "GPU-hours";
  return hours + (price == Price::kGpuHours ? " an epoch" : " a million " + context.sample_word);
}

std::string time_against(Price price) {
  return price == Price::kMoney ? "Time against money" : "Time against GPU-hours";
}

Json settings_map(const PlanPicture& picture, Price price, const ReportContext& context) {
  HeatMap map;
  map.row_label = context.cpu ? "" : "GPUs";
  map.column_label = context.cpu ? "batch" : "batch per GPU";
  map.metrics = {{context.sample_word + "/s", true},
                 {cost_words(price, context), false},
                 {context.cpu ? "memory" : "memory per GPU", false}};
  std::set<std::int64_t> batches;
  for (const GridSetting& s : picture.grid) batches.insert(s.batch);
  for (const std::int64_t batch : batches) map.columns.push_back(with_commas(batch));
  for (const GridSetting& s : picture.grid) {
    const std::string title(name_of(s.precision));
    if (map.panels.empty() || map.panels.back().title != title) map.panels.push_back({title, {}});
    HeatPanel& panel = map.panels.back();
    const std::string label = context.cpu ? "" : std::to_string(s.gpus);
    if (panel.rows.empty() || panel.rows.back().label != label) panel.rows.push_back({label, {}});
    panel.rows.back().cells.push_back(heat_cell(s, price, context));
  }
  return heat_map(map);
}

Json time_and_money(const std::vector<std::pair<std::string, const PlanPicture*>>& pictures,
                    Price price, const ReportContext& context) {
  Scatter plot;
  const bool epochs = price != Price::kNone;
  plot.x = {epochs ? "seconds an epoch" : "seconds a thousand " + context.sample_word, true};
  plot.y = {cost_words(price, context), true};
  for (const auto& [gpu, picture] : pictures) {
    std::vector<Point> points;
    for (const GridSetting& s : picture->grid) {
      if (runs(s)) points.push_back(point_of(s, gpu, price, context));
    }
    // Settings that their own kind of GPU beats would fill the page.
    const std::vector<bool> front = front_of(points);
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (pictures.size() == 1 || front[i] || points[i].chosen)
        plot.points.push_back(std::move(points[i]));
    }
  }
  const std::vector<bool> front = front_of(plot.points);
  for (std::size_t i = 0; i < front.size(); ++i) plot.points[i].front = front[i];
  return scatter(plot);
}

}  // namespace stoker::page
