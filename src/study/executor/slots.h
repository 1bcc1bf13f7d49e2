#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "study/definition/trials.h"

namespace stoker::study {

/// What this machine has for trials.
struct Capacity {
  std::vector<int> cores;         ///< processors by number
  std::vector<std::string> gpus;  ///< as CUDA_VISIBLE_DEVICES names them: index, UUID, MIG instance
  std::int64_t memory_bytes = 0;  ///< 0: not known
  /// Trials at a time where they do not say how many cores they need; these are parted evenly.
  /// 0: one, or as many as the GPUs allow for trials with GPUs.
  int at_most = 0;
  int share_gpu = 1;  ///< trials on one GPU at a time
};

/// What one trial got.
struct Slot {
  std::vector<int> cores;
  std::vector<std::string> gpus;
  std::int64_t memory_bytes = 0;
};

/// Hands out cores, GPUs and memory, each to one trial at a time.
class Slots {
 public:
  explicit Slots(Capacity capacity);

  [[nodiscard]] std::optional<std::string> impossible(const Needs& needs) const;
  /// How many such trials run beside each other, at least one.
  [[nodiscard]] int at_a_time(const Needs& needs) const;
  [[nodiscard]] bool has_room(const Needs& needs) const;
  [[nodiscard]] std::optional<Slot> take(const Needs& needs);
  void give_back(const Slot& slot);
  /// Counts the slot of a trial that has its cores and GPUs already.
  void take_again(const Slot& slot);
  [[nodiscard]] int in_use() const { return in_use_; }
  [[nodiscard]] const Capacity& capacity() const { return capacity_; }

 private:
  [[nodiscard]] int cores_for(const Needs& needs) const;
  [[nodiscard]] int most_at_a_time(const Needs& needs) const;

  Capacity capacity_;
  std::vector<int> free_cores_;
  std::vector<std::string> free_gpus_;
  std::int64_t memory_used_ = 0;
  int in_use_ = 0;
};

/// This machine's processors that this process may use, the GPUs that it sees (all that
/// CUDA_VISIBLE_DEVICES names, else those that nvidia-smi lists, MIG instances in place of the GPU
/// that is parted into them), and the memory that it may have.
[[nodiscard]] Capacity this_capacity();

/// GPUs of `nvidia-smi -L`.
[[nodiscard]] std::vector<std::string> gpus_listed(std::string_view output);

}  // namespace stoker::study
