#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "rewrite/shard.h"
#include "rewrite/step_edit.h"
#include "rewrite/step_parts.h"
#include "rewrite/symbolic.h"
#include "rewrite/tensor_chunks.h"

namespace stoker {
namespace {

constexpr std::size_t kBatch = 0;  ///< the batch is a step's first dimension

/// Where the user's own code runs on GPU 0 for the whole batch: the loss, and in the backward what
/// comes before the gradient of the model's output.
struct LossRegion {
  std::size_t forward_begin = kNowhere, loss_begin = kNowhere, backward_begin = kNowhere;
  std::size_t model_backward = kNowhere;  ///< first operator of the backward of the model itself
  std::size_t end = kNowhere;             ///< mark of the step's end

  explicit LossRegion(const Step& step) {
    std::set<std::uint32_t> links;
    Phase phase = Phase::kLoad;
    bool loss_has_operators = false;
    end = step.events.size();
    for (std::size_t e = 0; e < step.events.size(); ++e) {
      const Event& event = step.events[e];
      if (event.kind == EventKind::kPhase) enter(phase = Phase(event.value), e);
      if (event.kind != EventKind::kOperator) continue;
      const std::uint32_t link = step.operators[event.value].link;
      if (phase == Phase::kForward && link != 0) links.insert(link);
      if (phase == Phase::kLoss) loss_has_operators = true;
      if (phase == Phase::kBackward && model_backward == kNowhere &&
          (!loss_has_operators || links.contains(link))) {
        model_backward = begin_of_operator(step, e);
      }
      if (phase == Phase::kEnd) end = step.events.size();
    }
    if (loss_begin == kNowhere) loss_begin = backward_begin == kNowhere ? end : backward_begin;
  }

  /// A backward whose operators do not tell what they belong to counts as the model's.
  [[nodiscard]] bool contains(std::size_t e) const {
    if (e < loss_begin || e >= end) return false;
    if (backward_begin == kNowhere || e < backward_begin) return true;
    return model_backward != kNowhere && e < model_backward;
  }

 private:
  void enter(Phase phase, std::size_t e) {
    if (phase == Phase::kForward) forward_begin = e + 1;
    if (phase == Phase::kLoss) loss_begin = e;
    if (phase == Phase::kBackward) backward_begin = e;
    if (phase == Phase::kEnd) end = e;
  }
};

class DataParallel {
 public:
  DataParallel(const Step& step, std::int64_t gpus)
      : old_(step), gpus_(gpus), region_(step), edit_(step) {}

  Step run() {
    whole_inputs();
    broadcast();
    if (old_.mode == "train" || region_.loss_begin != kNowhere) gather_outputs();
    whole_loss();
    if (region_.backward_begin != kNowhere) {
      scatter_gradients();
      reduce_gradients();
    }
    return edit_.finish();
  }

 private:
  [[nodiscard]] Polynomial whole(const Polynomial& p) const {
    return with_dimension_scaled(p, kBatch, gpus_);
  }

  TypeId whole_type(TypeId id) {
    const auto known = whole_types_.find(id);
    if (known != whole_types_.end()) return known->second;
    TensorType type = old_.types[index(id)];
    for (Polynomial& side : type.shape) side = whole(side);
    return whole_types_[id] = add_type(edit_.step(), std::move(type));
  }

  std::uint32_t operation(std::string_view name, std::vector<TensorRef> inputs,
                          std::vector<TensorRef> outputs) {
    return add_collective(edit_.step(), name, ModuleId{}, gpus_, std::move(inputs),
                          std::move(outputs));
  }

  /// The batch of all is copied to GPU 0 first; its own share is a view (comm.cpp, scatter).
  void whole_inputs() {
    Step& step = edit_.step();
    std::vector<TensorRef> scattered;
    for (NamedTensor& input : step.inputs) {
      auto& bytes = step.storages[index(input.storage)].bytes;
      bytes = whole(bytes);
      input.type = whole_type(input.type);
      if (read_by_model(input.storage)) scattered.push_back({input.type, input.storage});
    }
    for (const TensorRef& tensor : scattered)
      edit_.insert_before(begin(),
                          {EventKind::kOperator, operation("stoker::scatter", {tensor}, {})});
  }

  [[nodiscard]] bool read_by_model(StorageId storage) const {
    for (std::size_t e = 0; e < old_.events.size() && e < region_.loss_begin; ++e) {
      if (old_.events[e].kind != EventKind::kOperator) continue;
      for (const TensorRef& in : old_.operators[old_.events[e].value].inputs) {
        if (in.storage == storage) return true;
      }
    }
    return false;
  }

  [[nodiscard]] std::size_t begin() const {
    return region_.forward_begin == kNowhere ? 0 : region_.forward_begin;
  }

