#pragma once

namespace stoker::cli {
inline constexpr const char* kVersion = STOKER_VERSION;
}  // namespace stoker::cli
