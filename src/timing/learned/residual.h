#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "device/gpu.h"
#include "timing/common/learned_times.h"
#include "timing/learned/forest.h"
#include "timing/learned/residual_features.h"

namespace stoker {

/// Answers that were given before, by what was asked; for all forecasts of one process, so locked.
/// Trees cost ten microseconds a kernel, and searches ask for the same kernels again and again.
class ResidualMemo {
 public:
  using Key = std::array<std::int64_t, 24>;  ///< all of a kernel that features can depend on
  [[nodiscard]] static Key key_of(const Kernel& kernel);

  /// What trees say of a kernel: nothing where none speaks for it.
  using Answer = std::optional<Seconds>;
  /// Nothing for what was not asked yet.
  [[nodiscard]] std::optional<Answer> find(const Key& key) const;
  void keep(const Key& key, Answer answer);

 private:
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  mutable std::mutex mutex_;
  std::unordered_map<Key, Answer, Hash> answers_;
};

/// The forests that speak for one GPU, by family: none, one for all shapes, or one a fold.
class GpuForests final : public LearnedKernels {
 public:
  explicit GpuForests(const Gpu& gpu) : features_(gpu) {}

  /// Beyond the floor; nothing where no forest speaks for the kernel.
  [[nodiscard]] std::optional<Seconds> time_of(const Kernel& kernel) const override;

 private:
  friend class Residual;
  [[nodiscard]] std::optional<Seconds> evaluated(const Kernel& kernel) const;

  ResidualFeatures features_;
  std::array<std::vector<const Forest*>, kResidualFamilies> families_;
  std::shared_ptr<ResidualMemo> memo_;
};

/// Learned times of kernels: trees that were fitted offline (scripts/fit-timing) and are evaluated
/// here (forest.h).
class Residual final : public LearnedTimes {
 public:
  /// Refuses a file whose checksum, structure or stored answers are wrong, or whose features are
  /// not those of this build. `where` names it in errors.
  [[nodiscard]] static Result<std::shared_ptr<const Residual>> parse(std::string_view data,
                                                                     const std::string& where);
  [[nodiscard]] static Result<std::shared_ptr<const Residual>> load(
      const std::filesystem::path& path);

  /// Valid while the residual lives.
  [[nodiscard]] GpuForests for_gpu(const Gpu& gpu) const;
  [[nodiscard]] std::shared_ptr<const LearnedKernels> of_gpu(const Gpu& gpu) const override;
  [[nodiscard]] const std::vector<Forest>& forests() const { return forests_; }

 private:
  [[nodiscard]] std::shared_ptr<ResidualMemo> memo_of(const Gpu& gpu) const;

  std::vector<Forest> forests_;
  mutable std::mutex mutex_;
  /// Remembered results by all figures of a GPU that features depend on.
  mutable std::map<std::string, std::shared_ptr<ResidualMemo>> memos_;
};

}  // namespace stoker
