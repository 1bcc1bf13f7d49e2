#pragma once

#include <cstddef>
#include <vector>

namespace stoker::loader {

/// A queue that asks for no memory before its first entry, unlike std::deque, which takes two
/// blocks when it is made: a simulation makes three queues for each of hundreds of workers, and
/// most stay empty or short.
template <class T>
class Fifo {
 public:
  [[nodiscard]] bool empty() const { return first_ == entries_.size(); }
  [[nodiscard]] std::size_t size() const { return entries_.size() - first_; }
  [[nodiscard]] const T& front() const { return entries_[first_]; }

  void push_back(const T& entry) {
    // Room that was left in front is taken again before the queue grows: each entry moves at most
    // once for each that was taken out.
    if (entries_.size() == entries_.capacity() && first_ * 2 >= entries_.size()) shed();
    entries_.push_back(entry);
  }
  void pop_front() {
    if (++first_ == entries_.size()) entries_.clear(), first_ = 0;
  }

 private:
  void shed() {
    entries_.erase(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }

  std::vector<T> entries_;
  std::size_t first_ = 0;
};

}  // namespace stoker::loader
