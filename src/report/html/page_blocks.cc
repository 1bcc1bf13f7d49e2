#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "base/percent.h"
#include "base/text.h"
#include "report/html/page.h"
#include "report/text/layout.h"

namespace stoker::page {
namespace {

bool has_band(const Figure& f) { return f.high > f.low; }

template <class Write>
Shown shown_as(const Figure& f, const Write& write) {
  return {write(f.value), has_band(f) ? write(f.low) + " to " + write(f.high) : std::string(),
          f.value,        f.low,
          f.high,         f.basis};
}

/// Seven digits are more than any figure has; whole numbers, as bytes are, stay.
double short_number(double value) {
  if (!std::isfinite(value) || value == std::floor(value)) return value;
  char text[32];
  std::snprintf(text, sizeof text, "%.7g", value);
  return std::strtod(text, nullptr);
}

std::vector<double> short_numbers(const std::vector<double>& values) {
  std::vector<double> out;
  out.reserve(values.size());
  for (const double value : values) out.push_back(short_number(value));
  return out;
}

/// Whether a column of a table has any cell that is not empty or a stroke.
bool says_something(const std::vector<std::vector<Cell>>& rows, std::size_t column) {
  return rows.empty() || std::any_of(rows.begin(), rows.end(), [&](const auto& row) {
           return row[column].shown || (row[column].text != "-" && !row[column].text.empty());
         });
}

Json axis_object(const Axis& axis) { return {{"label", axis.label}, {"log", axis.logarithmic}}; }

Json bar_list(const std::vector<Bar>& rows) {
  Json list = Json::array();
  for (const Bar& bar : rows)
    list.push_back({{"label", bar.label}, {"figure", bar.shown.json()}, {"note", bar.note}});
  return list;
}

}  // namespace

Json Shown::json() const {
  Json object{{"text", text}, {"v", short_number(value)}};
  if (!band.empty()) {
    object["band"] = band;
    object["lo"] = short_number(low);
    object["hi"] = short_number(high);
  }
  if (!basis.empty()) object["basis"] = basis;
  if (!band.empty() && band_is != Shown{}.band_is) object["band_is"] = band_is;
  return object;
}

Shown shown(const Figure& figure, std::string_view unit) {
  const std::string behind = unit.empty() ? "" : " " + std::string(unit);
  Shown out = shown_as(figure, [](double v) { return layout::number(v); });
  out.text += behind;
  if (!out.band.empty()) out.band += behind;
  return out;
}

Shown shown_bytes(const Figure& figure) {
  return shown_as(figure, [](double v) { return human_bytes(Bytes(std::llround(v))); });
}

Shown shown_seconds(const Figure& figure) {
  return shown_as(figure, [](double v) { return human_time(kSecond * v); });
}

Shown shown_share(const Figure& share) {
  return shown_as(share, [](double v) { return layout::percent(v); });
}

Shown shown_money(const Figure& money, std::string_view currency) {
  return shown_as(money, [&](double v) { return layout::money(v, currency); });
}

Shown shown_energy(const Figure& kilowatt_hours) {
  constexpr double kSmall = 0.01, kWattHours = 1000;
  const bool small = kilowatt_hours.value < kSmall;
  return shown_as(kilowatt_hours, [&](double kwh) {
    return layout::two_digits(small ? kwh * kWattHours : kwh) + (small ? " Wh" : " kWh");
  });
}

Shown plain(std::string text, double value) {
  return {std::move(text), "", value, value, value, ""};
}

Shown shown_size(Bytes bytes) {
  return plain(human_bytes(bytes), static_cast<double>(bytes.count()));
}

Shown shown_count(std::int64_t count) {
  return plain(with_commas(count), static_cast<double>(count));
}

Shown shown_time(double seconds) { return plain(human_time(seconds * kSecond), seconds); }

Shown shown_percent(double share) { return plain(percent(share), share); }

Shown shown_exact_percent(double share) { return plain(exact_percent(share), share); }

Shown shown_signed_percent(double change) { return plain(signed_percent(change), change); }

Json table(const std::vector<Column>& columns, const std::vector<std::vector<Cell>>& rows) {
  Json head = Json::array(), body = Json::array();
  std::vector<std::size_t> kept;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    if (!says_something(rows, c)) continue;
    kept.push_back(c);
    head.push_back({{"name", columns[c].name}, {"numeric", columns[c].numeric}});
  }
  for (const auto& row : rows) {
    Json cells = Json::array();
    for (const std::size_t c : kept)
      cells.push_back(row[c].shown ? row[c].shown->json() : Json(row[c].text));
    body.push_back(std::move(cells));
  }
  return {{"kind", "table"}, {"columns", std::move(head)}, {"rows", std::move(body)}};
}

Json sentences(const std::vector<std::string>& list) {
  if (list.empty()) return {};
  return {{"kind", "sentences"}, {"items", list}};
}

Json bars(const std::vector<Bar>& rows, std::string_view axis) {
  if (rows.empty()) return {};
  return {{"kind", "bars"}, {"axis", axis}, {"rows", bar_list(rows)}};
}

Json stack(const std::vector<Bar>& parts, std::string_view axis) {
  if (parts.empty()) return {};
  return {{"kind", "stack"}, {"axis", axis}, {"rows", bar_list(parts)}};
}

