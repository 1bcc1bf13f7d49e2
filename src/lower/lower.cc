#include "lower/lower.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "lower/attention.h"
#include "lower/buckets.h"
#include "lower/capture_notes.h"
#include "lower/emitter.h"
#include "lower/optimizer.h"
#include "lower/outside.h"
#include "lower/step_plan.h"
#include "lower/units.h"
#include "lower/workspace.h"
#include "step/sizes.h"
#include "step/work.h"

namespace stoker {
namespace {

constexpr std::uint32_t kNoBuffer = 0xffffffff;

StepPhase step_phase(Phase phase) {
  switch (phase) {
    case Phase::kLoad:
      return StepPhase::kLoad;
    case Phase::kForward:
      return StepPhase::kForward;
    case Phase::kLoss:
      return StepPhase::kLoss;
    case Phase::kBackward:
    case Phase::kEnd:
      return StepPhase::kBackward;
  }
  return StepPhase::kForward;
}

/// What makes two convolutions of one program the same to cuDNN.
std::vector<std::int64_t> key_of(const ConvolutionShape& c) {
  std::vector<std::int64_t> key{static_cast<std::int64_t>(c.pass), c.in_channels, c.out_channels,
                                c.groups};
  for (const auto* sizes : {&c.in, &c.out, &c.kernel, &c.stride, &c.dilation}) {
    key.insert(key.end(), sizes->begin(), sizes->end());
  }
  return key;
}

/// Walks the events of a step and emits the Program. One object a lowering; `run` once.
class Lowering {
 public:
  Lowering(const Step& step, const Sizes& sizes, const Job& job, const Machine& machine)
      : step_(step),
        sizes_(sizes),
        job_(job),
        machine_(machine),
        plan_(plan_step(step)),
        emit_(program_) {
    bytes_.reserve(step.storages.size());
    for (std::size_t s = 0; s < step.storages.size(); ++s) {
      bytes_.push_back(sizes.storage(StorageId(static_cast<std::uint32_t>(s))));
    }
    buffers_.assign(step.storages.size(), kNoBuffer);
    for (std::uint32_t i = 0; i < step.parameters.size(); ++i) {
      const std::int64_t gradient = step.parameters[i].gradient;
      if (gradient >= 0) gradient_of_[static_cast<std::uint32_t>(gradient)].push_back(i);
    }
  }

  Program run() {
    program_.batch = job_.batch;
    program_.micro_batches = job_.accumulate;
    program_.outside = outside_memory(job_, machine_);
    size_rnn_reserves();
    set_up();
    for (micro_ = 0; micro_ < job_.accumulate; ++micro_) micro_batch();
    if (distributed() && !bucket_views()) copy_buckets_back();
    if (training()) emit_optimizer_step(emit_, job_.optimizer, trained_parameters());
    if (!job_.zero_grad_before_forward) free_gradients(InstructionKind::kFree);
    insert_frees_of_previous();
    note_capture(step_, program_.diagnostics);
    note_units(job_, machine_.gpu, program_.diagnostics);
    return std::move(program_);
  }

 private:
  bool training() const { return step_.mode == "train"; }
  bool distributed() const {
    return training() && job_.gpus > 1 && job_.parallel == Parallel::kDdp;
  }
  bool last_micro() const { return micro_ + 1 == job_.accumulate; }

  Buffer buffer_for(std::uint32_t storage, BufferRole role) const {
    return {bytes_[storage], role, Stream::kCompute, false, plan_.modules[storage]};
  }

  /// The RNN's reserve is written with 0 bytes, since only cuDNN knows its size.
  void size_rnn_reserves() {
    std::vector<Work> work;
    for (const Operator& op : step_.operators) {
      const std::string_view name = step_.operator_name(op);
      if (class_of(name) != KernelClass::kRnn || name.find("backward") != std::string_view::npos)
        continue;
      work.clear();
      append_work(step_, op, sizes_, work);
      if (op.outputs.empty() || work.empty()) continue;
      const auto reserve = index(op.outputs.back().storage);
      const auto* shape = std::get_if<RnnShape>(&work.front().shape);
      if (shape != nullptr && bytes_[reserve].count() == 0) {
        bytes_[reserve] = rnn_reserve(*shape, work.front().dtype);
        program_.diagnostics.add("rnn_reserve_estimated", Severity::kNote,
                                 "cuDNN's reserve of recurrent layers is an estimate");
      }
    }
  }

