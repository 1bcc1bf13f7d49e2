#pragma once

// Internal to src/snapshot: the opcodes of a pickle that are not read.

#include <optional>

namespace stoker::pickle_detail {

struct RefusedOpcode {
  const char* name;    ///< "GLOBAL", as pickletools calls it
  const char* reason;  ///< follows "opcode GLOBAL at byte 2 "
};

/// Nothing for an opcode that is read, or that the format does not have.
[[nodiscard]] std::optional<RefusedOpcode> refused_opcode(unsigned char opcode);

}  // namespace stoker::pickle_detail
