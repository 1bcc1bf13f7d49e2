#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"
#include "base/figure.h"
#include "base/percent.h"
#include "base/units.h"
#include "forecast/forecast.h"

/// Internal to src/report: how single figures are written.
namespace stoker::layout {

/// "2,480 [2,050-2,700]"
[[nodiscard]] std::string rate(const Figure& f);
/// "44.7 ms [38.1-51.4]"
[[nodiscard]] std::string millis(const Figure& f);
/// "12.1 GiB [11.8-12.6]"
[[nodiscard]] std::string gib(const Figure& f);
using stoker::percent;
/// Three significant digits, commas from a thousand on.
[[nodiscard]] std::string number(double value);

/// Two digits that say something below one, however small; `number` above.
[[nodiscard]] std::string two_digits(double value);
/// "0.21 [0.11-0.31]"
[[nodiscard]] std::string two_digits(const Figure& f);
/// "0.21 kWh [0.11-0.31]"; in Wh where that is less than a hundredth.
[[nodiscard]] std::string energy(const Figure& kilowatt_hours);
/// "$1,240", "$12.34", "$0.0061": two digits behind the point, more where those say nothing.
[[nodiscard]] std::string money(double value, std::string_view currency);
/// What limits a job, in one word for a table's cell.
[[nodiscard]] std::string_view limit_word(const LimiterFact& limiter);

/// "Settings   clipped; EMA", or nothing.
[[nodiscard]] std::string settings_line(const std::vector<std::string>& settings);

/// Columns aligned to the right, the header line included; `left` columns (by index) are aligned to
/// the left. On a terminal that is narrower, words of the last column are wrapped and columns left
/// out, `first_to_go` before others.
[[nodiscard]] std::string table(const std::vector<std::vector<std::string>>& rows,
                                const std::vector<std::size_t>& left = {},
                                std::string_view indent = "  ",
                                const std::vector<std::size_t>& first_to_go = {});

/// "  1 and 3 GPUs are left out: 2 nodes cannot share them evenly", or nothing: the line below a
/// table of numbers of GPUs.
[[nodiscard]] std::string left_out_counts(const std::vector<int>& counts, int nodes);

/// "Assumed    a; b; c" wrapped at `width` with a hanging indent of `indent` columns.
[[nodiscard]] std::string labelled(std::string_view label, const std::vector<std::string>& items,
                                   std::size_t width = 110, std::size_t indent = 11);

/// A paragraph that goes on below a label of a block, indented as its lines are.
[[nodiscard]] std::string continued(const std::string& text);

/// "Rests on", "Assumed", "Excluded": what stands below an answer, unless it was not wanted.
[[nodiscard]] std::string footer(const std::vector<std::string>& rests_on,
                                 const std::vector<std::string>& assumed = {},
                                 const std::vector<std::string>& excluded = {});

/// The warnings, one a line, but those of one name.
[[nodiscard]] std::string diagnostics(const Diagnostics& diagnostics, std::string_view but = {});

/// What the training leaves untrained, for the first lines of an answer; empty where nothing.
[[nodiscard]] std::string not_trained(const Diagnostics& diagnostics);

}  // namespace stoker::layout