  void set_up() {
    for (std::size_t s = 0; s < step_.storages.size(); ++s) {
      const StorageKind kind = step_.storages[s].kind;
      if (kind != StorageKind::kParameter && kind != StorageKind::kBuffer) continue;
      if (bytes_[s].count() > 0)
        buffers_[s] = static_cast<std::uint32_t>(
            emit_.keep(buffer_for(static_cast<std::uint32_t>(s), plan_.roles[s])));
    }
    for (const NamedTensor& input : step_.inputs) {
      const auto s = static_cast<std::uint32_t>(index(input.storage));
      program_.input_bytes += bytes_[s];
      for (int copy = 0; copy < job_.loader_buffers; ++copy) {
        Buffer b = buffer_for(s, BufferRole::kInput);
        b.stream = Stream::kCopy;
        if (b.bytes.count() > 0) emit_.keep(b);
      }
    }
    if (distributed()) set_up_buckets();
  }

  void set_up_buckets() {
    BucketPlan plan = plan_buckets(step_, sizes_, plan_.last_write);
    program_.buckets = std::move(plan.buckets);
    bucket_of_ = std::move(plan.bucket_of);
    for (const GradientBucket& bucket : program_.buckets) {
      missing_.push_back(bucket.parameters);
      emit_.keep({bucket.bytes, BufferRole::kBucket, Stream::kCompute, false, ModuleId{}});
    }
  }

  void micro_batch() {
    emit_.enter(StepPhase::kLoad);
    load_inputs();
    if (micro_ == 0 && job_.zero_grad_before_forward)
      free_gradients(InstructionKind::kFreePrevious);
    old_outputs_ = std::exchange(outputs_, {});
    outputs_replaced_ = false;
    for (std::size_t e = 0; e < step_.events.size(); ++e) event(static_cast<std::uint32_t>(e));
    replace_outputs();
  }

  /// `output = model(x)`: what the step before returned lives until the name is taken anew.
  void replace_outputs() {
    if (std::exchange(outputs_replaced_, true)) return;
    if (micro_ == 0) outputs_replaced_at_ = program_.iteration.size();
    for (const std::uint32_t id : old_outputs_) emit_.free(BufferId(id));
    old_outputs_.clear();
  }

  /// `x = x.to(device)`: the new batch is there before the name lets the old one go.
  void load_inputs() {
    for (const NamedTensor& input : step_.inputs) {
      const auto s = static_cast<std::uint32_t>(index(input.storage));
      if (bytes_[s].count() == 0) continue;
      const std::uint32_t before = buffers_[s];
      const BufferId id = emit_.buffer(buffer_for(s, BufferRole::kInput));
      emit_.allocate(id);
      buffers_[s] = static_cast<std::uint32_t>(id);
      Kernel copy;
      copy.kernel_class = KernelClass::kHostToDevice;
      copy.dtype = step_.types[index(input.type)].dtype;
      copy.stream = job_.overlapped_copy ? Stream::kCopy : Stream::kCompute;
      copy.read = copy.written = bytes_[s];
      copy.elements = sizes_.elements(input.type);
      emit_.launch(copy);
      if (micro_ > 0) emit_.free(BufferId(before));
      if (last_micro()) last_inputs_.push_back(buffers_[s]);
    }
    if (micro_ == 0) inputs_replaced_at_ = program_.iteration.size();
  }

  /// Inputs and outputs of an iteration's last micro-batch die in the next iteration, at the places
  /// noted.
  void insert_frees_of_previous() {
    const auto insert = [&](std::size_t at, const std::vector<std::uint32_t>& ids) {
      std::vector<Instruction> frees;
      for (const std::uint32_t id : ids)
        frees.push_back({InstructionKind::kFreePrevious, When::kAlways, id});
      program_.iteration.insert(program_.iteration.begin() + static_cast<std::ptrdiff_t>(at),
                                frees.begin(), frees.end());
    };
    insert(outputs_replaced_at_,
           outputs_);  // the later place first, so that the earlier one stays true
    insert(inputs_replaced_at_, last_inputs_);
  }

