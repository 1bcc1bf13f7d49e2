#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/durations.h"
#include "base/result.h"

/// Files of boosted trees that were fitted offline (scripts/fit-timing): docs/models/time.md, "The
/// learned residual".
namespace stoker {

inline constexpr std::size_t kMostFeatures = 64;
/// Remainders of shape hashes by which cross-fitted forests are chosen.
inline constexpr int kForestFolds = 5;

/// What trees are asked.
struct ForestInput {
  /// By plain rules, with no fitted number in them. What trees learn is the logarithm of measured
  /// over this.
  Seconds plain;
  /// Hash of the shape alone, not of the GPU, the operator's name or how operands are stored.
  /// Decides which cross-fitted forest did not see it.
  std::uint64_t shape = 0;
  std::array<float, kMostFeatures> features{};
};

/// One node of a regression tree, in the order of a walk that takes left first: the left child is
/// the next node.
struct TreeNode {
  float value = 0;            ///< threshold: left when the feature is below; at a leaf what it adds
  std::uint16_t feature = 0;  ///< kLeaf: a leaf
  std::uint16_t right = 0;    ///< nodes from this one to its right child
  static constexpr std::uint16_t kLeaf = 0xffff;
};

/// Boosted trees of one family, for some chips.
struct Forest {
  std::size_t family = 0;          ///< number of the family in the list that the file was read with
  std::vector<std::string> chips;  ///< as Gpu::chip; "*": GPUs of no other forest
  /// Cross-fitted: trained without the shapes whose hash has this remainder; -1: all shapes.
  int fold = -1;
  double base = 0;
  std::vector<std::uint32_t> roots;  ///< first node of each tree
  std::vector<TreeNode> nodes;

  /// What all trees say: the logarithm of measured over plain time.
  [[nodiscard]] double value_of(const std::array<float, kMostFeatures>& features) const;
};

/// A family that a file may hold trees of, and how many features these see.
struct ForestFamily {
  std::string_view name;
  std::size_t features = 0;
};

/// Refuses a file whose checksum, structure or stored answers are wrong, that names a family not in
/// `families`, or whose features have another `fingerprint`. `where` names it in errors.
[[nodiscard]] Result<std::vector<Forest>> read_forests(std::string_view data,
                                                       const std::string& where,
                                                       std::span<const ForestFamily> families,
                                                       std::uint64_t fingerprint);

/// The forests of a family that speak for a chip: none, one for all shapes, or one a fold in their
/// order; those of the chip itself before those of "*". Valid while `forests` lives.
[[nodiscard]] std::vector<const Forest*> forests_of(const std::vector<Forest>& forests,
                                                    std::size_t family, const std::string& chip);

/// The time by `forests` of one family: the plain time times what trees say that did not see the
/// shape, where there are such; nothing without forests.
[[nodiscard]] std::optional<Seconds> time_by(const std::vector<const Forest*>& forests,
                                             const ForestInput& input);

}  // namespace stoker