  /// Parameters, then buffers go to the other GPUs in flat buffers of 10 MiB; GPU 0 uses its own
  /// (comm.cpp, broadcast_coalesced).
  void broadcast() {
    std::vector<ChunkedTensor> parameters;
    std::vector<ChunkedTensor> buffers;
    for (const Parameter& p : old_.parameters) parameters.push_back({p.type, p.storage});
    for (const NamedTensor& b : old_.buffers) buffers.push_back({b.type, b.storage});
    for (const auto* list : {&parameters, &buffers}) {
      for (const TensorChunk& chunk : tensor_chunks(old_, *list)) {
        const auto flat = flattened(chunk, *list);
        const TensorRef source = flat ? TensorRef{chunk_type(chunk), StorageId(*flat)}
                                      : ref((*list)[chunk.tensors.front()]);
        insert(begin(), EventKind::kOperator, operation("stoker::broadcast", {source}, {}));
        if (flat) insert(begin(), EventKind::kFree, *flat);
      }
    }
  }

  static TensorRef ref(const ChunkedTensor& t) { return {t.type, t.storage}; }
  TypeId chunk_type(const TensorChunk& chunk) {
    return add_flat_type(edit_.step(), chunk.dtype, Polynomial(chunk.bytes));
  }
  void insert(std::size_t at, EventKind kind, std::uint32_t value) {
    edit_.insert_before(at, {kind, value});
  }

  /// The tensors of a chunk in one new buffer at the begin of the forward; none for a single
  /// tensor, which is its own flat buffer.
  std::optional<std::uint32_t> flattened(const TensorChunk& chunk,
                                         const std::vector<ChunkedTensor>& list) {
    return chunk.tensors.size() < 2 ? std::nullopt : std::optional(flatten(begin(), chunk, list));
  }

  std::uint32_t flatten(std::size_t at, const TensorChunk& chunk,
                        const std::vector<ChunkedTensor>& list) {
    const std::uint32_t flat = add_storage(edit_.step(), Polynomial(chunk.bytes));
    std::vector<TensorRef> inputs;
    for (const std::uint32_t t : chunk.tensors) inputs.push_back(ref(list[t]));
    insert(at, EventKind::kAllocate, flat);
    insert(at, EventKind::kOperator,
           operation("stoker::flatten_copy_in", std::move(inputs),
                     {{chunk_type(chunk), StorageId(flat)}}));
    return flat;
  }

  // -- outputs -----------------------------------------------------------------------------------

  /// What the forward made and the loss reads, or the user is given: gathered on GPU 0.
  void gather_outputs() {
    const EventIndex where(old_);
    std::map<std::uint32_t, std::size_t> last_use;  // by the model itself, after its forward
    std::map<std::uint32_t, TypeId> types;
    for (std::size_t e = 0; e < old_.events.size(); ++e) {
      if (old_.events[e].kind != EventKind::kOperator) continue;
      const Operator& op = old_.operators[old_.events[e].value];
      for (const auto* list : {&op.inputs, &op.outputs}) {
        for (const TensorRef& t : *list) note_use(e, t, where, last_use, types);
      }
    }
    for (std::uint32_t s = 0; s < old_.storages.size(); ++s) {
      if (made_by_forward(s, where) && old_.storages[s].kind == StorageKind::kOutput)
        types.emplace(s, TypeId{static_cast<std::uint32_t>(-1)});
    }
    for (const auto& [s, type] : types) gather(s, type, where, last_use);
  }

  [[nodiscard]] bool made_by_forward(std::uint32_t s, const EventIndex& where) const {
    return where.allocated[s] != kNowhere && where.allocated[s] < region_.loss_begin;
  }

  void note_use(std::size_t e, const TensorRef& t, const EventIndex& where,
                std::map<std::uint32_t, std::size_t>& last_use,
                std::map<std::uint32_t, TypeId>& types) const {
    const auto s = static_cast<std::uint32_t>(index(t.storage));
    if (!made_by_forward(s, where)) return;
    if (region_.contains(e)) types.emplace(s, t.type);
    else if (e >= region_.loss_begin) last_use[s] = e;
  }

  void gather(std::uint32_t s, TypeId read_as, const EventIndex& where,
              const std::map<std::uint32_t, std::size_t>& last_use) {
    Step& step = edit_.step();
    const bool typed = index(read_as) < old_.types.size();
    const Polynomial own = typed ? bytes_of(old_.types[index(read_as)]) : old_.storages[s].bytes;
    const DType dtype = typed ? old_.types[index(read_as)].dtype : DType::kU8;
    const std::uint32_t all = add_storage(step, whole(own), old_.storages[s].kind);
    const TensorRef own_ref{add_flat_type(step, dtype, own), StorageId(s)};
    const TensorRef all_ref{add_flat_type(step, dtype, whole(own)), StorageId(all)};
    insert(region_.loss_begin, EventKind::kAllocate, all);
    insert(region_.loss_begin, EventKind::kOperator,
           operation("stoker::gather", {own_ref}, {all_ref}));
    gathered_[s] = all;
    if (old_.storages[s].kind == StorageKind::kTransient) {
      if (where.freed[s] != kNowhere && where.freed[s] >= region_.loss_begin)
        edit_.insert_after(where.freed[s], {EventKind::kFree, all});
      edit_.remove(where.freed[s]);
    } else {
      step.storages[s].kind = StorageKind::kTransient;
    }
    const auto use = last_use.find(s);
    if (use == last_use.end()) insert(region_.loss_begin, EventKind::kFree, s);
    else edit_.insert_after(use->second, {EventKind::kFree, s});
  }

