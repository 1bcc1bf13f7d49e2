#include "tune/method/method.h"

#include <fmt/core.h>

namespace stoker::tune {

std::optional<Stop> first_stop(const Method& method, const History& history, const Request& request,
                               const Curve& curve, std::size_t from) {
  const auto& points = curve.points;
  for (std::size_t count = from + 1; count <= points.size(); ++count) {
    const double step = points[count - 1].step;
    if (curve.diverged_at && step > *curve.diverged_at) break;
    if (request.last_step > 0 && step >= request.last_step)
      return Stop{count, End::kReached, fmt::format("came to step {:.6g}", step)};
    if (auto reason = method.enough(history, request, curve, count))
      return Stop{count, End::kStopped, std::move(*reason)};
  }
  if (curve.diverged_at)
    return Stop{points.size(), End::kDiverged,
                fmt::format("diverged: not finite from step {:.6g} on", *curve.diverged_at)};
  return std::nullopt;
}

}  // namespace stoker::tune
