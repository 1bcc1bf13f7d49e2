// The stack machine of the pickle format: Lib/pickletools.py of CPython describes every opcode.

#include "snapshot/pickle.h"

#include "snapshot/pickle_builder.h"
#include "snapshot/pickle_opcodes.h"

namespace stoker {
namespace pickle_detail {

void Builder::execute(unsigned char opcode) {
  switch (opcode) {
    case 0x80:  // PROTO
      if (const int version = read<std::uint8_t>(); version < 2 || version > 5) {
        refuse("PROTO", "names protocol " + std::to_string(version) + "; 2 to 5 are read");
      }
      return;
    case 0x95:  // FRAME: only a hint where to read ahead to
      (void)read<std::uint64_t>();
      return;
    case 'N':
      return push(make_cell(Tag::kNone, 0));
    case 0x88:
      return push(make_cell(Tag::kTrue, 0));
    case 0x89:
      return push(make_cell(Tag::kFalse, 0));
    case 'J':
      return push_int(read<std::int32_t>());
    case 'K':
      return push_int(read<std::uint8_t>());
    case 'M':
      return push_int(read<std::uint16_t>());
    case 0x8a:  // LONG1
      return push_long(take(read<std::uint8_t>()));
    case 0x8b: {  // LONG4
      const auto length = read<std::int32_t>();
      if (length < 0) refuse("LONG4", "has a negative length");
      return push_long(take(static_cast<std::uint64_t>(length)));
    }
    case 'G':
      return push_float();
    case 0x8c:  // SHORT_BINUNICODE
      return push_text(Tag::kString, read<std::uint8_t>());
    case 'X':
      return push_text(Tag::kString, read<std::uint32_t>());
    case 0x8d:  // BINUNICODE8
      return push_text(Tag::kString, read<std::uint64_t>());
    case 'U':  // SHORT_BINSTRING: a str of Python 2
      return push_text(Tag::kString, read<std::uint8_t>());
    case 'T':  // BINSTRING
      return push_text(Tag::kString, read<std::uint32_t>());
    case 'C':  // SHORT_BINBYTES
      return push_text(Tag::kBytes, read<std::uint8_t>());
    case 'B':  // BINBYTES
      return push_text(Tag::kBytes, read<std::uint32_t>());
    case 0x8e:  // BINBYTES8
    case 0x96:  // BYTEARRAY8
      return push_text(Tag::kBytes, read<std::uint64_t>());
    case 'h':
      return get(read<std::uint8_t>());
    case 'j':
      return get(read<std::uint32_t>());
    case 'q':
      return put(read<std::uint8_t>());
    case 'r':
      return put(read<std::uint32_t>());
    case 0x94:  // MEMOIZE
      return put(memo_.size());
    default:
      return execute_container(opcode);
  }
}

void Builder::execute_container(unsigned char opcode) {
  const auto build = [this](Tag tag, std::span<const Cell> values) {
    const std::size_t from = stack_.size() - values.size();
    push_container(tag, values.data(), values.size());
    stack_[from] = stack_.back();
    stack_.resize(from + 1);
  };
  switch (opcode) {
    case '(':
      return marks_.push_back(stack_.size());
    case '}':
      return push_container(Tag::kDict, nullptr, 0);
    case ']':
      return push_container(Tag::kList, nullptr, 0);
    case ')':
      return push_container(Tag::kTuple, nullptr, 0);
    case 0x8f:  // EMPTY_SET
      return push_container(Tag::kSet, nullptr, 0);
    case 'a':
      return append("APPEND", topmost("APPEND", 1), Tag::kList);
    case 'e':
      return append("APPENDS", above_mark("APPENDS"), Tag::kList);
    case 0x90:
      return append("ADDITEMS", above_mark("ADDITEMS"), Tag::kSet);
    case 's':
      return set_items("SETITEM", topmost("SETITEM", 2));
    case 'u':
      return set_items("SETITEMS", above_mark("SETITEMS"));
    case 't':
      return build(Tag::kTuple, above_mark("TUPLE"));
    case 'l':
      return build(Tag::kList, above_mark("LIST"));
    case 0x91:
      return build(Tag::kSet, above_mark("FROZENSET"));
    case 'd': {
      // As an empty dict below the mark's values, and SETITEMS.
      const std::size_t count = above_mark("DICT").size();
      push_container(Tag::kDict, nullptr, 0);
      const Cell dict = stack_.back();
      stack_.pop_back();
      stack_.insert(stack_.end() - static_cast<std::ptrdiff_t>(count), dict);
      return set_items("DICT", std::span(stack_).last(count));
    }
    case 0x85:
    case 0x86:
    case 0x87:
      return build(Tag::kTuple, topmost("TUPLE", opcode - 0x84u));
    default:
      break;
  }
  if (const auto known = refused_opcode(opcode)) refuse(known->name, known->reason);
  throw Refusal{"has the unknown opcode " + std::to_string(opcode) + " at byte " +
                std::to_string(opcode_at_) + "; is it a pickle?"};
}

}  // namespace pickle_detail

namespace {

/// Formats that people give by mistake, by their first bytes.
std::string mistaken_for(std::string_view content) {
  if (content.starts_with("PK\x03\x04")) {
    return "is a zip archive, as torch.save writes; a memory snapshot is the plain pickle that "
           "torch.cuda.memory._dump_snapshot writes";
  }
  if (content.starts_with("\x1f\x8b")) return "is gzip; unpack it";
  if (content.starts_with("{") || content.starts_with("[")) return "is JSON, not a pickle";
  return {};
}

}  // namespace

Result<Pickle> Pickle::parse(std::string content, const std::string& where) {
  if (const std::string other = mistaken_for(content); !other.empty()) {
    return fail(ErrorCode::kBadInput, other, where);
  }
  auto store = std::make_unique<pickle_detail::Store>(std::move(content));
  pickle_detail::Builder builder(*store);
  try {
    try {
      builder.run();
    } catch (const pickle_detail::CutShort&) {
      if (!builder.salvage()) throw;
    }
  } catch (const pickle_detail::Refusal& refusal) {
    return fail(ErrorCode::kBadInput, refusal.message, where);
  }
  return Pickle(std::move(store));
}

Pickle::Pickle(std::unique_ptr<pickle_detail::Store> store) : store_(std::move(store)) {}
Pickle::Pickle(Pickle&&) noexcept = default;
Pickle& Pickle::operator=(Pickle&&) noexcept = default;
Pickle::~Pickle() = default;

PickleValue Pickle::root() const { return store_->value(store_->root); }

std::optional<std::uint32_t> Pickle::key_id(std::string_view key) const {
  const auto found = store_->string_ids.find(key);
  if (found == store_->string_ids.end()) return std::nullopt;
  return found->second;
}

bool Pickle::cut() const { return store_->cut; }

std::size_t Pickle::memory() const { return store_->memory(); }

}  // namespace stoker
