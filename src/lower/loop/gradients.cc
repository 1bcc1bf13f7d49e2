#include "lower/loop/gradients.h"

#include <utility>

#include "lower/loop/buckets.h"

namespace stoker {

void Gradients::keep_buckets() {
  if (!l_.buckets()) return;
  BucketPlan plan = plan_buckets(l_.step, l_.sizes, l_.plan.last_write);
  l_.emit.program().buckets = std::move(plan.buckets);
  bucket_of_ = std::move(plan.bucket_of);
  for (const GradientBucket& bucket : l_.emit.program().buckets) {
    missing_.push_back(bucket.parameters);
    l_.emit.keep({bucket.bytes, BufferRole::kBucket, Stream::kCompute, false, ModuleId{}});
  }
}

void Gradients::share_buckets(const Gradients& training) {
  bucket_of_ = training.bucket_of_;
  for (const GradientBucket& bucket : l_.emit.program().buckets)
    missing_.push_back(bucket.parameters);
}

BufferId Gradients::ensure_temporary(std::uint32_t storage) {
  if (const auto it = temporaries_.find(storage); it != temporaries_.end()) return it->second;
  const BufferId id = l_.emit.buffer(storages_.description(storage, BufferRole::kTemporary));
  temporaries_.emplace(storage, id);
  return id;
}

Gradients::Birth Gradients::birth(MicroBatch micro) const {
  if (!micro.first() || l_.bucket_views()) return {true, When::kAlways};
  if (!l_.job.zero_grad_fills) return {false, When::kAlways};
  return {true, l_.extra ? When::kAlways : When::kLater};
}

void Gradients::allocate(std::uint32_t storage, MicroBatch micro) {
  const Birth now = birth(micro);
  if (now.temporary) l_.emit.allocate(ensure_temporary(storage), now.when);
  if (now.temporary && now.when == When::kAlways) return;
  l_.emit.allocate(storages_.ensure(storage, l_.plan.roles[storage]),
                   now.temporary ? When::kFirst : When::kAlways);
}

void Gradients::written(std::uint32_t storage, std::uint32_t e, MicroBatch micro, Stream stream) {
  if (l_.plan.last_write[storage] != e) return;
  const std::uint32_t gradient = l_.plan.gradient_of[storage];
  if (gradient == StepPlan::kNone) return;
  if (const Birth now = birth(micro); now.temporary && !storages_.empty(storage)) {
    const bool added = !micro.first() || l_.job.zero_grad_fills;  // else copied into its bucket
    Kernel kernel =
        kernel_over(KernelClass::kElementwise, storages_.bytes(storage), added ? 2 : 1, 1);
    kernel.stream = stream;
    l_.emit.launch(kernel, now.when);
    l_.emit.free(ensure_temporary(storage), now.when);
  }
  if (l_.buckets() && micro.last()) tell_buckets(l_.plan.gradients[gradient].parameters);
}

void Gradients::tell_buckets(const std::vector<std::uint32_t>& parameters) {
  for (const std::uint32_t parameter : parameters) {
    const std::uint32_t bucket = bucket_of_[parameter];
    if (--missing_[bucket] > 0) continue;
    const GradientBucket& full = l_.emit.program().buckets[bucket];
    if (!l_.bucket_views())
      l_.emit.launch(kernel_over(KernelClass::kCopy, full.bytes, 1, full.parameters));
    l_.emit.bucket_ready(bucket);
  }
}

void Gradients::copy_buckets_back() {
  if (!l_.buckets() || l_.bucket_views()) return;
  for (const GradientBucket& bucket : l_.emit.program().buckets) {
    l_.emit.launch(kernel_over(KernelClass::kCopy, bucket.bytes, 1, bucket.parameters));
  }
}

void Gradients::zero_before_use() {
  // In the first iteration there is no gradient yet.
  if (l_.job.zero_grad_fills) return fill(l_.extra ? When::kAlways : When::kLater);
  release(InstructionKind::kFreePrevious);
}

void Gradients::zero_after_step() {
  if (l_.job.zero_grad_fills) return fill(When::kAlways);
  release(InstructionKind::kFree);
}

/// One `zero_()` a tensor: PyTorch takes a foreach kernel only for optimizers made with fused=True
/// or foreach=True, not for those that choose foreach themselves (torch/optim/optimizer.py,
/// zero_grad).
void Gradients::fill(When when) {
  constexpr std::uint32_t kTensorsOfOneLaunch = 110;  // MultiTensorApply.cuh, one list
  Bytes bytes;
  std::uint32_t tensors = 0;
  for (const auto& [storage, parameters] : l_.plan.gradients) {
    bytes += storages_.bytes(storage);
    tensors += static_cast<std::uint32_t>(parameters.size());
  }
  if (bytes.count() == 0) return;
  const bool foreach = l_.job.optimizer.loop == OptimizerLoop::kFused;
  const std::uint32_t launches =
      foreach ? (tensors + kTensorsOfOneLaunch - 1) / kTensorsOfOneLaunch : tensors;
  l_.emit.launch(kernel_over(KernelClass::kFill, bytes, 0, launches), when);
}

void Gradients::release(InstructionKind kind) {
  if (l_.bucket_views()) return;
  for (const auto& [storage, parameters] : l_.plan.gradients) {
    if (storages_.empty(storage)) continue;
    const BufferId id = storages_.ensure(storage, BufferRole::kGradient);
    l_.emit.instructions().push_back({kind, When::kAlways, static_cast<std::uint32_t>(id)});
  }
}

}  // namespace stoker
