#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/html/page.h"
#include "study/findings/convergence.h"
#include "study/findings/selection.h"

/// Internal to src/report/html: what pages of sweeps and of tuning show alike.
namespace stoker::page {

/// A metric or resource as study tables write it.
[[nodiscard]] Shown trial_figure(const std::string& name, double value);
/// A metric or resource as study tables write it; "-": it was not measured.
[[nodiscard]] Cell figure_cell(const std::string& name, const std::optional<double>& value);
/// A value of an axis: sorted as a number where it is one.
[[nodiscard]] Cell axis_cell(const std::string& value);

/// "batch=64 workers=4"
[[nodiscard]] std::string setting_words(const std::vector<std::string>& axes,
                                        const std::vector<std::string>& values);

/// One line a trial: axes, state, metrics, time, and why it ended. As many as have room on a page.
[[nodiscard]] Json trials_table(const study::StudyView& view);
/// "The first 200 of 3,000 trials", or nothing: how many of them have room.
[[nodiscard]] std::string trials_words(const study::StudyView& view);

/// What a trial reported of a metric on its way; x is its step, or its seconds. `points` is about
/// how many all lines of a page may have together.
inline constexpr std::size_t kCurvePoints = 4000;
enum class CurveAxis { kStep, kSeconds };
[[nodiscard]] std::vector<Line> curve_lines(const study::StudyView& view,
                                            const study::Curves& curves, CurveAxis axis,
                                            std::size_t points);

}  // namespace stoker::page