  void free_gradients(InstructionKind kind) {
    if (bucket_views()) return;
    for (const auto& [storage, parameters] : gradient_of_) {
      if (bytes_[storage].count() == 0) continue;
      ensure_buffer(storage, BufferRole::kGradient);
      program_.iteration.push_back({kind, When::kAlways, buffers_[storage]});
    }
  }

  bool bucket_views() const { return distributed() && job_.gradient_as_bucket_view; }

  void ensure_buffer(std::uint32_t storage, BufferRole role) {
    if (buffers_[storage] == kNoBuffer) {
      buffers_[storage] = static_cast<std::uint32_t>(emit_.buffer(buffer_for(storage, role)));
    }
  }

  void event(std::uint32_t e) {
    const Event& event = step_.events[e];
    switch (event.kind) {
      case EventKind::kPhase:
        return enter(Phase(event.value));
      case EventKind::kAllocate:
        return allocate(event.value);
      case EventKind::kFree:
        if (bytes_[event.value].count() > 0) emit_.free(BufferId(buffers_[event.value]));
        return;
      case EventKind::kOperator:
        return run_operator(e, event.value);
      case EventKind::kSynchronize:
        return emit_.synchronize();
    }
  }

  void enter(Phase phase) {
    if (phase == Phase::kLoss || phase == Phase::kBackward) replace_outputs();
    emit_.enter(step_phase(phase));
  }

  void allocate(std::uint32_t storage) {
    if (bytes_[storage].count() == 0) return;
    switch (step_.storages[storage].kind) {
      case StorageKind::kPersistent:
        if (micro_ > 0) return;
        ensure_buffer(storage, plan_.roles[storage]);
        return emit_.allocate(BufferId(buffers_[storage]), When::kFirst);
      case StorageKind::kOutput: {
        const BufferId id = emit_.buffer(buffer_for(storage, BufferRole::kOutput));
        buffers_[storage] = static_cast<std::uint32_t>(id);
        outputs_.push_back(buffers_[storage]);
        return emit_.allocate(id);
      }
      case StorageKind::kGradient:
        if (micro_ > 0 || bucket_views()) {
          ensure_temporary(storage);
          return emit_.allocate(BufferId(temporary_gradients_[storage]));
        }
        [[fallthrough]];
      default:
        ensure_buffer(storage, plan_.roles[storage]);
        return emit_.allocate(BufferId(buffers_[storage]));
    }
  }

  void ensure_temporary(std::uint32_t storage) {
    if (temporary_gradients_.count(storage) == 0) {
      temporary_gradients_[storage] =
          static_cast<std::uint32_t>(emit_.buffer(buffer_for(storage, BufferRole::kTemporary)));
    }
  }

  void run_operator(std::uint32_t e, std::uint32_t op_index) {
    const Operator& op = step_.operators[op_index];
    work_.clear();
    append_work(step_, op, sizes_, work_);
    std::uint16_t views =
        static_cast<std::uint16_t>(std::min(step_.attributes_of(op).views, 0xffff));
    for (const Work& work : work_) {
      if (work.kernel_class == KernelClass::kUncosted) {
        program_.diagnostics.add(
            "uncosted_operator", Severity::kWarning,
            std::string(step_.operator_name(op)) + " has no cost rule; costed by its bytes");
      }
      launch(op_index, op, work, views);
      views = 0;
    }
    for (const TensorRef& out : op.outputs)
      gradient_written(static_cast<std::uint32_t>(index(out.storage)), e);
  }

