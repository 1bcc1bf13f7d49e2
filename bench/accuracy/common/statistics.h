#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/figure.h"

namespace stoker::accuracy {

/// A measured figure beside what was said of it, in any one unit.
struct Pair {
  std::string
      group;  ///< rows of one group (model family) are fitted or scored together, never both
  std::string label;  ///< names the row in lists: "resnet50 batch 32"
  double truth = 0;   ///< > 0
  double predicted = 0;
  std::optional<Band> band;  ///< 90 %, relative to `predicted`
  /// Which measured errors it belongs to: the forecast's own name for such cases.
  std::string kind = std::string();
  /// Why the measured figure is what it is, where the measured rows alone tell; else empty.
  std::string cause = std::string();
  /// What the job needs, where that may be less than what was measured, and the largest convolution
  /// workspace of its program; in the unit of the pair. 0: not known.
  double need = 0, workspace = 0;
};

/// Errors of a set of pairs; percent of the truth.
struct Score {
  std::int64_t rows = 0;
  double mape = 0;   ///< mean of |predicted - truth| / truth
  double mdape = 0;  ///< median of the same
  double p90 = 0;
  double bias = 0;  ///< median of (predicted - truth) / truth
  /// Coverage, width and score are over the pairs that have a band; absent when none has one.
  std::optional<double> coverage;  ///< share of truths within
  std::optional<double> width;     ///< mean of (high - low) / truth
  std::optional<double>
      interval_score;  ///< width plus 2 / 0.1 times what lies outside (Gneiting, Raftery 2007)
  /// The interval score of the best band that is equally wide for all pairs, as a ratio: chosen
  /// with these truths in sight, so it is what a band has to beat to be worth its differences.
  std::optional<double> constant_width_score;
};

[[nodiscard]] Score score(const std::vector<Pair>& pairs);

/// Linear interpolation between order statistics; `sorted` is not empty, `q` in 0..1.
[[nodiscard]] double quantile(const std::vector<double>& sorted, double q);

/// How far one side of a band reaches from a forecast, in the unit of the pairs: share x forecast +
/// fixed, but never less than `least`. (src/forecast/knowledge.h ships the same in bytes.)
struct Reach {
  double share = 0, fixed = 0, least = 0;

  [[nodiscard]] double at(double predicted) const;
};

/// Both sides.
struct BandForm {
  Reach below, above;

  /// Relative to the forecast; `below` at most 1.
  [[nodiscard]] Band at(double predicted) const;
};

/// Below that a kind of job has no band of its own that is narrower than that of all rows.
inline constexpr std::size_t kRowsToNarrow = 40;

/// How a band may grow with the forecast.
enum class BandGrowth {
  kFitted,        ///< whichever of a few forms has the least interval score, each side for itself
  kProportional,  ///< a share of the forecast
  kConstant       ///< one width for all
};

/// The band that holds 90 % of the truths around their forecasts: quantiles of (truth - predicted)
/// over what the form grows with, widened to the next order statistic so that few rows give no
/// narrow band. The pairs are in MiB. Empty input: no band.
[[nodiscard]] std::optional<BandForm> band_of(const std::vector<Pair>& pairs,
                                              BandGrowth growth = BandGrowth::kFitted);

/// How far needs reach above forecasts; see need_of().
struct NeedForm {
  Reach reach;
  double workspaces = 0;  ///< times the largest workspace

  [[nodiscard]] double at(const Pair& pair) const {
    return reach.at(pair.predicted) + workspaces * pair.workspace;
  }
};

/// The reach that holds 92 of 100 needs of the pairs that have one: two workspaces and a share of
/// what the forecast has above the context. Winograd's staged algorithm, which the assumed
/// workspace is not, keeps both tensors more than twice.
[[nodiscard]] std::optional<NeedForm> need_of(const std::vector<Pair>& pairs);

/// The band of all pairs under "", and one for each kind with enough rows, whose sides are those of
/// its own rows where they are narrower. Where they are wider the kind keeps the side of all: rare
/// large errors make its quantile a matter of a few rows, and cross-fitted it scored worse.
[[nodiscard]] std::map<std::string, BandForm> bands_by_kind(
    const std::vector<Pair>& pairs, BandGrowth growth = BandGrowth::kFitted);

/// A number from a name and a seed that has nothing to do with the name's letters: sampling and
/// splitting.
[[nodiscard]] std::uint64_t hash_of(std::string_view text, std::uint64_t seed);

/// What a model's relatives share: the letters before the first digit or separator ("resnet50d" ->
/// "resnet").
[[nodiscard]] std::string family_of(std::string_view model);

/// The half (0, 1) that a group belongs to in cross-fitting.
[[nodiscard]] int half_of(std::string_view group);

}  // namespace stoker::accuracy
