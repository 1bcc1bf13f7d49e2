#pragma once

#include <string_view>

#include "input/data/data_set.h"

namespace stoker {

/// Lines that are read and split together: long enough for the CPU clock to see them.
inline constexpr std::size_t kLinesPerBlock = 256;

struct LineCounts {
  std::int64_t lines = 0, words = 0;
};
/// Splits a block into lines and lines into words (at spaces and tabs): the least that any text
/// loader does. A last line without its newline counts.
[[nodiscard]] LineCounts split_lines(std::string_view block);

/// Bytes of each line of a block, newline included.
[[nodiscard]] std::vector<std::int64_t> line_lengths(std::string_view block);

/// True when the beginning of a file can be text: no zero bytes, and valid UTF-8 or at least
/// printable.
[[nodiscard]] bool looks_like_text(std::string_view head);

/// The first bytes of the file are text, unpacked when it is gzip.
[[nodiscard]] bool is_text_file(const std::filesystem::path& path);

/// Reads parts of the files in `set.files` (the whole of them when they are small), counts lines
/// and keeps blocks of them as samples. What was not read is extrapolated by bytes. Fails when no
/// file holds text.
[[nodiscard]] Status open_text(const DataSetOptions& options, DataSet& set);

}  // namespace stoker