Json heat_map(const HeatMap& map) {
  Json metrics = Json::array(), panels = Json::array();
  for (const auto& [name, more] : map.metrics)
    metrics.push_back({{"name", name}, {"more_is_better", more}});
  for (const HeatPanel& panel : map.panels) {
    Json rows = Json::array();
    for (const HeatRow& row : panel.rows) {
      Json cells = Json::array();
      for (const HeatCell& cell : row.cells) {
        Json figures = Json::array();
        for (const auto& metric : cell.metrics) figures.push_back(metric ? metric->json() : Json());
        cells.push_back({{"verdict", name_of(cell.verdict)},
                         {"figures", std::move(figures)},
                         {"note", cell.note},
                         {"chosen", cell.chosen}});
      }
      rows.push_back({{"label", row.label}, {"cells", std::move(cells)}});
    }
    panels.push_back({{"title", panel.title}, {"rows", std::move(rows)}});
  }
  return {{"kind", "heat_map"},
          {"row_label", map.row_label},
          {"columns", map.columns},
          {"column_label", map.column_label},
          {"metrics", std::move(metrics)},
          {"panels", std::move(panels)}};
}

Json scatter(const Scatter& plot) {
  if (plot.points.empty()) return {};
  Json points = Json::array(), roofs = Json::array();
  for (const Point& p : plot.points) {
    points.push_back({{"label", p.label},
                      {"group", p.group},
                      {"x", p.x.json()},
                      {"y", p.y.json()},
                      {"verdict", name_of(p.verdict)},
                      {"front", p.front},
                      {"chosen", p.chosen},
                      {"note", p.note}});
  }
  for (const Roof& roof : plot.roofs)
    roofs.push_back({{"label", roof.label}, {"rate", roof.rate}, {"slope", roof.slope}});
  return {{"kind", "scatter"},
          {"x", axis_object(plot.x)},
          {"y", axis_object(plot.y)},
          {"points", std::move(points)},
          {"roofs", std::move(roofs)}};
}

Json lanes(const Lanes& all) {
  if (all.spans.empty()) return {};
  Json spans = Json::array();
  for (const Span& s : all.spans)
    spans.push_back(
        Json::array({s.lane, s.kind, short_number(s.from), short_number(s.to), s.label}));
  return {{"kind", "lanes"},           {"lanes", all.lanes},       {"kinds", all.kinds},
          {"spans", std::move(spans)}, {"unit", all.unit},         {"from", all.shown_from},
          {"to", all.shown_to},        {"label_is", all.label_is}, {"title", all.title}};
}

Json area(const Area& a) {
  if (a.series.empty()) return {};
  const auto list_of = [](const std::vector<Series>& all) {
    Json list = Json::array();
    for (const Series& s : all)
      list.push_back({{"label", s.label}, {"values", short_numbers(s.values)}});
    return list;
  };
  Json marks = Json::array(), levels = Json::array();
  for (const auto& [label, from] : a.marks) marks.push_back({{"label", label}, {"from", from}});
  for (const Level& l : a.levels) levels.push_back({{"label", l.label}, {"value", l.value}});
  Json block{{"kind", "area"},
             {"x", axis_object(a.x)},
             {"y", axis_object(a.y)},
             {"bytes", a.bytes},
             {"stacked", a.stacked},
             {"series", list_of(a.series)},
             {"overlay", list_of(a.overlay)},
             {"marks", std::move(marks)},
             {"levels", std::move(levels)}};
  if (!a.at.empty()) block["at"] = short_numbers(a.at);
  return block;
}

Json lines(const Lines& plot) {
  Json list = Json::array(), ends = Json::array();
  for (const Line& l : plot.lines) {
    if (l.x.empty()) continue;
    list.push_back({{"label", l.label},
                    {"x", short_numbers(l.x)},
                    {"y", short_numbers(l.y)},
                    {"note", l.note},
                    {"end", name_of(l.end)},
                    {"chosen", l.chosen},
                    {"dots", l.dots}});
  }
  if (list.empty()) return {};
  for (const auto& [verdict, words] : plot.ends)
    ends.push_back({{"verdict", name_of(verdict)}, {"words", words}});
  return {{"kind", "lines"},
          {"x", axis_object(plot.x)},
          {"y", axis_object(plot.y)},
          {"lines", std::move(list)},
          {"ends", std::move(ends)}};
}

Json treemap(const std::vector<Leaf>& leaves) {
  if (leaves.empty()) return {};
  Json list = Json::array();
  for (const Leaf& leaf : leaves)
    list.push_back({{"name", leaf.name}, {"figure", leaf.shown.json()}});
  return {{"kind", "treemap"}, {"leaves", std::move(list)}};
}

Json pairs(const std::vector<Pair>& rows, const Axis& axis, const PairWords& words) {
  if (rows.empty()) return {};
  Json list = Json::array();
  for (const Pair& p : rows) {
    list.push_back({{"label", p.label},
                    {"forecast", p.forecast.json()},
                    {"measured", p.measured ? p.measured->json() : Json()},
                    {"verdict", name_of(p.verdict)}});
  }
  return {{"kind", "pairs"},
          {"axis", axis_object(axis)},
          {"rows", std::move(list)},
          {"words",
           {{"band", words.band},
            {"within", words.within},
            {"outside", words.outside},
            {"value", words.value}}},
          {"base", words.base ? Json(*words.base) : Json()}};
}

}  // namespace stoker::page
