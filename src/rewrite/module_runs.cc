#include "rewrite/module_runs.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "rewrite/checkpoint.h"
#include "rewrite/step_edit.h"

namespace stoker {
namespace {

/// Every module that has operators or has one inside that does.
std::set<std::string> known_modules(const Step& step) {
  std::set<std::string> known;
  for (const std::string& name : step.module_names) {
    for (std::size_t dot = name.find('.');; dot = name.find('.', dot + 1)) {
      known.insert(name.substr(0, dot));
      if (dot == std::string::npos) break;
    }
  }
  known.erase("");
  return known;
}

Status add_children(const std::set<std::string>& known, const std::string& parent,
                    std::set<std::string>& chosen) {
  const std::size_t before = chosen.size();
  for (const std::string& name : known) {
    if (parent.empty() ? name.find('.') == std::string::npos
                       : is_within(name, parent) && name.size() > parent.size() &&
                             name.find('.', parent.size() + 1) == std::string::npos)
      chosen.insert(name);
  }
  if (chosen.size() > before) return {};
  return fail(ErrorCode::kNotFound, "the model has no modules " + parent + ".*");
}

/// Operators of the forward by position in the events, with what identifies them.
struct ForwardOperator {
  std::size_t position;
  std::string_view module;
  NameId name;
  bool cast;  ///< perhaps a weight's, which autocast leaves out the second time
};

std::vector<ForwardOperator> forward_operators(const Step& step) {
  std::vector<ForwardOperator> found;
  for (std::size_t e = 0; e < step.events.size(); ++e) {
    const Event& event = step.events[e];
    if (event.kind == EventKind::kPhase && Phase(event.value) == Phase::kBackward) break;
    if (event.kind != EventKind::kOperator) continue;
    const Operator& op = step.operators[event.value];
    found.push_back({e, step.module_names[index(op.module)], op.name,
                     step.operator_name(op) == "aten::_to_copy"});
  }
  return found;
}

/// A stretch of the forward's operators: [begin, end).
struct Piece {
  std::size_t begin, end;
  std::size_t module;  ///< index into the modules asked for
};

using Signature = std::vector<std::pair<std::string_view, NameId>>;

Signature signature(const std::vector<ForwardOperator>& operators, std::size_t begin,
                    std::size_t end) {
  Signature result;
  for (std::size_t i = begin; i < end; ++i) {
    if (!operators[i].cast) result.emplace_back(operators[i].module, operators[i].name);
  }
  return result;
}

std::vector<Piece> contiguous_pieces(const std::vector<ForwardOperator>& operators,
                                     const std::vector<std::string>& modules) {
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < operators.size(); ++i) {
    for (std::size_t m = 0; m < modules.size(); ++m) {
      if (!is_within(operators[i].module, modules[m])) continue;
      if (!pieces.empty() && pieces.back().module == m && pieces.back().end == i) {
        ++pieces.back().end;
      } else {
        pieces.push_back({i, i + 1, m});
      }
      break;
    }
  }
  return pieces;
}

/// Whether a piece is a part of its module only, and where in the module's code that stands: a
/// layer that other modules share (an activation, registered in the first block and used in all).
enum class Fragment : std::uint8_t { kNone, kOfTheBeginning, kOfTheRest };

Fragment fragment_of(const Signature& part, const Signature& whole) {
  if (part.size() >= whole.size()) return Fragment::kNone;
  const bool ends = std::equal(part.rbegin(), part.rend(), whole.rbegin());
  if (!ends && std::equal(part.begin(), part.end(), whole.begin()))
    return Fragment::kOfTheBeginning;
  const auto found = std::search(whole.begin(), whole.end(), part.begin(), part.end());
  return found != whole.end() ? Fragment::kOfTheRest : Fragment::kNone;
}

/// Gives the uses of a shared layer to the module that calls it: the one before it, or behind it if
/// the layer comes first in a module.
std::vector<Piece> give_fragments(const std::vector<ForwardOperator>& operators,
                                  std::vector<Piece> pieces) {
  std::map<std::size_t, Signature> whole;
  std::vector<Piece> given;
  std::optional<std::size_t> waiting;  // begin of a fragment for the piece behind it
  const auto append = [&](Piece piece) {
    if (waiting) piece.begin = *std::exchange(waiting, std::nullopt);
    const bool same = !given.empty() && given.back().module == piece.module;
    if (same && given.back().end == piece.begin) {
      given.back().end = piece.end;
    } else {
      given.push_back(piece);
    }
  };
  for (const Piece& piece : pieces) {
    Signature part = signature(operators, piece.begin, piece.end);
    const auto first = whole.find(piece.module);
    const Fragment kind = first == whole.end() ? Fragment::kNone : fragment_of(part, first->second);
    if (kind == Fragment::kNone || given.empty() ||
        (kind == Fragment::kOfTheRest && given.back().end != piece.begin)) {
      if (first == whole.end()) whole.emplace(piece.module, std::move(part));
      append(piece);
    } else if (kind == Fragment::kOfTheBeginning) {
      waiting = waiting.value_or(piece.begin);
    } else {
      given.back().end = piece.end;
    }
  }
  return given;
}

/// Joins the pieces of a module that is left for a moment, for a layer registered outside of all.
std::vector<Piece> join_excursions(const std::vector<ForwardOperator>& operators,
                                   const std::vector<std::string>& modules,
                                   const std::vector<Piece>& pieces) {
  const auto is_excursion = [&](const Piece& before, const Piece& after) {
    const std::size_t length = (before.end - before.begin) + (after.end - after.begin);
    if (before.module != after.module || after.begin - before.end >= length) return false;
    for (std::size_t i = before.end; i < after.begin; ++i) {
      if (is_within(modules[before.module], operators[i].module))
        return false;  // its caller's code
    }
    return signature(operators, before.begin, before.end) !=
           signature(operators, after.begin, after.end);
  };
  std::vector<Piece> joined;
  for (const Piece& piece : pieces) {
    if (!joined.empty() && is_excursion(joined.back(), piece)) {
      joined.back().end = piece.end;
    } else {
      joined.push_back(piece);
    }
  }
  return joined;
}

/// How many calls one piece is: the most equal parts that it falls into. Operators of the module
/// itself may well repeat, those of a module inside of it hardly.
std::vector<Piece> split_calls(const std::vector<ForwardOperator>& operators, const Piece& piece,
                               const std::string& module) {
  const Signature all = signature(operators, piece.begin, piece.end);
  const bool leaf = std::all_of(all.begin(), all.end(),
                                [&](const auto& operation) { return operation.first == module; });
  if (leaf) return {piece};
  for (std::size_t period = 1; period < all.size(); ++period) {
    if (all.size() % period != 0 ||
        !std::equal(all.begin() + static_cast<std::ptrdiff_t>(period), all.end(), all.begin()))
      continue;
    std::vector<Piece> parts;
    std::size_t counted = 0, begin = piece.begin;
    for (std::size_t i = piece.begin; i < piece.end; ++i) {
      if (!operators[i].cast && counted++ % period == 0 && counted > 1) {
        std::size_t first = i;  // casts before the first operator of a call belong to it
        while (first > begin && operators[first - 1].cast) --first;
        parts.push_back({begin, first, piece.module});
        begin = first;
      }
    }
    parts.push_back({begin, piece.end, piece.module});
    return parts;
  }
  return {piece};
}

}  // namespace

