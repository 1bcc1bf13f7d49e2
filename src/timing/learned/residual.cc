#include "timing/learned/residual.h"

#include <array>
#include <bit>
#include <cmath>

#include "base/files.h"

namespace stoker {
namespace {

constexpr Bytes kLargestFile = 8 * kMiB;

std::array<ForestFamily, kResidualFamilies> families() {
  std::array<ForestFamily, kResidualFamilies> all;
  for (std::size_t i = 0; i < kResidualFamilies; ++i) {
    const auto family = static_cast<ResidualFamily>(i);
    all[i] = {name_of(family), feature_names(family).size()};
  }
  return all;
}

}  // namespace

std::optional<Seconds> GpuForests::evaluated(const Kernel& kernel) const {
  const auto input = features_.of(kernel);
  if (!input) return std::nullopt;
  return time_by(families_[static_cast<std::size_t>(input->family)], *input);
}

std::optional<Seconds> GpuForests::time_of(const Kernel& kernel) const {
  if (kernel.unit != MathUnit::kFp32 || kernel.dtype != DType::kF32) return std::nullopt;
  const auto key = ResidualMemo::key_of(kernel);
  if (const auto known = memo_->find(key)) return *known;
  const auto answer = evaluated(kernel);
  memo_->keep(key, answer);
  return answer;
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

std::optional<ResidualMemo::Answer> ResidualMemo::find(const Key& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = answers_.find(key);
  if (found == answers_.end()) return std::nullopt;
  return found->second;
}

void ResidualMemo::keep(const Key& key, Answer answer) {
  constexpr std::size_t kMostAnswers = 1 << 16;  // some 15 MB
  const std::lock_guard lock(mutex_);
  if (answers_.size() >= kMostAnswers) answers_.clear();
  answers_.emplace(key, answer);
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
  const auto residual = std::make_shared<Residual>();
  residual->forests_ = TRY(read_forests(data, where, families(), feature_fingerprint()));
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
  for (std::size_t family = 0; family < kResidualFamilies; ++family)
    result.families_[family] = forests_of(forests_, family, gpu.chip);
  return result;
}

}  // namespace stoker
