#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// The frame of a recording (docs/reference/recording.md): blocks that each carry their length and
/// a checksum, so that a file that was cut, or whose middle is damaged, is read up to there and
/// beyond.
namespace stoker::record {

/// First bytes of every recording. The digit is the major version.
inline constexpr std::string_view kFileMark = "STOKER-RECORDING-1\n";
inline constexpr std::string_view kFileMarkStem = "STOKER-RECORDING-";

enum class BlockKind : char {
  kFacts = 'F',      ///< JSON: WatchFacts
  kProcesses = 'P',  ///< JSON: ProcessFacts that are new or changed
  kSamples = 'S',    ///< encode_samples()
  kEnd = 'E'         ///< JSON: how the watch ended
};

struct Block {
  BlockKind kind = BlockKind::kFacts;
  std::string content;
};

/// A block as it is written: deflated, framed.
[[nodiscard]] std::string framed(BlockKind kind, std::string_view content);

/// Takes blocks off the front of a recording's bytes, behind its mark.
class BlockReader {
 public:
  explicit BlockReader(std::string_view bytes) : rest_(bytes) {}

  /// The next whole block; nullopt at the end. Damaged bytes are passed over up to the next block.
  std::optional<Block> next();
  /// Bytes passed over within the file.
  [[nodiscard]] std::size_t damaged() const { return damaged_; }
  /// Bytes at the end that are no whole block: the writer was killed, or still writes.
  [[nodiscard]] std::size_t cut() const { return cut_; }

 private:
  std::string_view rest_;
  std::size_t damaged_ = 0, cut_ = 0;
};

}  // namespace stoker::record
