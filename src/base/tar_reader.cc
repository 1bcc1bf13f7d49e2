#include "base/tar_reader.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

namespace stoker {

TarReader::TarReader(const std::filesystem::path& path)
    // O_NONBLOCK: what was a file when it was listed may be a pipe by now, and must not hang us.
    : handle_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)),
      archive_(archive_read_new()) {
  archive_read_support_format_tar(archive_);
  archive_read_support_filter_gzip(archive_);
  open_ = handle_ >= 0 && archive_read_open_fd(archive_, handle_, kReadBlock) == ARCHIVE_OK;
}

TarReader::~TarReader() {
  archive_read_free(archive_);
  if (handle_ >= 0) ::close(handle_);
}

bool TarReader::compressed() const { return archive_filter_count(archive_) > 1; }

std::int64_t TarReader::position() const { return archive_filter_bytes(archive_, -1); }

TarReader::Step TarReader::next() {
  for (;;) {
    const int state = archive_read_next_header(archive_, &entry_);
    if (state == ARCHIVE_EOF) return Step::kEnd;
    if (state != ARCHIVE_OK && state != ARCHIVE_WARN) return Step::kDamaged;
    const char* name = archive_entry_pathname(entry_);
    if (archive_entry_filetype(entry_) == AE_IFREG && name != nullptr &&
        archive_entry_hardlink(entry_) == nullptr) {
      name_ = name;
      return Step::kMember;
    }
  }
}

std::int64_t TarReader::size() const { return archive_entry_size(entry_); }

bool TarReader::read(std::string& out) {
  const auto whole = static_cast<std::size_t>(std::max<std::int64_t>(0, size()));
  out.clear();
  const void* block = nullptr;
  std::size_t length = 0;
  la_int64_t offset = 0;
  // Block by block: a damaged archive may claim any size, and what lies before the damage counts.
  int state = ARCHIVE_OK;
  while ((state = archive_read_data_block(archive_, &block, &length, &offset)) == ARCHIVE_OK) {
    out.resize(std::max(out.size(), std::min(whole, static_cast<std::size_t>(offset))));  // a hole
    out.append(static_cast<const char*>(block), length);
  }
  if (state == ARCHIVE_EOF) out.resize(whole);  // a hole at the end
  return state == ARCHIVE_EOF;
}

bool TarReader::skip(const std::function<bool()>& enough) {
  if (!compressed()) return archive_read_data_skip(archive_) == ARCHIVE_OK;
  const void* block = nullptr;
  std::size_t length = 0;
  la_int64_t offset = 0;
  int state = ARCHIVE_OK;
  while ((state = archive_read_data_block(archive_, &block, &length, &offset)) == ARCHIVE_OK) {
    if (enough()) return true;
  }
  return state == ARCHIVE_EOF;
}

}  // namespace stoker
