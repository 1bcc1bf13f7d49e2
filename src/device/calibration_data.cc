#include "device/calibration_data.h"

#include <algorithm>

#include "base/ranges.h"
#include "base/text.h"
#include "base/toml_text.h"
#include "device/figure_kinds.h"
#include "device/machine_calibration.h"

namespace stoker {
namespace {

/// Times from a nanosecond to an hour, as for all bounds: what a slip of the unit would exceed.
constexpr Range kMicroseconds{1e-3, 3.6e9, "us"};
constexpr Range kFloorUs{0.01, 1e4, "us", true};
constexpr Range kSpread{0, 10, "times the mean", true};
constexpr Range kThreads{1, 4096, "threads", true};

void require(TomlTable& table, std::initializer_list<const char*> keys) {
  for (const char* needed : keys) {
    if (!table.has(needed)) table.reject("", std::string("lacks ") + needed + "; add it");
  }
}

bool is_word(const std::string& text) {
  return std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.';
  });
}

MeasuredOperator read_operator(TomlTable& table) {
  MeasuredOperator measured;
  table.text("kind", measured.kind);
  table.text("function", measured.function);
  if (!is_word(measured.function))
    table.reject("function", "must be an operator's name without namespace: \"gelu_backward\"");
  table.integer("threads", kThreads, measured.threads);
  table.text("precision", measured.precision);
  table.text("pass", measured.pass);
  table.number("time_us", kMicroseconds, 1, measured.time_us);
  table.number("spread", kSpread, 1, measured.spread);
  table.boolean("warm", measured.warm);
  measured.sizes = table.other_integers();
  measured.where = table.location();
  require(table, {"kind", "time_us"});
  return measured;
}

MeasuredFigure read_figure(TomlTable& table, const std::vector<MeasuredFigure>& before) {
  MeasuredFigure figure;
  table.text("name", figure.name);
  table.integer("threads", kThreads, figure.threads);
  const FigureKind* kind = figure_kind(figure.name);
  if (kind == nullptr && table.has("name")) {
    std::vector<std::string> names;
    for (const FigureKind& known : figure_kinds()) names.emplace_back(known.name);
    table.reject("name", "no figure is called \"" + figure.name + "\"" +
                             suggestion(figure.name, names) +
                             "; docs/reference/machine-file.md lists what is");
  }
  constexpr Range kAny{-1e18, 1e18, "", true};
  table.number("value", kind != nullptr ? kind->range : kAny, 1, figure.value);
  table.number("spread", kSpread, 1, figure.spread);
  if (kind != nullptr && !kind->by_threads && figure.threads > 0)
    table.reject("threads", figure.name + " does not depend on threads; leave them out");
  if (std::ranges::any_of(before, [&](const MeasuredFigure& other) {
        return other.name == figure.name && other.threads == figure.threads;
      })) {
    table.reject("name", figure.name + " stands there already" +
                             (figure.threads > 0 ? " for " + std::to_string(figure.threads) +
                                                       (figure.threads > 1 ? " threads" : " thread")
                                                 : "") +
                             "; leave one of the two out");
  }
  figure.where = table.location();
  require(table, {"name", "value"});
  return figure;
}

/// Lines of a [calibration] table.
class Lines {
 public:
  void raw(const std::string& text) { out_ += text; }
  void number(const std::string& key, double value) { line(key, shortest(value)); }
  void known(const char* key, double value) {
    if (value > 0) number(key, value);
  }
  void threads(int value) {
    if (value > 0) line("threads", std::to_string(value));
  }
  void text(const char* key, const std::string& value) { line(key, toml_string(value)); }
  void line(const std::string& key, const std::string& value) {
    out_ += key + " = " + value + "\n";
  }
  [[nodiscard]] std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

}  // namespace

Result<Calibration> read_calibration(TomlTable& table) {
  Calibration calibration;
  table.boolean("disturbed", calibration.disturbed);
  table.number("launch_floor_us", kFloorUs, 1, calibration.launch_floor_us);
  table.number("host_dispatch_us", kFloorUs, 1, calibration.host_dispatch_us);
  table.number("pinned_gbs", range::kLinkGbs, 1, calibration.pinned_gbs);
  table.number("pageable_gbs", range::kLinkGbs, 1, calibration.pageable_gbs);
  for (TomlTable& entry : table.tables("figure")) {
    calibration.figures.push_back(read_figure(entry, calibration.figures));
    if (auto error = entry.finish()) return tl::unexpected(std::move(*error));
  }
  for (TomlTable& entry : table.tables("operator")) {
    calibration.operators.push_back(read_operator(entry));
    if (auto error = entry.finish()) return tl::unexpected(std::move(*error));
  }
  if (auto error = table.finish()) return tl::unexpected(std::move(*error));
  return calibration;
}

std::string label_of(const MeasuredOperator& measured) {
  std::string text = measured.kind;
  if (!measured.function.empty()) text += " " + measured.function;
  for (const auto& [name, size] : measured.sizes) text += " " + name + "=" + std::to_string(size);
  text += " " + measured.precision + " " + measured.pass;
  if (measured.threads > 0) text += " threads=" + std::to_string(measured.threads);
  return text;
}

const MeasuredFigure* find_figure(const Calibration& calibration, std::string_view name,
                                  int threads) {
  const auto found = std::ranges::find_if(calibration.figures, [&](const MeasuredFigure& f) {
    return f.name == name && f.threads == threads;
  });
  return found == calibration.figures.end() ? nullptr : &*found;
}

void set_figure(Calibration& calibration, MeasuredFigure figure) {
  for (MeasuredFigure& known : calibration.figures) {
    if (known.name != figure.name || known.threads != figure.threads) continue;
    known = std::move(figure);
    return;
  }
  calibration.figures.push_back(std::move(figure));
}

std::string calibration_toml(const Calibration& calibration) {
  Lines out;
  out.raw("[calibration]\n");
  if (calibration.disturbed) out.line("disturbed", "true");
  out.known("launch_floor_us", calibration.launch_floor_us);
  out.known("host_dispatch_us", calibration.host_dispatch_us);
  out.known("pinned_gbs", calibration.pinned_gbs);
  out.known("pageable_gbs", calibration.pageable_gbs);
  for (const MeasuredFigure& figure : calibration.figures) {
    out.raw("\n[[calibration.figure]]\n");
    out.text("name", figure.name);
    out.threads(figure.threads);
    out.number("value", figure.value);
    out.known("spread", figure.spread);
  }
  for (const MeasuredOperator& measured : calibration.operators) {
    out.raw("\n[[calibration.operator]]\n");
    out.text("kind", measured.kind);
    if (!measured.function.empty()) out.text("function", measured.function);
    out.threads(measured.threads);
    for (const auto& [name, size] : measured.sizes)
      out.line(is_word(name) ? name : toml_string(name), std::to_string(size));
    out.text("precision", measured.precision);
    out.text("pass", measured.pass);
    out.known("time_us", measured.time_us);
    out.known("spread", measured.spread);
    out.line("warm", measured.warm ? "true" : "false");
  }
  return out.take();
}

}  // namespace stoker
