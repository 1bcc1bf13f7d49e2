#include "study/runner/result_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "study/trial/no_writing.h"

namespace stoker::study {
namespace {

constexpr off_t kReserved = 32 << 10;

}  // namespace

ResultFile::ResultFile(std::filesystem::path path)
    : path_(std::move(path)), draft_(path_.string() + ".tmp") {
  descriptor_ = open(draft_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC,
                     S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH);
  if (descriptor_ >= 0) [[maybe_unused]]
    const int ignored = fallocate(descriptor_, 0, 0, kReserved);
}

ResultFile::~ResultFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

bool ResultFile::put(const std::string& text) const {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t count =
        pwrite(descriptor_, text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<std::size_t>(count);
  }
  return ftruncate(descriptor_, static_cast<off_t>(text.size())) == 0 &&
         rename(draft_.c_str(), path_.c_str()) == 0;
}

Status ResultFile::write(const TrialResult& result) {
  if (put(result_text(result))) return {};
  TrialResult shorter = result;
  shorter.points.clear();
  shorter.tail.clear();
  if (put(result_text(shorter))) return {};
  return no_writing("written", path_);
}

}  // namespace stoker::study
