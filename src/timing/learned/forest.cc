#include "timing/learned/forest.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "base/text.h"
#include "json/text.h"

namespace stoker {
namespace {

using Json = json::Value;

static_assert(std::endian::native == std::endian::little, "the file is little-endian");

constexpr std::string_view kFormat = "stoker-residual ";
constexpr std::size_t kNodeBytes = 8;
constexpr std::size_t kMostTrees = 5000;
/// Trees are told in single precision by the library that made them; sums of some hundred differ in
/// the last digits.
constexpr double kCheckTolerance = 1e-4;
/// No kernel is more than this many times slower or faster than the plain rules say.
constexpr double kLargestLog = 4;

tl::unexpected<Error> damaged(const std::string& what, const std::string& where) {
  return fail(ErrorCode::kBadInput, what + "; install stoker anew", where);
}

std::string hexadecimal(std::uint64_t value) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(value));
  return text.data();
}

/// FNV-1a over words of eight bytes, the last filled up with zeros: an eighth of the
/// multiplications that bytes take, each of which waits for the one before.
std::uint64_t checksum_of_words(std::string_view data) {
  constexpr std::uint64_t kOffset = 14695981039346656037ULL;
  constexpr std::uint64_t kPrime = 1099511628211ULL;
  std::uint64_t hash = kOffset;
  for (; !data.empty(); data.remove_prefix(std::min(data.size(), sizeof(std::uint64_t)))) {
    std::uint64_t word = 0;
    std::memcpy(&word, data.data(), std::min(data.size(), sizeof word));
    hash = (hash ^ word) * kPrime;
  }
  return hash;
}

/// "stoker-residual VERSION CHECKSUM LENGTH\n", a header of LENGTH bytes of JSON, then the trees.
/// The checksum of version 1 goes over bytes, that of version 2 over words.
struct Parts {
  std::string_view header, trees;
};
Result<Parts> split_file(std::string_view data, const std::string& where) {
  const std::size_t end = data.substr(0, 80).find('\n');
  if (!data.starts_with(kFormat) || end == std::string_view::npos)
    return damaged("not a file of learned times", where);
  const auto words = split(data.substr(kFormat.size(), end - kFormat.size()), ' ');
  if (words.size() != 3 || (words[0] != "1" && words[0] != "2"))
    return damaged("not a file of learned times", where);
  std::size_t length = 0;
  std::from_chars(words[2].data(), words[2].data() + words[2].size(), length);
  const std::string_view rest = data.substr(end + 1);
  if (length == 0 || length > rest.size()) return damaged("cut short", where);
  if (words[1] != hexadecimal(words[0] == "1" ? fnv1a(rest) : checksum_of_words(rest)))
    return damaged("its checksum is wrong: damaged or edited", where);
  return Parts{rest.substr(0, length), rest.substr(length)};
}

double number(const Json& node, const char* key, double otherwise) {
  const Json* found = node.find(key);
  return found != nullptr && found->is_number() ? found->as_double() : otherwise;
}

/// Every walk ends at a leaf inside its tree.
bool is_sound(const std::vector<TreeNode>& nodes, std::size_t first, std::size_t end,
              std::size_t features) {
  for (std::size_t i = first; i < end; ++i) {
    const TreeNode& node = nodes[i];
    if (!std::isfinite(node.value)) return false;
    if (node.feature == TreeNode::kLeaf) continue;
    if (node.feature >= features || node.right < 2 || i + node.right >= end) return false;
  }
  return end > first && nodes[end - 1].feature == TreeNode::kLeaf;
}

/// Takes one forest's trees off the front of `trees`: the number of nodes of each, then the nodes.
bool read_trees(std::size_t count, std::size_t features, std::string_view& trees, Forest& forest) {
  if (count == 0 || count > kMostTrees || trees.size() < 4 * count) return false;
  std::vector<std::uint32_t> sizes(count);
  std::memcpy(sizes.data(), trees.data(), 4 * count);
  trees.remove_prefix(4 * count);
  std::uint64_t all = 0;
  for (const std::uint32_t size : sizes) all += size;
  if (all == 0 || all * kNodeBytes > trees.size()) return false;
  forest.nodes.resize(all);
  static_assert(sizeof(TreeNode) == kNodeBytes);
  std::memcpy(forest.nodes.data(), trees.data(), all * kNodeBytes);
  trees.remove_prefix(all * kNodeBytes);
  std::size_t first = 0;
  for (const std::uint32_t size : sizes) {
    if (!is_sound(forest.nodes, first, first + size, features)) return false;
    forest.roots.push_back(static_cast<std::uint32_t>(first));
    first += size;
  }
  return true;
}

