#include <fmt/core.h>

#include "base/percent.h"
#include "base/text.h"
#include "report/study/figures.h"
#include "report/study/study_report.h"
#include "report/text/layout.h"

namespace stoker {
namespace {

using study::Banded;

std::string time_band(const Banded& band) {
  return seconds_text(band.value) + " [" + seconds_text(band.low) + "-" + seconds_text(band.high) +
         "]";
}

std::string band_text(const Banded& band) {
  return fmt::format("{:.2g} [{:.2g}-{:.2g}]", band.value, band.low, band.high);
}

/// How far off: per cent, or a factor where those say nothing any more.
std::string off_text(double error) {
  return error < 2 ? percent(error) : fmt::format("a factor of {:.2g}", 1 + error);
}

std::string match_text(const study::ForecastMatch& m) {
  std::string text = fmt::format(
      "  {}: measured is {:.2g} of what was forecast (median of {}), which is off by {}; {} of {} "
      "lie in their bands\n",
      m.figure, m.ratio, m.trials, off_text(m.error), m.inside, m.trials);
  if (m.corrected > 0)
    text += fmt::format(
        "    with what finished trials taught: off by {} in place of {} (median of {}), {} in "
        "their bands\n",
        off_text(m.corrected_error), off_text(m.uncorrected_error), m.corrected,
        m.corrected_inside);
  return text;
}

}  // namespace

std::string outlook_text(const study::Outlook& outlook) {
  if (outlook.trials == 0 || !outlook.elapsed_s) return "";
  std::string text = time_band(*outlook.elapsed_s);
  if (outlook.at_a_time > 1)
    text +=
        fmt::format(" at {} a time, {} together", outlook.at_a_time, time_band(*outlook.trial_s));
  if (outlook.gpu_hours) text += ", " + band_text(*outlook.gpu_hours) + " GPU-hours";
  if (outlook.money) text += ", cost " + band_text(*outlook.money);
  if (outlook.kwh) text += ", " + band_text(*outlook.kwh) + " kWh (boards, estimated)";
  return text;
}

std::string verdict_text(const study::ForecastVerdict& verdict) {
  std::string text;
  for (const auto& match : verdict.matches) text += match_text(match);
  if (!text.empty()) text = "\nforecasts\n" + text;
  if (verdict.not_fitting + verdict.dominated == 0) return text;
  text += "\nsaved by forecast: ";
  if (verdict.not_fitting > 0)
    text += fmt::format("{} {} not fit{}", with_commas(verdict.not_fitting),
                        verdict.not_fitting == 1 ? "trial that does" : "trials that do",
                        verdict.dominated > 0 ? ", and " : "");
  if (verdict.dominated > 0)
    text += fmt::format("{} that others are certain to beat", with_commas(verdict.dominated));
  if (verdict.saved_s)
    text +=
        fmt::format(", {} of {} that all would have taken ({})", time_band(*verdict.saved_s),
                    seconds_text(verdict.spent_s + verdict.saved_s->value),
                    percent(verdict.saved_s->value / (verdict.spent_s + verdict.saved_s->value)));
  return text + "\n";
}

}  // namespace stoker