  // -- the loss ----------------------------------------------------------------------------------

  /// Everything that the loss makes is of the whole batch.
  void whole_loss() {
    Step& step = edit_.step();
    for (std::size_t e = 0; e < old_.events.size(); ++e) {
      if (!region_.contains(e)) continue;
      const Event& event = old_.events[e];
      if (event.kind == EventKind::kAllocate)
        step.storages[event.value].bytes = whole(old_.storages[event.value].bytes);
      if (event.kind != EventKind::kOperator) continue;
      Operator& op = step.operators[event.value];
      for (auto* list : {&op.inputs, &op.outputs}) {
        for (TensorRef& t : *list) {
          t.type = whole_type(t.type);
          const auto it = gathered_.find(static_cast<std::uint32_t>(index(t.storage)));
          if (it != gathered_.end()) t.storage = StorageId(it->second);
        }
      }
    }
  }

  // -- backward ----------------------------------------------------------------------------------

  /// Gradients of the gathered outputs go back; GPU 0's share is a view.
  void scatter_gradients() {
    if (region_.model_backward == kNowhere) return;
    std::set<std::uint32_t> made;
    std::set<std::uint32_t> sent;
    for (std::size_t e = region_.backward_begin; e < old_.events.size(); ++e) {
      const Event& event = old_.events[e];
      if (event.kind == EventKind::kAllocate && region_.contains(e)) made.insert(event.value);
      if (event.kind != EventKind::kOperator || region_.contains(e)) continue;
      for (const TensorRef& in : old_.operators[event.value].inputs) {
        const auto s = static_cast<std::uint32_t>(index(in.storage));
        if (!made.contains(s) || !sent.insert(s).second) continue;
        insert(region_.model_backward, EventKind::kOperator,
               operation("stoker::scatter", {{whole_type(in.type), in.storage}}, {}));
      }
    }
  }

  /// When all replicas are done, their gradients are added in chunks of 10 MiB; `.grad` is a view
  /// of the sum, and GPU 0's own gradients die with the backward (comm.py, reduce_add_coalesced).
  void reduce_gradients() {
    Step& step = edit_.step();
    std::vector<ChunkedTensor> own;
    std::vector<std::uint32_t> parameter_of;
    std::set<std::uint32_t> storages;
    for (std::uint32_t p = 0; p < old_.parameters.size(); ++p) {
      if (old_.parameters[p].gradient < 0) continue;
      const auto gradient = static_cast<std::uint32_t>(old_.parameters[p].gradient);
      own.push_back({old_.parameters[p].type, StorageId(gradient)});
      parameter_of.push_back(p);
      storages.insert(gradient);
      step.storages[gradient].kind = StorageKind::kTransient;
    }
    std::optional<std::uint32_t> last;
    for (const TensorChunk& chunk : tensor_chunks(old_, own)) {
      std::optional<std::uint32_t> flat;
      if (chunk.tensors.size() > 1) flat = flatten(region_.end, chunk, own);
      if (last) insert(region_.end, EventKind::kFree, *last);
      last = flat;
      const std::uint32_t sum = add_storage(step, Polynomial(chunk.bytes), StorageKind::kGradient);
      insert(region_.end, EventKind::kAllocate, sum);
      const TensorRef source =
          flat ? TensorRef{chunk_type(chunk), StorageId(*flat)} : ref(own[chunk.tensors.front()]);
      insert(region_.end, EventKind::kOperator,
             operation("stoker::reduce", {source}, {{chunk_type(chunk), StorageId(sum)}}));
      for (const std::uint32_t t : chunk.tensors) step.parameters[parameter_of[t]].gradient = sum;
    }
    if (last) insert(region_.end, EventKind::kFree, *last);
    for (const std::uint32_t s : storages) insert(region_.end, EventKind::kFree, s);
  }

  const Step& old_;
  const std::int64_t gpus_;
  const LossRegion region_;
  StepEdit edit_;
  std::map<TypeId, TypeId> whole_types_;
  std::map<std::uint32_t, std::uint32_t> gathered_;  ///< output storage -> of the whole batch
};

}  // namespace

Result<Step> data_parallel_step(const Step& step, std::int64_t gpus) {
  if (gpus < 1 || gpus > 1'000) {
    return fail(ErrorCode::kBadInput,
                "DataParallel needs between 1 and 1,000 GPUs, not " + std::to_string(gpus));
  }
  if (gpus == 1) return step;  // DataParallel calls the module as it is
  return DataParallel(step, gpus).run();
}

}  // namespace stoker
