#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace stoker {

/// Whose code a thread runs, by the file that holds it. The numbers stand in recordings: new kinds
/// are added at the end.
enum class CodeKind : std::uint8_t {
  kData,         ///< decodes images, sound, text, tables, or unpacks archives
  kMath,         ///< tensors on the CPU: PyTorch, JAX, their linear algebra
  kDevice,       ///< a GPU's driver and libraries
  kInterpreter,  ///< Python itself
  kOther         ///< the C library, NumPy, programs of the user's own, code that lies in no file
};
inline constexpr std::size_t kCodeKinds = 5;
using CodeCounts = std::array<std::int64_t, kCodeKinds>;

/// Whose code a mapped file holds, by its path.
[[nodiscard]] CodeKind code_kind(std::string_view path);

}  // namespace stoker
