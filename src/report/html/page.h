#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/figure.h"
#include "base/units.h"
#include "forecast/memory_forecast.h"
#include "json/value.h"

/// Pages: one self-contained HTML file for an answer. A page is a document of blocks, of which the
/// script in assets/ draws each kind; figures come with the text that they are shown as, so that
/// text, JSON and pages say the same. Any text may hold anything: it is data to the script, and
/// never becomes markup.
namespace stoker::page {

using Json = json::Value;

enum class Verdict { kNone, kGood, kRisky, kBad };
[[nodiscard]] std::string_view name_of(Verdict verdict);
[[nodiscard]] Verdict verdict_of(MemoryVerdictWord word);

/// A figure as it is shown: "599 img/s", its band "507-731", what it rests on.
struct Shown {
  std::string text;
  std::string band;  ///< empty: it has none
  double value = 0, low = 0, high = 0;
  std::string basis;
  std::string band_is = "90 % band";
  [[nodiscard]] Json json() const;
};
/// A figure with three digits and a unit behind it.
[[nodiscard]] Shown shown(const Figure& figure, std::string_view unit);
[[nodiscard]] Shown shown_bytes(const Figure& figure);
[[nodiscard]] Shown shown_seconds(const Figure& figure);
[[nodiscard]] Shown shown_share(const Figure& share);
[[nodiscard]] Shown shown_money(const Figure& money, std::string_view currency);
/// Energy, in Wh where it is less than a hundredth of a kWh.
[[nodiscard]] Shown shown_energy(const Figure& kilowatt_hours);
/// Text alone, sorted by `value`.
[[nodiscard]] Shown plain(std::string text, double value);
/// "12.1 GiB"
[[nodiscard]] Shown shown_size(Bytes bytes);
/// "12,345"
[[nodiscard]] Shown shown_count(std::int64_t count);
/// "12.3 ms"
[[nodiscard]] Shown shown_time(double seconds);
/// "42 %"
[[nodiscard]] Shown shown_percent(double share);
/// "42.3 %"
[[nodiscard]] Shown shown_exact_percent(double share);
/// "+4.2 %"
[[nodiscard]] Shown shown_signed_percent(double change);

struct Column {
  std::string name;
  bool numeric = true;
};
struct Cell {
  std::string text;
  std::optional<Shown> shown;  ///< in place of the text
};
/// Sorted by a click on a column, copied as CSV with values and bands. Columns of which no row
/// knows anything are left out.
[[nodiscard]] Json table(const std::vector<Column>& columns,
                         const std::vector<std::vector<Cell>>& rows);

[[nodiscard]] Json sentences(const std::vector<std::string>& sentences);

/// A bar a row, its band as a whisker.
struct Bar {
  std::string label;
  Shown shown;
  std::string note;  ///< shown when the bar is pointed at
};
[[nodiscard]] Json bars(const std::vector<Bar>& rows, std::string_view axis);
/// Parts of a whole beside each other in one bar.
[[nodiscard]] Json stack(const std::vector<Bar>& parts, std::string_view axis);

struct Axis {
  std::string label;
  bool logarithmic = false;
};

/// Numbers over two discrete settings, one panel for each value of a third.
struct HeatCell {
  Verdict verdict = Verdict::kNone;
  std::vector<std::optional<Shown>> metrics;  ///< parallel to HeatMap::metrics
  std::string note;
  bool chosen = false;
};
struct HeatRow {
  std::string label;
  std::vector<HeatCell> cells;  ///< parallel to HeatMap::columns
};
struct HeatPanel {
  std::string title;
  std::vector<HeatRow> rows;
};
struct HeatMap {
  std::string row_label, column_label;
  std::vector<std::string> columns;
  std::vector<std::pair<std::string, bool>> metrics;  ///< name, whether more is better
  std::vector<HeatPanel> panels;
};
[[nodiscard]] Json heat_map(const HeatMap& map);

/// Points in a plane, those that nothing beats joined to a front.
struct Point {
  std::string label, group;
  Shown x, y;
  Verdict verdict = Verdict::kNone;
  bool front = false, chosen = false;
  std::string note;
};
struct Roof {
  std::string label;
  double rate = 0;   ///< height of the flat part, in units of y
  double slope = 0;  ///< y a unit of x, below it
};
struct Scatter {
  Axis x, y;
  std::vector<Point> points;
  std::vector<Roof> roofs;
};
[[nodiscard]] Json scatter(const Scatter& plot);

/// Who does what when: lanes with spans, a part of which is looked at.
struct Span {
  int lane = 0, kind = 0;
  double from = 0, to = 0;
  std::string label;
};
struct Lanes {
  std::vector<std::string> lanes, kinds;
  std::vector<Span> spans;
  std::string unit = "ms";
  std::string title = "timeline of the loader";
  std::string label_is = "batch";       ///< what stands before a span's label
  double shown_from = 0, shown_to = 0;  ///< the part that is seen first
};
[[nodiscard]] Json lanes(const Lanes& lanes);

/// Columns of equal length stacked over an order of events, or lines over it.
struct Series {
  std::string label;
  std::vector<double> values;
};
struct Level {
  std::string label;
  double value = 0;
};
struct Area {
  Axis x, y;
  bool bytes = false;  ///< values are bytes
  bool stacked = true;
  std::vector<double> at;  ///< x of each point; empty: their order
  std::vector<Series> series;
  std::vector<Series> overlay = {};  ///< lines over a stack, which do not add to it
  std::vector<std::pair<std::string, double>> marks = {};  ///< from which x a phase begins
  std::vector<Level> levels = {};                          ///< lines across: what there is
};
[[nodiscard]] Json area(const Area& area);

/// Lines of their own x, each a trial, a GPU or a law; the end may say how it ended.
struct Line {
  std::string label;
  std::vector<double> x, y;
  std::string note{};
  Verdict end = Verdict::kNone;
  bool chosen = false;
  bool dots = false;  ///< single values in place of a line
};
struct Lines {
  Axis x, y;
  std::vector<Line> lines;
  /// What good, risky and bad ends are, for the legend; empty: not said.
  std::vector<std::pair<Verdict, std::string>> ends{};
};
[[nodiscard]] Json lines(const Lines& plot);

/// Rectangles in proportion, nested by the dots of their names.
struct Leaf {
  std::string name;
  Shown shown;
};
[[nodiscard]] Json treemap(const std::vector<Leaf>& leaves);

/// A forecast's band and what was measured, on one line each.
struct Pair {
  std::string label;
  Shown forecast;
  std::optional<Shown> measured;
  Verdict verdict = Verdict::kNone;
};
/// What the bar, the dot and a dot outside are called in the legend.
struct PairWords {
  std::string band = "forecast, with its 90 % band", within = "measured, within the band",
              outside = "measured, outside it", value = "forecast";
  std::optional<double> base{};  ///< a stroke across all rows: no change
};
[[nodiscard]] Json pairs(const std::vector<Pair>& rows, const Axis& axis,
                         const PairWords& words = {});

/// A document of blocks, as Page makes it, as a file; `text` is for who has no scripts.
[[nodiscard]] std::string html_of(Json document, std::string_view text, std::string_view tool);

/// Collects what a page shows, in order.
class Page {
 public:
  Page(std::string_view kind, std::string title, std::string subtitle);

  void headline(Verdict verdict, std::string_view text, const std::vector<std::string>& lines);
  void tile(std::string_view label, const Shown& figure, std::string_view note = {});
  /// Blocks that are null are left out, and a section without any block, too.
  void section(std::string_view title, std::string_view lead, const std::vector<Json>& blocks);
  /// "Rests on", "Assumed": below everything.
  void footer(std::string_view label, const std::vector<std::string>& items);
  /// The answer as text, for who has no scripts.
  void text(std::string_view text);

  /// The file. `tool` is this program's version.
  [[nodiscard]] std::string html(std::string_view tool) const;

 private:
  std::string title_, text_;
  Json document_;
};

}  // namespace stoker::page
