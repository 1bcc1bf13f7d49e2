#include "tune/method/method.h"

#include <fmt/core.h>

#include <algorithm>

namespace stoker::tune {

std::optional<Stop> first_stop(const Method& method, const History& history, const Request& request,
                               const Curve& curve, std::size_t from) {
  const auto& points = curve.points;
  const auto target = method.target(request);
  for (std::size_t count = from + 1; count <= points.size(); ++count) {
    const double step = points[count - 1].step;
    if (curve.diverged_at && step > *curve.diverged_at) break;
    if (target && points[count - 1].score >= *target)
      return Stop{count, End::kReached, fmt::format("came to the target at step {:.6g}", step)};
    if (request.last_step > 0 && step >= request.last_step)
      return Stop{count, End::kReached, fmt::format("came to step {:.6g}", step)};
    if (auto reason = method.enough(history, request, curve, count))
      return Stop{count, End::kStopped, std::move(*reason)};
  }
  if (!curve.diverged_at) return std::nullopt;
  const auto after = std::ranges::find_if(
      points, [&](const Point& point) { return point.step > *curve.diverged_at; });
  return Stop{static_cast<std::size_t>(after - points.begin()), End::kDiverged,
              fmt::format("not finite from step {:.6g} on", *curve.diverged_at)};
}

}  // namespace stoker::tune
