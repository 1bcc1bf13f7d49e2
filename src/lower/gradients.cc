#include "lower/gradients.h"

#include <utility>

#include "lower/buckets.h"

namespace stoker {

Gradients::Gradients(const Lowering& lowering, StorageBuffers& storages)
    : l_(lowering), storages_(storages) {
  for (std::uint32_t i = 0; i < l_.step.parameters.size(); ++i) {
    const std::int64_t gradient = l_.step.parameters[i].gradient;
    if (gradient >= 0) parameters_of_[static_cast<std::uint32_t>(gradient)].push_back(i);
  }
}

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

BufferId Gradients::ensure_temporary(std::uint32_t storage) {
  if (const auto it = temporaries_.find(storage); it != temporaries_.end()) return it->second;
  const BufferId id = l_.emit.buffer(storages_.description(storage, BufferRole::kTemporary));
  temporaries_.emplace(storage, id);
  return id;
}

void Gradients::allocate(std::uint32_t storage, MicroBatch micro) {
  if (!micro.first() || l_.bucket_views()) return l_.emit.allocate(ensure_temporary(storage));
  l_.emit.allocate(storages_.ensure(storage, l_.plan.roles[storage]));
}

void Gradients::written(std::uint32_t storage, std::uint32_t e, MicroBatch micro) {
  if (l_.plan.last_write[storage] != e) return;
  const auto parameters = parameters_of_.find(storage);
  if (parameters == parameters_of_.end()) return;
  if ((!micro.first() || l_.bucket_views()) && !storages_.empty(storage)) {
    l_.emit.launch(
        kernel_over(KernelClass::kElementwise, storages_.bytes(storage), micro.first() ? 1 : 2, 1));
    l_.emit.free(ensure_temporary(storage));
  }
  if (l_.buckets() && micro.last()) tell_buckets(parameters->second);
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

void Gradients::zero(InstructionKind kind) {
  if (l_.bucket_views()) return;
  for (const auto& [storage, parameters] : parameters_of_) {
    if (storages_.empty(storage)) continue;
    const BufferId id = storages_.ensure(storage, BufferRole::kGradient);
    l_.emit.instructions().push_back({kind, When::kAlways, static_cast<std::uint32_t>(id)});
  }
}

}  // namespace stoker
