#include "study/runner/bounded_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace stoker::study {
namespace {

constexpr std::int64_t kTail = 64 << 10;
constexpr std::size_t kLongestLine = 8 << 10;

}  // namespace

BoundedOutput::BoundedOutput(std::filesystem::path path, std::int64_t most_bytes, int echo)
    : path_(std::move(path)),
      head_left_(std::max<std::int64_t>(most_bytes - kTail, most_bytes / 2)),
      tail_size_(static_cast<std::size_t>(
          std::min(kTail, std::max<std::int64_t>(most_bytes - head_left_, 1024)))),
      echo_(echo) {}

BoundedOutput::~BoundedOutput() {
  if (descriptor_ >= 0) close(descriptor_);
}

void BoundedOutput::to_file(std::string_view bytes) {
  if (descriptor_ < 0)
    descriptor_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
                       S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH);
  while (!bytes.empty()) {
    const ssize_t count = descriptor_ < 0 ? -1 : ::write(descriptor_, bytes.data(), bytes.size());
    if (count < 0 && descriptor_ >= 0 && errno == EINTR) continue;
    if (count <= 0) {
      lost_ += static_cast<std::int64_t>(bytes.size());
      return;
    }
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

void BoundedOutput::write(std::string_view bytes) {
  if (echo_ >= 0) {
    [[maybe_unused]] const ssize_t ignored = ::write(echo_, bytes.data(), bytes.size());
  }
  const auto head = static_cast<std::size_t>(
      std::min<std::int64_t>(head_left_, static_cast<std::int64_t>(bytes.size())));
  if (head > 0) {
    to_file(bytes.substr(0, head));
    head_left_ -= static_cast<std::int64_t>(head);
  }
  behind_head_ += static_cast<std::int64_t>(bytes.size() - head);
  if (bytes.size() >= tail_size_) {
    tail_ = bytes.substr(bytes.size() - tail_size_);
    return;
  }
  tail_ += bytes;
  // Cut seldom, so that a byte is moved twice on average and not once for each write.
  if (tail_.size() > 2 * tail_size_) tail_.erase(0, tail_.size() - tail_size_);
}

void BoundedOutput::finish() {
  if (tail_.size() > tail_size_) tail_.erase(0, tail_.size() - tail_size_);
  const auto end = std::min<std::int64_t>(behind_head_, static_cast<std::int64_t>(tail_.size()));
  left_out_ = behind_head_ - end;
  if (left_out_ > 0) to_file("\n[stoker: " + std::to_string(left_out_) + " bytes left out here]\n");
  to_file(std::string_view(tail_).substr(tail_.size() - static_cast<std::size_t>(end)));
  behind_head_ = 0;
}

void LineSplitter::write(std::string_view bytes, const Sink& sink) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find_first_of("\n\r");
    const std::string_view part = bytes.substr(0, end);
    if (line_.size() < kLongestLine) line_ += part.substr(0, kLongestLine - line_.size());
    if (end == std::string_view::npos) return;
    if (!line_.empty()) sink(line_);
    line_.clear();
    bytes.remove_prefix(end + 1);
  }
}

void LineSplitter::finish(const Sink& sink) {
  if (!line_.empty()) sink(line_);
  line_.clear();
}

}  // namespace stoker::study
