#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "input/probe/loader_profile.h"
#include "input/probe/sample_cost.h"

namespace stoker {

/// What a sample of a well-known data set is.
enum class KnownKind : std::uint8_t { kPictures, kPixels, kRecordings, kTokens };

/// A published data set that many train on, for a forecast before anybody has it on a disk. Figures
/// are those of its training split.
struct KnownData {
  std::string_view name;     ///< "imagenet"
  std::string_view aliases;  ///< by blanks
  KnownKind kind;
  std::int64_t samples;     ///< kTokens: tokens, of which the model's length makes samples
  double bytes;             ///< of a sample on disk; kTokens: of a token
  int width, height;        ///< mean, of images and pixels
  double seconds;           ///< mean, of recordings
  double error;             ///< relative half-width of the band of a sample's CPU time
  std::string_view how;     ///< what is taken to be done with a sample
  std::string_view source;  ///< of the figures
};

/// The data set by its name or one of its aliases, however it is written; nullptr: none.
[[nodiscard]] const KnownData* known_data(std::string_view name);
/// Names alone, in the order of the table.
[[nodiscard]] std::vector<std::string> known_data_names();
/// Names and aliases, for a suggestion.
[[nodiscard]] std::vector<std::string> known_data_words();

/// A sample's cost on the machine of the loader profile. `side`: of the crop that the model takes,
/// 0 for what takes no images.
[[nodiscard]] SampleCost sample_cost_known(const KnownData& data, std::int64_t side,
                                           const LoaderProfile& profile, OutputShape output);

}  // namespace stoker
