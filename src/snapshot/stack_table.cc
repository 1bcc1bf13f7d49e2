#include "snapshot/stack_table.h"

#include <utility>

namespace stoker {

StackId StackTable::of(const std::optional<PickleValue>& frames) {
  if (!frames || !frames->is(PickleKind::kList) || frames->size() == 0) return kNoStack;
  const auto [known, is_new] = stack_by_identity_.try_emplace(frames->identity(), kNoStack);
  if (!is_new) return known->second;
  std::vector<std::uint32_t> stack;
  stack.reserve(frames->size());
  for (std::size_t i = 0; i < frames->size(); ++i) stack.push_back(frame_of((*frames)[i]));
  const auto [same, is_first] =
      stack_by_frames_.try_emplace(std::move(stack), static_cast<StackId>(stacks_.size()));
  if (is_first) stacks_.push_back(same->first);
  return known->second = same->second;
}

std::uint32_t StackTable::frame_of(const PickleValue& frame) {
  const auto [known, is_new] = frame_by_identity_.try_emplace(frame.identity(), 0);
  if (!is_new) return known->second;
  const auto text = [&](std::string_view key) {
    const auto value = frame.find(key);
    return value ? value->as_string().value_or("") : std::string_view{};
  };
  const auto line = frame.find("line");
  const std::int64_t number = line ? line->as_int().value_or(0) : 0;
  const auto [same, is_first] = frame_by_content_.try_emplace(
      {text("filename"), text("name"), number}, static_cast<std::uint32_t>(frames_.size()));
  if (is_first)
    frames_.push_back({std::string(text("filename")), std::string(text("name")), number});
  return known->second = same->second;
}

void StackTable::move_into(Snapshot& snapshot) {
  snapshot.frames = std::move(frames_);
  snapshot.stacks = std::move(stacks_);
  *this = {};
}

}  // namespace stoker
