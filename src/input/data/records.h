#pragma once

#include <optional>

#include "input/data/data_set.h"

namespace stoker {

/// How raw pixels lie in a binary file.
struct RecordLayout {
  std::string format;        ///< "CIFAR-10 binary", "idx"
  std::int64_t header = 0;   ///< bytes before the first record
  std::int64_t record = 0;   ///< bytes of one record
  std::int64_t label = 0;    ///< bytes of it before its pixels
  std::int64_t records = 0;  ///< in the file
  int width = 0, height = 0, channels = 0;
};

/// What the first bytes of a file tell.
enum class RecordVerdict : std::uint8_t {
  kPictures,   ///< `layout` is filled
  kLabels,     ///< an idx file of labels
  kPickle,     ///< Python's pickle: CIFAR's "python version"
  kTruncated,  ///< shorter than its header says
  kUnknown
};

/// Judges a file by its beginning and its size (unpacked; -1: not known). CIFAR-10's records are a
/// label and 3 x 32 x 32 bytes, CIFAR-100's have two labels (their page, "Binary version"); idx
/// files open with two zeros, the type 8 (bytes) and the number of dimensions, big-endian sizes
/// after that (MNIST's page).
[[nodiscard]] RecordVerdict judge_records(std::span<const std::uint8_t> head, std::int64_t size,
                                          RecordLayout& layout);

/// Recognises the files in `set.files`, counts their records and loads some spread over them.
/// Files named like a test set count only when there are no others. Fails when no file holds
/// records that are known.
[[nodiscard]] Status open_records(const DataSetOptions& options, DataSet& set);

}  // namespace stoker
