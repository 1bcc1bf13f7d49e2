#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "step/step.h"

namespace stoker {

/// Position in Step::events that does not exist.
inline constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();

/// A changed copy of a step. Changes to the events are collected by position in the original and
/// applied at once, so that positions stay valid while they are collected. Ids of the original stay
/// as they are; new storages and operators are added behind them.
class StepEdit {
 public:
  explicit StepEdit(const Step& original)
      : step_(original),
        before_(original.events.size() + 1),
        after_(original.events.size()),
        removed_(original.events.size()) {}

  /// Storages, operators and the rest, to be changed in place; not the events.
  [[nodiscard]] Step& step() { return step_; }

  std::uint32_t add_storage(Storage storage);
  std::uint32_t add_operator(Operator op);
  /// Several insertions at one place keep the order of the calls. `position` may be events.size().
  void insert_before(std::size_t position, Event event) { before_[position].push_back(event); }
  void insert_after(std::size_t position, Event event) { after_[position].push_back(event); }
  void remove(std::size_t position) { removed_[position] = true; }

  /// The changed step; the edit is used up.
  [[nodiscard]] Step finish();

 private:
  Step step_;
  std::vector<std::vector<Event>> before_, after_;  ///< by position
  std::vector<bool> removed_;
};

/// Where a step's storages begin and end, as positions in its events; kNowhere where they do not.
struct EventIndex {
  explicit EventIndex(const Step& step);

  std::vector<std::size_t> allocated;  ///< by storage
  std::vector<std::size_t> freed;      ///< by storage
  std::vector<std::size_t> maker;      ///< by storage: the operator that it was allocated for
  std::size_t backward = kNowhere;     ///< the mark of the backward phase
};

/// Where an operator's events begin: with the allocations of its outputs and temporaries.
[[nodiscard]] std::size_t begin_of_operator(const Step& step, std::size_t position);

/// Whether `name` is `outer` or a module inside of it; everything lies inside of "".
[[nodiscard]] bool is_within(std::string_view name, std::string_view outer);

}  // namespace stoker
