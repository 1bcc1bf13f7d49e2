#include "study/runner/report_tail.h"

#include <fcntl.h>
#include <unistd.h>

namespace stoker::study {
namespace {

constexpr std::size_t kLongestReport = 64 << 10;

}  // namespace

FileTail::~FileTail() {
  if (descriptor_ >= 0) close(descriptor_);
}

void FileTail::read(const std::function<void(std::string_view bytes)>& sink) {
  if (descriptor_ < 0) descriptor_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) return;
  char block[16384];
  for (;;) {
    const ssize_t count = ::read(descriptor_, block, sizeof block);
    if (count <= 0) return;
    sink(std::string_view(block, static_cast<std::size_t>(count)));
  }
}

void ReportTail::read(const std::function<void(std::string_view line)>& sink) {
  file_.read([&](std::string_view bytes) {
    while (!bytes.empty()) {
      const std::size_t end = bytes.find('\n');
      if (line_.size() < kLongestReport) line_ += bytes.substr(0, end);
      if (end == std::string_view::npos) break;
      sink(line_);
      line_.clear();
      bytes.remove_prefix(end + 1);
    }
  });
}

void OutputTail::read(const LineSplitter::Sink& sink) {
  file_.read([&](std::string_view bytes) { lines_.write(bytes, sink); });
}

}  // namespace stoker::study
