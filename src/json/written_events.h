#pragma once

#include <string_view>

#include "json/text.h"

namespace stoker::json {

/// Events for who needs more digits than a double has: read_events tells a number with a point or
/// an exponent by decimal() in place of real().
class WrittenEvents : public Events {
 public:
  virtual bool decimal(double value, std::string_view written) = 0;
};

}  // namespace stoker::json
