#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace stoker {

/// A file of /proc that is read again and again through a descriptor that stays open: half the cost
/// of opening it each time, and a process that takes over a dead one's number is not mistaken for
/// it. Not for several threads.
class KeptFile {
 public:
  enum class State : std::uint8_t { kFine, kGone, kDenied };

  KeptFile() = default;
  explicit KeptFile(std::string path) : path_(std::move(path)) {}
  ~KeptFile() { close(); }
  KeptFile(KeptFile&& other) noexcept { swap(other); }
  KeptFile& operator=(KeptFile&& other) noexcept {
    swap(other);
    return *this;
  }

  /// The first 4 KiB at present, valid until any KeptFile is read; empty unless state() is kFine,
  /// and where no descriptor is free.
  std::string_view read();
  [[nodiscard]] State state() const { return state_; }

 private:
  void close();
  void swap(KeptFile& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(handle_, other.handle_);
    std::swap(state_, other.state_);
  }

  std::string path_;
  int handle_ = -1;
  State state_ = State::kFine;
};

/// Lets this process keep as many files open as its hard limit grants.
void raise_open_file_limit();

}  // namespace stoker