  Kernel kernel_of(std::uint32_t op_index, const Work& work, std::uint16_t views) const {
    Kernel kernel;
    kernel.kernel_class = work.kernel_class;
    kernel.unit = unit_for(work, job_, machine_.gpu);
    kernel.dtype = work.dtype;
    kernel.views = views;
    kernel.flops = work.flops;
    kernel.read = work.read;
    kernel.written = work.written;
    kernel.elements = work.elements;
    kernel.shape = work.shape;
    kernel.source = op_index;
    return kernel;
  }

  void launch(std::uint32_t op_index, const Operator& op, const Work& work, std::uint16_t views) {
    Kernel kernel = kernel_of(op_index, work, views);
    if (std::holds_alternative<AttentionShape>(work.shape)) return attention(op_index, op, kernel);
    if (work.kernel_class == KernelClass::kGemm) cublas_handle(op.module);
    if (auto* shape = std::get_if<ConvolutionShape>(&kernel.shape)) {
      shape->channels_last = shape->channels_last || job_.channels_last;
      return convolution(op, kernel, *shape);
    }
    emit_.launch(kernel);
  }

  /// The forward thread and the autograd thread have a cuBLAS handle each, with a workspace each.
  void cublas_handle(ModuleId module) {
    bool& made = emit_.phase() == StepPhase::kBackward ? backward_handle_ : forward_handle_;
    if (made || !job_.cublas_workspaces_in_allocator) return;
    made = true;
    emit_.allocate(emit_.buffer({cublas_workspace(machine_.gpu), BufferRole::kWorkspace,
                                 Stream::kCompute, false, module}),
                   When::kFirst);
  }

  void convolution(const Operator& op, const Kernel& kernel, const ConvolutionShape& shape) {
    const std::size_t first =
        shape.pass == Pass::kForward ? 0 : 1;  // backward: gradient, input, weight
    const Bytes input = sizes_.touched(step_, op.inputs[first]);
    const Bytes weight = sizes_.touched(step_, op.inputs[first + 1]);
    const Bytes output = sizes_.touched(step_, first == 0 ? op.outputs[0] : op.inputs[0]);
    const auto workspace = convolution_workspace(shape, input, output, weight, job_.cudnn);
    if (workspace) {
      const BufferId id =
          emit_.buffer({*workspace, BufferRole::kWorkspace, Stream::kCompute, true, op.module});
      emit_.allocate(id);
      emit_.launch(kernel);
      emit_.free(id);
    } else {
      emit_.launch(kernel);
    }
    // After trying the algorithms of a convolution that is new to it, PyTorch empties the
    // allocator's cache (ATen/native/cudnn/Conv_v8.cpp, run_single_conv).
    if (job_.cudnn == CudnnProfile::kBenchmark && micro_ == 0 &&
        tried_.insert(key_of(shape)).second) {
      emit_.empty_cache(When::kFirst);
    }
  }

  void attention(std::uint32_t op_index, const Operator& op, Kernel& kernel) {
    const Attributes& attributes = step_.attributes_of(op);
    auto& shape = std::get<AttentionShape>(kernel.shape);
    shape.backend = choose_attention(shape, kernel.dtype, attributes, job_, machine_.gpu);
    const AttentionShape chosen = shape;
    if (chosen.backend == AttentionBackend::kMath) cublas_handle(op.module);
    if (!chosen.backward) {
      SavedBuffers saved = emit_attention_forward(emit_, chosen, kernel, attributes, op.module);
      if (plan_.attention_backward[op_index] == StepPlan::kNone) {
        for (const BufferId id : saved) emit_.free(id);
      } else {
        saved_attention_[op_index] = std::move(saved);
      }
      return;
    }
    emit_attention_backward(emit_, chosen, kernel, attributes, op.module);
    for (const BufferId id : saved_attention_[plan_.attention_forward[op_index]]) emit_.free(id);
    saved_attention_.erase(plan_.attention_forward[op_index]);
  }

