// What is left of a pickle that ends early: a snapshot whose disk was full, or a copy that broke
// off.

#include <algorithm>

#include "snapshot/pickle_builder.h"

namespace stoker::pickle_detail {

/// Picklers add a single element without a mark, so that a list or dict of one may lie unfinished
/// within the pairs of a dict: where a key should be is no text then. Each is added to what lies
/// below it.
void Builder::settle_tail(std::size_t from) {
  std::size_t odd = from;
  while (odd < stack_.size() && tag_of(stack_[odd]) == Tag::kString) odd += 2;
  while (odd < stack_.size() && odd > from) {
    const Cell below = stack_[stack_.size() - 2];
    if (tag_of(below) == Tag::kList) append("APPEND", std::span(stack_).last(1), Tag::kList);
    else drop(1);
  }
}

/// What lies above the topmost mark is added to the container right below it, or dropped.
void Builder::settle_frame() {
  const std::size_t from = marks_.back();
  marks_.pop_back();
  const std::size_t frame = floor();
  if (from <= frame || from > stack_.size()) return stack_.resize(std::min(from, stack_.size()));
  const Tag tag = tag_of(stack_[from - 1]);
  if (tag == Tag::kList) return append("APPENDS", std::span(stack_).subspan(from), Tag::kList);
  if (tag != Tag::kDict) return stack_.resize(from);
  settle_tail(from);
  if ((stack_.size() - from) % 2 != 0) drop(1);  // a key whose value is not there
  set_items("SETITEMS", std::span(stack_).subspan(from));
}

bool Builder::salvage() {
  while (!marks_.empty()) settle_frame();
  while (stack_.size() > 1) {
    const std::size_t n = stack_.size();
    if (tag_of(stack_[n - 2]) == Tag::kList) {
      append("APPEND", std::span(stack_).last(1), Tag::kList);
    } else if (n > 2 && tag_of(stack_[n - 3]) == Tag::kDict &&
               tag_of(stack_[n - 2]) == Tag::kString) {
      set_items("SETITEM", std::span(stack_).last(2));
    } else {
      drop(1);
    }
  }
  if (stack_.empty() || (tag_of(stack_[0]) != Tag::kList && tag_of(stack_[0]) != Tag::kDict))
    return false;
  check_memory();
  store_.root = stack_[0];
  store_.cut = true;
  return true;
}

}  // namespace stoker::pickle_detail
