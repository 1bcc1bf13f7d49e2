#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tune/curve/curve.h"
#include "tune/method/history.h"

namespace stoker::tune {

/// Something that a search settled, with its reason.
struct Decision {
  std::string what;
  std::string why{};
  double saved_s = 0;  ///< seconds that were not spent for it; 0: none, or not known
};

/// What a search comes to.
struct Choice {
  std::vector<std::string> values;
  std::optional<double> score{};
  std::int64_t trial = 0;  ///< in the store, that reached it
};

/// A search, gone through from its beginning as far as its history goes.
struct Walk {
  enum class Next : std::uint8_t {
    kRun,     ///< `request` is to be run
    kSample,  ///< `request` is to be run with values that a sampler tells
    kWait,    ///< an outcome is needed that is not seen yet
    kDone,
    kStuck  ///< it cannot go on: `problem` says why and what to do
  };
  Next next = Next::kDone;
  Request request{};
  std::vector<Decision> decisions{};
  std::optional<Choice> choice{};  ///< the best so far
  std::string problem{};
};

/// Where a trial has shown enough.
struct Stop {
  std::size_t points = 0;  ///< that count
  End end = End::kStopped;
  std::string reason{};
};

class Method {
 public:
  Method() = default;
  Method(const Method&) = delete;
  Method& operator=(const Method&) = delete;
  Method(Method&&) = delete;
  Method& operator=(Method&&) = delete;
  virtual ~Method() = default;

  [[nodiscard]] virtual Walk walk(const History& history) const = 0;
  /// Whether the first `count` points and the marks of a running trial are enough of it.
  /// `history` is what was seen when it was asked for.
  [[nodiscard]] virtual std::optional<std::string> enough(const History& history,
                                                          const Request& request,
                                                          const Curve& curve,
                                                          std::size_t count) const = 0;
  /// The score at which a trial has done what it was started for; nothing: none.
  [[nodiscard]] virtual std::optional<double> target(const Request& /*request*/) const {
    return std::nullopt;
  }
};

/// The first place at which a trial has shown enough, looked for from `from` points on: divergence,
/// the step or the target that it was asked to reach, or the method's rules.
[[nodiscard]] std::optional<Stop> first_stop(const Method& method, const History& history,
                                             const Request& request, const Curve& curve,
                                             std::size_t from);

}  // namespace stoker::tune
