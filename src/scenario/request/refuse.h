#pragma once

#include <string>
#include <utility>

#include "base/result.h"
#include "base/setting.h"

namespace stoker {

/// What a request cannot have, told with the setting that asked for it.
[[nodiscard]] inline Status refuse(std::string message, Setting setting) {
  return fail(ErrorCode::kUsage, std::move(message), mark(setting));
}

}  // namespace stoker
