#include "snapshot/pickle_opcodes.h"

#include <cstdint>

namespace stoker::pickle_detail {
namespace {

enum class Fate : std::uint8_t { kRunsCode, kOutside, kOldProtocol, kNotData };

struct Refused {
  unsigned char opcode;
  const char* name;
  Fate fate;
};

/// Every opcode that is not read, so that it can be refused by name.
constexpr Refused kRefused[] = {{'c', "GLOBAL", Fate::kRunsCode},
                                {0x93, "STACK_GLOBAL", Fate::kRunsCode},
                                {'R', "REDUCE", Fate::kRunsCode},
                                {'b', "BUILD", Fate::kRunsCode},
                                {'i', "INST", Fate::kRunsCode},
                                {'o', "OBJ", Fate::kRunsCode},
                                {0x81, "NEWOBJ", Fate::kRunsCode},
                                {0x92, "NEWOBJ_EX", Fate::kRunsCode},
                                {0x82, "EXT1", Fate::kRunsCode},
                                {0x83, "EXT2", Fate::kRunsCode},
                                {0x84, "EXT4", Fate::kRunsCode},
                                {'P', "PERSID", Fate::kOutside},
                                {'Q', "BINPERSID", Fate::kOutside},
                                {0x97, "NEXT_BUFFER", Fate::kOutside},
                                {0x98, "READONLY_BUFFER", Fate::kOutside},
                                {'I', "INT", Fate::kOldProtocol},
                                {'L', "LONG", Fate::kOldProtocol},
                                {'F', "FLOAT", Fate::kOldProtocol},
                                {'S', "STRING", Fate::kOldProtocol},
                                {'V', "UNICODE", Fate::kOldProtocol},
                                {'g', "GET", Fate::kOldProtocol},
                                {'p', "PUT", Fate::kOldProtocol},
                                {'0', "POP", Fate::kNotData},
                                {'1', "POP_MARK", Fate::kNotData},
                                {'2', "DUP", Fate::kNotData}};

const char* reason(Fate fate) {
  switch (fate) {
    case Fate::kRunsCode:
      return "would import or run code; a memory snapshot is plain data, so this file is refused";
    case Fate::kOutside:
      return "refers to something outside the file; a memory snapshot does not";
    case Fate::kOldProtocol:
      return "belongs to protocol 0 or 1; write the snapshot with protocol 2 or later, as "
             "torch.cuda.memory._dump_snapshot does";
    case Fate::kNotData:
      break;
  }
  return "is not used by plain data; a memory snapshot does not hold it";
}

}  // namespace

std::optional<RefusedOpcode> refused_opcode(unsigned char opcode) {
  for (const Refused& refused : kRefused) {
    if (refused.opcode == opcode) return RefusedOpcode{refused.name, reason(refused.fate)};
  }
  return std::nullopt;
}

}  // namespace stoker::pickle_detail
