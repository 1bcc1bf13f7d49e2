#pragma once

// Internal to src/snapshot: call stacks, each kept once.

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "snapshot/pickle.h"
#include "snapshot/snapshot.h"

namespace stoker {

/// Numbers the stacks of a pickle. The same list object stands for the same stack, so that a list
/// that a thousand events share is looked at once; equal lists are made one. Borrows the pickle.
class StackTable {
 public:
  /// The stack of a "frames" entry: a list of dicts, or kNoStack for anything else.
  [[nodiscard]] StackId of(const std::optional<PickleValue>& frames);
  /// Hands frames and stacks over; the table is empty then.
  void move_into(Snapshot& snapshot);

 private:
  std::uint32_t frame_of(const PickleValue& frame);

  std::vector<StackFrame> frames_;
  std::vector<std::vector<std::uint32_t>> stacks_{{}};  ///< the first is kNoStack
  std::unordered_map<std::uint64_t, StackId> stack_by_identity_;
  std::map<std::vector<std::uint32_t>, StackId> stack_by_frames_;
  std::unordered_map<std::uint64_t, std::uint32_t> frame_by_identity_;
  std::map<std::tuple<std::string_view, std::string_view, std::int64_t>, std::uint32_t>
      frame_by_content_;
};

}  // namespace stoker
