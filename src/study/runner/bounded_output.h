#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace stoker::study {

/// What a command writes on one stream, kept in a file of bounded size: its beginning as it comes,
/// and its end, with a line between them that says how much was left out. The file is made with the
/// first byte. A disk that is full costs output, never the trial.
class BoundedOutput {
 public:
  /// What comes is also written to `echo`, a descriptor, if that is one.
  BoundedOutput(std::filesystem::path path, std::int64_t most_bytes, int echo = -1);
  BoundedOutput(const BoundedOutput&) = delete;
  BoundedOutput& operator=(const BoundedOutput&) = delete;
  BoundedOutput(BoundedOutput&&) = delete;
  BoundedOutput& operator=(BoundedOutput&&) = delete;
  ~BoundedOutput();

  void write(std::string_view bytes);
  /// Writes the end.
  void finish();

  /// The last bytes of all that was written.
  [[nodiscard]] std::string_view tail() const { return tail_; }
  [[nodiscard]] std::int64_t left_out() const { return left_out_; }
  /// Bytes that the disk did not take.
  [[nodiscard]] std::int64_t lost() const { return lost_; }

 private:
  void to_file(std::string_view bytes);

  std::filesystem::path path_;
  std::int64_t head_left_;
  std::size_t tail_size_;
  std::string tail_;  ///< the last bytes, whether or not they are in the file
  std::int64_t behind_head_ = 0, left_out_ = 0, lost_ = 0;
  int descriptor_ = -1, echo_ = -1;
};

/// Parts a stream into lines at line feeds and at carriage returns, which progress bars use; a line
/// is cut at 8 KiB.
class LineSplitter {
 public:
  using Sink = std::function<void(std::string_view line)>;
  void write(std::string_view bytes, const Sink& sink);
  /// The last line, if nothing ended it.
  void finish(const Sink& sink);

 private:
  std::string line_;
};

}  // namespace stoker::study