Result<std::vector<std::string>> resolve_modules(const Step& step,
                                                 const std::vector<std::string>& names) {
  const std::set<std::string> known = known_modules(step);
  std::set<std::string> chosen;
  for (const std::string& name : names) {
    if (name == "blocks") {
      const auto blocks = repeated_blocks(step);
      if (blocks.empty()) {
        return fail(ErrorCode::kNotFound,
                    step.name + " has no repeated blocks; name the modules to checkpoint");
      }
      chosen.insert(blocks.begin(), blocks.end());
    } else if (name == "*" || (name.size() > 2 && name.substr(name.size() - 2) == ".*")) {
      const auto status =
          add_children(known, name == "*" ? "" : name.substr(0, name.size() - 2), chosen);
      if (!status) return tl::unexpected(status.error());
    } else if (known.count(name) > 0) {
      chosen.insert(name);
    } else {
      const std::vector<std::string> all(known.begin(), known.end());
      return fail(ErrorCode::kNotFound,
                  step.name + " has no module " + name + suggestion(name, all));
    }
  }
  std::vector<std::string> outer;
  for (const std::string& name : chosen) {
    const bool inside = std::any_of(chosen.begin(), chosen.end(), [&](const std::string& other) {
      return other != name && is_within(name, other);
    });
    if (!inside) outer.push_back(name);
  }
  return outer;
}

std::vector<ModuleRun> module_runs(const Step& step, const std::vector<std::string>& modules) {
  const auto operators = forward_operators(step);
  const auto pieces = join_excursions(
      operators, modules, give_fragments(operators, contiguous_pieces(operators, modules)));
  std::vector<ModuleRun> runs;
  for (const Piece& piece : pieces) {
    for (const Piece& call : split_calls(operators, piece, modules[piece.module])) {
      runs.push_back({modules[call.module], begin_of_operator(step, operators[call.begin].position),
                      operators[call.end - 1].position + 1});
    }
  }
  return runs;
}

}  // namespace stoker
