#include "study/definition/values.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/ranges.h"
#include "base/text.h"
#include "system/system_files.h"

namespace stoker::study {
namespace {

struct Sequence {
  double first = 0, last = 0;
  double step = 1;    ///< added, or
  double factor = 0;  ///< multiplied by when above 0
};

Error wrong(std::string_view word, const std::string& why) {
  return {ErrorCode::kBadInput, "\"" + std::string(word) + "\" " + why, {}};
}

/// The exponent of "2^9" or of "1e-5", with its base: what makes a range one of powers.
std::optional<std::pair<double, double>> power_of(std::string_view text) {
  if (const auto caret = text.find('^'); caret != std::string_view::npos) {
    const auto base = as_number(text.substr(0, caret)),
               exponent = as_number(text.substr(caret + 1));
    if (!base || !exponent || *base <= 1 || *exponent != std::floor(*exponent)) return std::nullopt;
    return {{*base, *exponent}};
  }
  if (text.find_first_of("eE") == std::string_view::npos) return std::nullopt;
  const auto value = as_number(text);
  if (!value || *value <= 0) return std::nullopt;
  const double exponent = std::round(std::log10(*value));
  if (std::abs(std::pow(10, exponent) / *value - 1) > 1e-12) return std::nullopt;
  return {{10.0, exponent}};
}

std::optional<double> end_of(std::string_view text) {
  if (text.find('^') == std::string_view::npos) return as_number(text);
  const auto power = power_of(text);
  if (!power) return std::nullopt;
  const double value = std::pow(power->first, power->second);
  return std::isfinite(value) && value > 0 ? std::optional(value) : std::nullopt;
}

bool whole(double value) { return value == std::floor(value); }

/// Splits "1024x2" or "64+8" behind the two dots.
Result<Sequence> sequence_of(std::string_view word, std::string_view low, std::string_view high) {
  Sequence s;
  std::string_view by;
  char kind = 0;
  if (const auto at = high.find('x'); at != std::string_view::npos) {
    kind = 'x', by = high.substr(at + 1), high = high.substr(0, at);
  } else if (const auto plus = high.rfind('+');
             plus != std::string_view::npos && plus > 0 && high[plus - 1] != 'e') {
    kind = '+', by = high.substr(plus + 1), high = high.substr(0, plus);
  }
  const auto first = end_of(low), last = end_of(high);
  if (!first || !last)
    return tl::unexpected(wrong(word, "is no range: write 0..8, 0..64+8, 32..1024x2, 2^9..2^14"));
  s.first = *first, s.last = *last;
  if (s.first > s.last) return tl::unexpected(wrong(word, "goes down: put the smaller end first"));
  const auto from = power_of(low);
  auto to = power_of(high);
  // Below 1 no steps of 1 can be meant: "1e-4..1" is "1e-4..1e0".
  if (!to && from && from->first == 10 && s.first < 1) to = power_of(std::string(high) + "e0");
  if (kind == 0 && from && to && from->first == to->first) s.factor = from->first;
  else if (kind == 0 && !(whole(s.first) && whole(s.last)))
    return tl::unexpected(wrong(word, "needs a step: write 0.1..0.5+0.1 or 0.01..1x10"));
  if (kind == 0) return s;
  const auto amount = as_number(by);
  if (!amount || *amount <= (kind == 'x' ? 1 : 0))
    return tl::unexpected(wrong(
        word, kind == 'x' ? "needs a factor above 1 behind x" : "needs a step above 0 behind +"));
  if (kind == 'x' && s.first <= 0)
    return tl::unexpected(wrong(word, "multiplies, and so has to begin above 0"));
  (kind == 'x' ? s.factor : s.step) = *amount;
  return s;
}

double count_of(const Sequence& s) {
  constexpr double kSlack = 1e-9;  // ends are met in spite of rounding
  if (s.factor > 0) return std::floor(std::log(s.last / s.first) / std::log(s.factor) + kSlack) + 1;
  return std::floor((s.last - s.first) / s.step + kSlack) + 1;
}

std::vector<std::string> values_of(const Sequence& s) {
  std::vector<std::string> all;
  const auto count = static_cast<std::size_t>(count_of(s));
  for (std::size_t i = 0; i < count; ++i) {
    const auto n = static_cast<double>(i);
    double value = s.factor > 0 ? s.first * std::pow(s.factor, n) : s.first + n * s.step;
    // 0.1 + 2 * 0.1 is meant to be 0.3.
    char rounded[40];
    std::snprintf(rounded, sizeof rounded, "%.12g", value);
    value = *decimal_number(rounded);
    all.push_back(whole(value) && std::abs(value) < 1e15
                      ? std::to_string(static_cast<std::int64_t>(value))
                      : shortest(value));
  }
  return all;
}

}  // namespace

std::optional<double> as_number(std::string_view value) {
  const auto number = decimal_number(value);
  if (!number || !std::isfinite(*number)) return std::nullopt;
  return number;
}

Result<std::optional<std::vector<std::string>>> parse_range(std::string_view word) {
  const auto dots = word.find("..");
  // "../data" and "a/../b" are paths.
  if (dots == std::string_view::npos || dots == 0 || word.find('/') != std::string_view::npos)
    return std::optional<std::vector<std::string>>();
  const char before = word[dots - 1];
  if (std::isdigit(static_cast<unsigned char>(before)) == 0)
    return std::optional<std::vector<std::string>>();
  const Sequence sequence = TRY(sequence_of(word, word.substr(0, dots), word.substr(dots + 2)));
  if (const double count = count_of(sequence); count > static_cast<double>(kMostValues))
    return fail(ErrorCode::kBadInput, "\"" + std::string(word) + "\" has " + shortest(count) +
                                          " values, and at most " + std::to_string(kMostValues) +
                                          " are tried; give a step or fewer");
  return std::optional(values_of(sequence));
}

Result<std::vector<std::string>> parse_values(std::string_view typed, std::string_view repeats) {
  std::vector<std::string> all;
  for (const std::string& part : split(typed, ',')) {
    const std::string word(trimmed(part));
    if (word.empty())
      return tl::unexpected(wrong(typed, "has an empty value; write 32,64,128 or 0..8"));
    const auto range = TRY(parse_range(word));
    if (range) all.insert(all.end(), range->begin(), range->end());
    else all.push_back(word);
  }
  if (all.size() > kMostValues)
    return fail(ErrorCode::kBadInput, "has " + std::to_string(all.size()) +
                                          " values, and at most " + std::to_string(kMostValues) +
                                          " are tried");
  auto sorted = all;
  std::ranges::sort(sorted);
  if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end())
    return tl::unexpected(wrong(
        typed,
        "has " + *twice + " twice; " +
            (repeats.empty() ? "give it once" : std::string(repeats) + " runs settings again")));
  return all;
}

}  // namespace stoker::study