  /// After the operator that completes a gradient: accumulate into `.grad`, and tell its bucket.
  void gradient_written(std::uint32_t storage, std::uint32_t e) {
    if (plan_.last_write[storage] != e || gradient_of_.count(storage) == 0) return;
    if (micro_ > 0 || bucket_views()) {
      if (bytes_[storage].count() > 0) {
        launch_over(KernelClass::kElementwise, bytes_[storage], micro_ > 0 ? 2 : 1, 1);
        emit_.free(BufferId(temporary_gradients_[storage]));
      }
    }
    if (!distributed() || !last_micro()) return;
    for (const std::uint32_t parameter : gradient_of_.at(storage)) {
      const std::uint32_t bucket = bucket_of_[parameter];
      if (--missing_[bucket] > 0) continue;
      const GradientBucket& full = program_.buckets[bucket];
      if (!bucket_views()) launch_over(KernelClass::kCopy, full.bytes, 1, full.parameters);
      emit_.bucket_ready(bucket);
    }
  }

  /// A memory-bound kernel over `bytes`, reading it `reads` times and writing it once.
  void launch_over(KernelClass kernel_class, Bytes bytes, std::int64_t reads,
                   std::uint32_t launches) {
    Kernel kernel;
    kernel.kernel_class = kernel_class;
    kernel.read = bytes * reads;
    kernel.written = bytes;
    kernel.elements = bytes.count() / size_of(kernel.dtype);
    kernel.flops = Flops(static_cast<double>(kernel.elements));
    kernel.launches = static_cast<std::uint16_t>(std::min<std::uint32_t>(launches, 0xffff));
    emit_.launch(kernel);
  }

  /// Without bucket views the averaged gradients are copied back into `.grad` at the end of the
  /// backward.
  void copy_buckets_back() {
    for (const GradientBucket& bucket : program_.buckets) {
      launch_over(KernelClass::kCopy, bucket.bytes, 1, bucket.parameters);
    }
  }

  std::vector<TrainedParameter> trained_parameters() const {
    std::vector<TrainedParameter> trained;
    for (const Parameter& p : step_.parameters) {
      if (p.gradient < 0) continue;
      trained.push_back({sizes_.tensor(step_, p.type), step_.types[index(p.type)].dtype,
                         plan_.modules[static_cast<std::size_t>(p.gradient)]});
    }
    return trained;
  }

  const Step& step_;
  const Sizes& sizes_;
  const Job& job_;
  const Machine& machine_;
  const StepPlan plan_;
  Program program_;
  Emitter emit_;

  int micro_ = 0;
  std::set<std::vector<std::int64_t>> tried_;  ///< convolutions whose algorithms were tried: key_of
  std::vector<Bytes> bytes_;                   ///< by storage
  std::vector<std::uint32_t> buffers_;         ///< by storage: its BufferId now
  /// Gradient storage -> parameters; recurrent layers have one for many.
  std::map<std::uint32_t, std::vector<std::uint32_t>> gradient_of_;
  std::unordered_map<std::uint32_t, std::uint32_t> temporary_gradients_;
  std::vector<std::uint32_t> bucket_of_;  ///< by parameter
  std::vector<std::uint32_t> missing_;    ///< by bucket: gradients not ready yet
  std::unordered_map<std::uint32_t, SavedBuffers> saved_attention_;
  std::vector<std::uint32_t> last_inputs_, outputs_, old_outputs_;  ///< BufferIds
  bool outputs_replaced_ = false;
  std::size_t inputs_replaced_at_ = 0, outputs_replaced_at_ = 0;  ///< positions in the iteration
  bool forward_handle_ = false, backward_handle_ = false;
  std::vector<Work> work_;
};

}  // namespace

Result<Program> lower(const Step& step, const Job& job, const Machine& machine) {
  if (auto status = check_job(job); !status) return tl::unexpected(status.error());
  if (capture_precision(job.precision) != step.precision) {
    return fail(ErrorCode::kBadInput,
                step.name + " was captured in " + step.precision + ", which cannot serve " +
                    std::string(name_of(job.precision)) + "; capture it with --precision " +
                    std::string(capture_precision(job.precision)));
  }
  auto dimensions = job.dimensions;
  dimensions["batch"] = job.batch;
  const auto sizes = Sizes::at(step, dimensions);
  if (!sizes) return tl::unexpected(sizes.error());
  return Lowering(step, *sizes, job, machine).run();
}

}  // namespace stoker