/// Stored inputs must give the stored outputs of the library that made the trees.
bool passes_check(const Json& checks, std::size_t count, const Forest& forest) {
  if (!checks.is_array() || checks.empty()) return false;
  for (const Json& check : checks) {
    const Json* inputs = check.find("features");
    if (inputs == nullptr || !inputs->is_array() || inputs->size() != count) return false;
    std::array<float, kMostFeatures> features{};
    for (std::size_t i = 0; i < inputs->size(); ++i)
      features[i] = (*inputs)[i].is_number() ? (*inputs)[i].as_double() : HUGE_VALF;
    if (!(std::abs(forest.value_of(features) - number(check, "value", HUGE_VAL)) <=
          kCheckTolerance))
      return false;
  }
  return true;
}

Result<Forest> forest_from(const Json& entry, std::span<const ForestFamily> families,
                           std::string_view& trees, const std::string& where) {
  Forest forest;
  const Json* name = entry.is_object() ? entry.find("family") : nullptr;
  const auto family = std::ranges::find_if(families, [&](const ForestFamily& known) {
    return name != nullptr && name->is_string() && name->as_string() == known.name;
  });
  if (family == families.end()) return damaged("names a family that is not known", where);
  forest.family = static_cast<std::size_t>(family - families.begin());
  for (const Json& chip : entry["chips"]) {
    if (chip.is_string()) forest.chips.push_back(chip.as_string());
  }
  forest.fold = static_cast<int>(number(entry, "fold", -1));
  forest.base = number(entry, "base", 0);
  const std::string here = where + ": " + std::string(family->name);
  if (forest.chips.empty() || forest.fold < -1 || forest.fold >= kForestFolds)
    return damaged("needs \"chips\" and a \"fold\" below 5", here);
  const double count = number(entry, "trees", 0);
  if (!(count >= 1 && count <= kMostTrees) ||
      !read_trees(static_cast<std::size_t>(count), family->features, trees, forest))
    return damaged("its trees are damaged", here);
  if (!passes_check(entry["check"], family->features, forest))
    return damaged("its trees do not give the values that are stored with them", here);
  return forest;
}

}  // namespace

double Forest::value_of(const std::array<float, kMostFeatures>& features) const {
  double sum = base;
  for (const std::uint32_t root : roots) {
    const TreeNode* node = &nodes[root];
    while (node->feature != TreeNode::kLeaf)
      node += features[node->feature] < node->value ? 1 : node->right;
    sum += static_cast<double>(node->value);
  }
  return sum;
}

Result<std::vector<Forest>> read_forests(std::string_view data, const std::string& where,
                                         std::span<const ForestFamily> families,
                                         std::uint64_t fingerprint) {
  Parts parts = TRY(split_file(data, where));
  const Json header = json::parse(parts.header).value_or(Json());
  if (!header.is_object()) return damaged("its header is not JSON", where);
  if (header["fingerprint"] != hexadecimal(fingerprint))
    return damaged("made for other features than this build has", where);
  const Json& entries = header["forests"];
  if (!entries.is_array()) return damaged("lists no forests", where);
  std::vector<Forest> forests;
  for (const Json& entry : entries)
    forests.push_back(TRY(forest_from(entry, families, parts.trees, where)));
  if (!parts.trees.empty()) return damaged("has bytes beyond its trees", where);
  return forests;
}

std::vector<const Forest*> forests_of(const std::vector<Forest>& forests, std::size_t family,
                                      const std::string& chip) {
  std::vector<const Forest*> chosen;
  for (const std::string& wanted : {simplified(chip), std::string("*")}) {
    if (!chosen.empty() || wanted.empty()) continue;
    for (const Forest& forest : forests) {
      const bool speaks = std::ranges::any_of(forest.chips, [&](const std::string& name) {
        return wanted == (name == "*" ? name : simplified(name));
      });
      if (forest.family == family && speaks) chosen.push_back(&forest);
    }
  }
  std::ranges::sort(chosen, {}, &Forest::fold);
  return chosen;
}

std::optional<Seconds> time_by(const std::vector<const Forest*>& forests,
                               const ForestInput& input) {
  if (forests.empty()) return std::nullopt;
  const std::size_t which = forests.size() == 1 ? 0 : input.shape % forests.size();
  const double log =
      std::clamp(forests[which]->value_of(input.features), -kLargestLog, kLargestLog);
  return input.plain * std::exp(log);
}

}  // namespace stoker
