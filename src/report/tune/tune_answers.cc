#include "report/model/tune_answers.h"

#include <fmt/core.h>

#include <cmath>

#include "base/counted.h"
#include "base/text.h"
#include "report/json/answer.h"
#include "report/text/layout.h"

namespace stoker {
namespace {

using json::Value;

std::string of_best(double value) { return value > 0 ? fmt::format("x{:.3g}", value) : "-"; }

Value row_json(const tune::GoodputRow& row) {
  return {{"batch", row.batch},
          {"gpus", row.gpus},
          {"global_batch", row.global_batch()},
          {"fits", row.fits},
          {"samples_per_s", row.samples_per_s},
          {"efficiency", row.efficiency},
          {"goodput", row.goodput},
          {"time", row.time},
          {"cost", row.cost}};
}

Value place(const tune::Goodput& found, const std::optional<std::size_t>& row) {
  return row ? row_json(found.rows[*row]) : Value();
}

std::string named(const tune::GoodputRow& row) {
  return fmt::format("batch {} on {} {}", with_commas(row.batch), row.gpus,
                     row.gpus == 1 ? "GPU" : "GPUs") +
         (row.gpus > 1 ? fmt::format(" ({} in all)",
                                     with_commas(static_cast<std::int64_t>(row.global_batch())))
                       : "");
}

}  // namespace

std::string range_text(const tune::RangeResult& result, std::size_t runs) {
  if (!result.low) return "No suggestion: " + printable(result.reason) + "\n";
  std::string text = fmt::format(
      "Learning rate {:.2g} to {:.2g}\n"
      "  the smoothed loss falls steepest, by the logarithm of the rate, at {:.2g}; it is least at "
      "{:.2g}, of which a tenth is taken\n"
      "  {} of {} {} it",
      *result.low, *result.high, result.steepest, result.least, result.runs,
      counted(static_cast<std::int64_t>(runs), "run"), result.runs == 1 ? "shows" : "show");
  if (result.runs > 1)
    text += fmt::format("; their steepest rates differ by a factor of {:.2g}", result.spread);
  return text + (runs == 1 ? ": --repeat 3 would tell how far to trust it\n" : "\n");
}

std::string range_json(const tune::RangeResult& result, std::size_t runs,
                       std::string_view version) {
  Value root = answer("stoker-lr-test-1", version);
  root["low"] = json::or_null(result.low);
  root["high"] = json::or_null(result.high);
  root["steepest"] = result.low ? Value(result.steepest) : Value();
  root["least"] = result.low ? Value(result.least) : Value();
  root["runs"] = static_cast<std::int64_t>(runs);
  root["runs_that_show_it"] = static_cast<std::int64_t>(result.runs);
  root["spread"] = result.spread;
  root["reason"] = result.reason;
  return answer_text(root);
}

std::string goodput_text(const GoodputReport& report) {
  const tune::Goodput& found = report.found;
  std::vector<std::vector<std::string>> table{
      {"GPUs", "batch", "in all", "samples/s", "a sample counts", "time", "cost"}};
  for (const tune::GoodputRow& row : found.rows) {
    if (!row.fits) {
      table.push_back({std::to_string(row.gpus), with_commas(row.batch),
                       with_commas(static_cast<std::int64_t>(row.global_batch())), "does not fit"});
      table.back().resize(table.front().size(), "");
      continue;
    }
    table.push_back({std::to_string(row.gpus), with_commas(row.batch),
                     with_commas(static_cast<std::int64_t>(row.global_batch())),
                     layout::number(row.samples_per_s), layout::percent(row.efficiency),
                     of_best(row.time), of_best(row.cost)});
  }
  std::string text = fmt::format("{} on {}, gradient noise scale {}\n\n", printable(report.model),
                                 printable(report.gpu), layout::number(report.noise_scale)) +
                     layout::table(table);
  if (!found.soonest) return text + "\nNone of them fits.\n";
  const tune::GoodputRow& best = found.rows[*found.soonest];
  text += fmt::format("\nSoonest   {}; {} to {} in all are within 5 % on {} {}\n", named(best),
                      with_commas(std::llround(found.flat.low)),
                      with_commas(std::llround(found.flat.high)), best.gpus,
                      best.gpus == 1 ? "GPU" : "GPUs");
  if (found.cheapest) text += fmt::format("Cheapest  {}\n", named(found.rows[*found.cheapest]));
  return text +
         "Times and costs are those to reach a loss, against the best. They rest on the throughput "
         "forecast and on\nsamples to a loss growing by 1 + batch / noise scale; the noise scale "
         "grows as training goes on.\n";
}

std::string goodput_json(const GoodputReport& report, std::string_view version) {
  Value root = answer("stoker-goodput-1", version);
  root["model"] = report.model;
  root["gpu"] = report.gpu;
  root["noise_scale"] = report.noise_scale;
  Value rows = Value::array();
  for (const tune::GoodputRow& row : report.found.rows) rows.push_back(row_json(row));
  root["rows"] = std::move(rows);
  root["soonest"] = place(report.found, report.found.soonest);
  root["cheapest"] = place(report.found, report.found.cheapest);
  root["within_5_percent"] = report.found.soonest ? Value{{"gpus", report.found.flat.gpus},
                                                          {"low", report.found.flat.low},
                                                          {"high", report.found.flat.high}}
                                                  : Value();
  return answer_text(root);
}

}  // namespace stoker
