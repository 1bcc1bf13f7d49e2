#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

struct archive;
struct archive_entry;

namespace stoker {

/// One tar archive, plain or gzip, read from front to back. Not copied; one thread.
class TarReader {
 public:
  enum class Step : std::uint8_t { kMember, kEnd, kDamaged };
  static constexpr std::size_t kReadBlock = 64 * 1024;

  /// A file that is a pipe by now is not waited for.
  explicit TarReader(const std::filesystem::path& path);
  ~TarReader();
  TarReader(const TarReader&) = delete;
  TarReader& operator=(const TarReader&) = delete;

  [[nodiscard]] bool readable() const { return handle_ >= 0; }
  [[nodiscard]] bool is_tar() const { return open_; }
  [[nodiscard]] bool compressed() const;
  /// Bytes of the file that are behind us.
  [[nodiscard]] std::int64_t position() const;

  /// To the next regular file.
  Step next();
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::int64_t size() const;
  /// The member's content, as far as it goes; false when it is cut short.
  bool read(std::string& out);
  /// Passes the member over. A compressed one has to be decompressed, which `enough` may end.
  bool skip(const std::function<bool()>& enough);

 private:
  int handle_;
  archive* archive_;
  archive_entry* entry_ = nullptr;
  bool open_ = false;
  std::string name_;
};

}  // namespace stoker
