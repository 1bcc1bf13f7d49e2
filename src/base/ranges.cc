#include "base/ranges.h"

#include <charconv>
#include <cmath>

#include "base/text.h"

namespace stoker {
namespace {

std::string with_unit(double value, const Range& range) {
  const std::string_view unit = range.unit;
  if (unit == "bytes" && value >= 0 && value <= 0x1p60) {
    return human_bytes(Bytes(static_cast<std::int64_t>(value)));
  }
  return shortest(value) + " " + std::string(unit);
}

}  // namespace

std::string shortest(double value) {
  char buffer[32];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  return error == std::errc() ? std::string(buffer, end) : "?";
}

Result<double> within(double value, const Range& range) {
  if (range.zero_allowed && value == 0) return value;
  if (std::isfinite(value) && value >= range.least && value <= range.most) return value;
  return fail(ErrorCode::kBadInput, with_unit(value, range) + " cannot be; possible are " +
                                        with_unit(range.least, range) + " to " +
                                        with_unit(range.most, range));
}

}  // namespace stoker
