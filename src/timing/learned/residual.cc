#include "timing/learned/residual.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "base/files.h"
#include "base/text.h"
#include "json/text.h"
#include "timing/learned/layer_features.h"

namespace stoker {
namespace {

using Json = json::Value;

static_assert(std::endian::native == std::endian::little, "the file is little-endian");

constexpr Bytes kLargestFile = 8 * kMiB;
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

std::optional<ResidualFamily> family_named(const Json& name) {
  for (std::size_t i = 0; i < kResidualFamilies; ++i) {
    const auto family = static_cast<ResidualFamily>(i);
    if (name.is_string() && name.as_string() == name_of(family)) return family;
  }
  return std::nullopt;
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
bool read_trees(std::size_t count, std::string_view& trees, Forest& forest) {
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
    if (!is_sound(forest.nodes, first, first + size, feature_names(forest.family).size()))
      return false;
    forest.roots.push_back(static_cast<std::uint32_t>(first));
    first += size;
  }
  return true;
}

/// Stored inputs must give the stored outputs of the library that made the trees.
bool passes_check(const Json& checks, const Forest& forest) {
  if (!checks.is_array() || checks.empty()) return false;
  for (const Json& check : checks) {
    const Json* inputs = check.find("features");
    if (inputs == nullptr || !inputs->is_array() ||
        inputs->size() != feature_names(forest.family).size())
      return false;
    std::array<float, kMostFeatures> features{};
    for (std::size_t i = 0; i < inputs->size(); ++i)
      features[i] = (*inputs)[i].is_number() ? (*inputs)[i].as_double() : HUGE_VALF;
    if (!(std::abs(forest.value_of(features) - number(check, "value", HUGE_VAL)) <=
          kCheckTolerance))
      return false;
  }
  return true;
}

Result<Forest> forest_from(const Json& entry, std::string_view& trees, const std::string& where) {
  Forest forest;
  const auto family = entry.is_object() ? family_named(entry["family"]) : std::nullopt;
  if (!family) return damaged("names a family that is not known", where);
  forest.family = *family;
  for (const Json& chip : entry["chips"]) {
    if (chip.is_string()) forest.chips.push_back(chip.as_string());
  }
  forest.fold = static_cast<int>(number(entry, "fold", -1));
  forest.base = number(entry, "base", 0);
  const std::string here = where + ": " + std::string(name_of(*family));
  if (forest.chips.empty() || forest.fold < -1 || forest.fold >= Residual::kFolds)
    return damaged("needs \"chips\" and a \"fold\" below 5", here);
  const double count = number(entry, "trees", 0);
  if (!(count >= 1 && count <= kMostTrees) ||
      !read_trees(static_cast<std::size_t>(count), trees, forest))
    return damaged("its trees are damaged", here);
  if (!passes_check(entry["check"], forest))
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

double GpuForests::evaluated(const Kernel& kernel) const {
  const auto input = features_.of(kernel);
  return input ? seconds_of(*input) : -1;
}

double GpuForests::seconds_of(const ResidualInput& input) const {
  const auto& forests = families_[static_cast<std::size_t>(input.family)];
  if (forests.empty()) return -1;
  const std::size_t which = forests.size() == 1 ? 0 : input.shape % forests.size();
  const double log =
      std::clamp(forests[which]->value_of(input.features), -kLargestLog, kLargestLog);
  return input.plain * std::exp(log);
}

double GpuForests::seconds_of(const Kernel& kernel) const {
  if (kernel.unit != MathUnit::kFp32 || kernel.dtype != DType::kF32) return -1;
  const auto key = ResidualMemo::key_of(kernel);
  double seconds = memo_->find(key);
  if (std::isnan(seconds)) {
    seconds = evaluated(kernel);
    memo_->keep(key, seconds);
  }
  return seconds;
}

ResidualMemo::Key ResidualMemo::key_of(const Kernel& kernel) {
  Key key{};
  std::size_t count = 0;
  const auto add = [&](auto value) { key[count++] = static_cast<std::int64_t>(value); };
  add(kernel.kernel_class), add(kernel.phase), add(kernel.read.count());
  add(kernel.written.count()), add(kernel.elements), add(kernel.shape.index());
  add(std::bit_cast<std::int64_t>(kernel.flops.count()));
  if (const auto* gemm = std::get_if<GemmShape>(&kernel.shape)) {
    for (const std::int64_t size : {gemm->batch, gemm->m, gemm->n, gemm->k}) add(size);
    add(2 * gemm->transpose_a + gemm->transpose_b);
  } else if (const auto* c = std::get_if<ConvolutionShape>(&kernel.shape)) {
    for (const std::int64_t size : {c->batch, c->in_channels, c->out_channels, c->groups})
      add(size);
    // Two of three dimensions: what has three is none that trees know.
    for (const auto* sizes : {&c->in, &c->out, &c->kernel, &c->stride, &c->dilation})
      add((*sizes)[0]), add((*sizes)[1]);
    add(static_cast<int>(c->pass) + 4 * c->transposed + 8 * c->channels_last + 16 * c->spatial);
  } else if (const auto* rows = std::get_if<RowShape>(&kernel.shape)) {
    add(rows->rows), add(rows->width);
  }
  return key;
}

std::size_t ResidualMemo::Hash::operator()(const Key& key) const {
  std::uint64_t hash = 0;
  for (const std::int64_t value : key)
    hash = (hash ^ static_cast<std::uint64_t>(value)) * 0x9e3779b97f4a7c15 + (hash >> 29);
  return hash;
}

double ResidualMemo::find(const Key& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = answers_.find(key);
  return found == answers_.end() ? NAN : found->second;
}

void ResidualMemo::keep(const Key& key, double seconds) {
  constexpr std::size_t kMostAnswers = 1 << 16;  // some 15 MB
  const std::lock_guard lock(mutex_);
  if (answers_.size() >= kMostAnswers) answers_.clear();
  answers_.emplace(key, seconds);
}

std::shared_ptr<ResidualMemo> Residual::memo_of(const Gpu& gpu) const {
  std::string figures = gpu.chip;
  for (const double figure :
       {static_cast<double>(gpu.architecture), static_cast<double>(gpu.compute_capability),
        static_cast<double>(gpu.sm_count), static_cast<double>(gpu.fp32_cores_per_sm),
        gpu.peak.fp32, gpu.bandwidth, static_cast<double>(gpu.l2.count()), gpu.tdp_watts})
    figures += ' ' + std::to_string(figure);
  const std::lock_guard lock(mutex_);
  auto& memo = memos_[figures];
  if (memo == nullptr) memo = std::make_shared<ResidualMemo>();
  return memo;
}

Result<std::shared_ptr<const Residual>> Residual::parse(std::string_view data,
                                                        const std::string& where) {
  auto parts = split_file(data, where);
  if (!parts) return tl::unexpected(parts.error());
  const Json header = json::parse(parts->header).value_or(Json());
  if (!header.is_object()) return damaged("its header is not JSON", where);
  const Json& fingerprint = header["fingerprint"];
  if (fingerprint != hexadecimal(feature_fingerprint()) &&
      fingerprint != hexadecimal(layer_fingerprint()))
    return damaged("made for other features than this build has", where);
  const Json& forests = header["forests"];
  if (!forests.is_array()) return damaged("lists no forests", where);
  const auto residual = std::make_shared<Residual>();
  for (const Json& entry : forests) {
    auto forest = TRY(forest_from(entry, parts->trees, where));
    residual->forests_.push_back(std::move(forest));
  }
  if (!parts->trees.empty()) return damaged("has bytes beyond its trees", where);
  return std::shared_ptr<const Residual>(residual);
}

Result<std::shared_ptr<const Residual>> Residual::load(const std::filesystem::path& path) {
  const auto data = TRY(read_file(path, kLargestFile));
  return parse(data, path.string());
}

std::shared_ptr<const LearnedKernels> Residual::of_gpu(const Gpu& gpu) const {
  return std::make_shared<const GpuForests>(for_gpu(gpu));
}

GpuForests Residual::for_gpu(const Gpu& gpu) const {
  GpuForests result(gpu);
  result.memo_ = memo_of(gpu);
  for (const std::string& wanted : {simplified(gpu.chip), std::string("*")}) {
    for (std::size_t family = 0; family < kResidualFamilies; ++family) {
      auto& chosen = result.families_[family];
      if (!chosen.empty() || wanted.empty()) continue;
      for (const Forest& forest : forests_) {
        const bool speaks = std::any_of(
            forest.chips.begin(), forest.chips.end(),
            [&](const auto& chip) { return wanted == (chip == "*" ? chip : simplified(chip)); });
        if (forest.family == static_cast<ResidualFamily>(family) && speaks)
          chosen.push_back(&forest);
      }
      std::sort(chosen.begin(), chosen.end(),
                [](const Forest* a, const Forest* b) { return a->fold < b->fold; });
    }
  }
  return result;
}

}  // namespace stoker
