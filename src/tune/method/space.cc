#include "tune/method/space.h"

#include <fmt/core.h>

#include <cmath>

#include "base/random.h"
#include "study/definition/values.h"

namespace stoker::tune {
namespace {

/// Grids above this are no grids that anybody runs.
constexpr std::size_t kMostCombinations = 100'000;

bool is_power_range(const std::string& typed) {
  const auto dots = typed.find("..");
  if (dots == std::string::npos || typed.find(',') != std::string::npos) return false;
  if (typed.find_first_of("eE") > dots) return false;
  if (typed.find_first_of("eE", dots) != std::string::npos) return true;
  // "1e-4..1": parse_values() took it, so that the end is a power of ten as well.
  const auto low = study::as_number(typed.substr(0, dots));
  return low && *low < 1 && study::as_number(typed.substr(dots + 2));
}

}  // namespace

std::string number_text(double value) { return fmt::format("{:.4g}", value); }

Result<Dimension> parse_dimension(const std::string& name, const std::string& typed) {
  auto values = study::parse_values(typed);
  if (!values) return fail(ErrorCode::kUsage, values.error().message, "--" + name);
  Dimension dimension{name, std::move(*values)};
  if (!is_power_range(typed)) return dimension;
  const auto low = study::as_number(dimension.values.front()),
             high = study::as_number(dimension.values.back());
  if (!low || !high || !(*low > 0) || !(*high > *low)) return dimension;
  dimension.values.clear();
  dimension.low = *low;
  dimension.high = *high;
  return dimension;
}

std::vector<std::string> draw(const std::vector<Dimension>& space, std::uint64_t seed,
                              std::uint64_t index) {
  // Each configuration has a stream of its own, so that its values do not depend on how many were
  // drawn before it.
  Random random(Random(seed ^ 0x5bf03635ULL).next() + 0x9e3779b97f4a7c15ULL * (index + 1));
  random.next();
  std::vector<std::string> values;
  for (const Dimension& d : space) {
    if (d.continuous())
      values.push_back(number_text(std::exp(random.uniform(std::log(d.low), std::log(d.high)))));
    else values.push_back(d.values[random.below(d.values.size())]);
  }
  return values;
}

std::vector<std::vector<std::string>> combinations(const std::vector<Dimension>& space) {
  std::vector<std::vector<std::string>> all{{}};
  for (const Dimension& d : space) {
    std::vector<std::string> values = d.values;
    for (double power = d.low; d.continuous() && power <= d.high * 1.001; power *= 10)
      values.push_back(number_text(power));
    std::vector<std::vector<std::string>> longer;
    for (const auto& one : all) {
      for (const std::string& value : values) {
        longer.push_back(one);
        longer.back().push_back(value);
        if (longer.size() >= kMostCombinations) break;
      }
    }
    all = std::move(longer);
  }
  return all;
}

}  // namespace stoker::tune
