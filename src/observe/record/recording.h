#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "observe/sample/sample.h"

namespace stoker {

/// Why a file that is there is refused.
inline constexpr std::string_view kNeverOver =
    "is there already; give another name, since a recording is never written over";

/// Writes what a watch sees, block by block. A disk that fills ends the recording, not the watch.
class RecordingWriter {
 public:
  /// Refuses a file that is there: a recording is never written over.
  static Result<RecordingWriter> create(const std::filesystem::path& path, const WatchFacts& facts);
  ~RecordingWriter();
  RecordingWriter(RecordingWriter&& other) noexcept;
  RecordingWriter& operator=(RecordingWriter&&) = delete;

  void add(const std::vector<ProcessFacts>& changed);
  /// Kept in memory until a block of five seconds is full.
  void add(const Sample& sample);
  /// Writes what is left and how the watch ended.
  void end(std::string_view how);

  /// Empty, or why nothing more is written: "No space left on device".
  [[nodiscard]] const std::string& failure() const { return failure_; }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

 private:
  explicit RecordingWriter(int handle) : handle_(handle) {}
  void write(std::string_view bytes);
  void flush();

  int handle_;
  std::vector<Sample> waiting_;
  std::string failure_;
  std::int64_t bytes_ = 0;
};

/// What a recording holds beside its samples.
struct RecordingSummary {
  WatchFacts facts;
  std::vector<ProcessFacts> processes;  ///< as last told, by serial
  std::string end;                      ///< how the watch ended; empty: the recording has no end
  std::int64_t samples = 0;
  std::int64_t damaged_bytes = 0;  ///< passed over
  std::int64_t cut_bytes = 0;      ///< at the end, no whole block
};

/// Whether a file begins as a recording does.
[[nodiscard]] bool is_recording(std::string_view first_bytes);

/// Told of what a recording holds, in its order.
struct RecordingEvents {
  std::function<void(const WatchFacts&)> facts;
  std::function<void(const std::vector<ProcessFacts>&)> processes;
  std::function<void(const Sample&)> sample;
};

/// Reads a recording. Damage and a cut end are counted; an error is only what is no recording, or
/// one of a newer version.
[[nodiscard]] Result<RecordingSummary> read_recording(const std::filesystem::path& path,
                                                      const RecordingEvents& events);
/// Reads a recording from its bytes; `where` names it in errors.
[[nodiscard]] Result<RecordingSummary> parse_recording(std::string_view bytes,
                                                       const std::string& where,
                                                       const RecordingEvents& events);

}  // namespace stoker
