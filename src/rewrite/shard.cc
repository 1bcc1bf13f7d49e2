#include "rewrite/shard.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "rewrite/checkpoint.h"
#include "rewrite/parameter_casts.h"
#include "rewrite/shard_units.h"
#include "rewrite/step_parts.h"
#include "rewrite/symbolic.h"

namespace stoker {
namespace {

/// One parameter cut along its first dimension into equal pieces, the last ones padded
/// (_fsdp_param.py, _init_sharded_param). Rank 0 has a full piece.
struct Cut {
  Polynomial shard;   ///< bytes of one rank's piece
  Polynomial padded;  ///< bytes of all pieces
};

DimensionValues values_of(const Step& step, const ShardSettings& settings) {
  DimensionValues values{};
  for (std::size_t d = 0; d < step.dimensions.size(); ++d) {
    const Dimension& dimension = step.dimensions[d];
    const auto named = settings.dimensions.find(dimension.name);
    values[d] = (named == settings.dimensions.end() ? dimension.default_value : named->second) /
                dimension.unit;
  }
  return values;
}

Result<std::int64_t> rows_of(const Step& step, const Parameter& p, const DimensionValues& values) {
  const auto& shape = step.types[index(p.type)].shape;
  if (shape.empty()) return 1;
  const auto rows = shape[0].evaluate(values);
  if (rows && *rows > 0) return *rows;
  return fail(ErrorCode::kBadInput,
              "FSDP cuts parameters along their first dimension, but that of " + p.name +
                  " is empty: remove it from the model");
}

class Sharding {
 public:
  Sharding(const Step& step, const ShardSettings& settings)
      : old_(step), step_(step), settings_(settings), values_(values_of(step, settings)) {
    units_ = shard_units(step, repeated_blocks(step));
    end_ = end_of(step);
    if (settings.precision) casts_ = parameter_casts(step, settings.precision->computed);
  }

  Result<Step> run() {
    TRY(cut_parameters());
    step_.operators.clear();
    step_.events.clear();
    for (std::size_t e = 0; e < old_.events.size(); ++e) {
      before(e);
      copy_event(old_.events[e]);
    }
    before(old_.events.size());
    finish();
    return std::move(step_);
  }

 private:
  // -- what there is ---------------------------------------------------------------------------

  Status cut_parameters() {
    states_.resize(units_.size());
    for (std::size_t u = 0; u < units_.size(); ++u) {
      for (const std::uint32_t p : units_[u].parameters) {
        if (auto status = cut_parameter(step_.parameters[p], states_[u]); !status) return status;
      }
      make_sharded_gradient(u);
    }
    for (const auto& [storage, bytes] : shards_)
      step_.storages[storage].bytes = settings_.offload ? Polynomial(0) : bytes;
    return {};
  }

  Status cut_parameter(Parameter& p, UnitState& state) {
    const auto rows = TRY(rows_of(old_, p, values_));
    const std::int64_t piece = (rows + settings_.ranks - 1) / settings_.ranks;
    TensorType type = old_.types[index(p.type)];
    if (!type.shape.empty()) type.shape[0] = Polynomial(piece);
    type.layout = Layout::kRowMajor;
    type.order.clear();
    const bool floats =
        type.dtype == DType::kF32 || type.dtype == DType::kBf16 || type.dtype == DType::kF16;
    const bool mixed = settings_.precision && floats;
    const DType dtype = mixed ? settings_.precision->computed : type.dtype;
    const DType captured = type.dtype;
    if (mixed) type.dtype = DType::kF32;
    // Parameters of several types travel as bytes (_get_param_all_gather_inputs,
    // foreach_all_gather).
    const bool first = state.storages.empty();
    state.casts = state.casts || type.dtype != dtype;
    state.stored = first || state.stored == type.dtype ? type.dtype : DType::kU8;
    const Polynomial shard = bytes_of(type);
    const Polynomial padded =
        scaled(scaled(shard, settings_.ranks), size_of(dtype), size_of(type.dtype));
    const auto storage = static_cast<std::uint32_t>(index(p.storage));
    if (!shards_.contains(storage)) state.storages.push_back(storage);
    shards_[storage] = shards_[storage] + shard;
    padded_[storage] = padded_[storage] + padded;
    state.gathered = state.gathered + padded;
    state.dtype = first || state.dtype == dtype ? dtype : DType::kU8;
    const DType type_of_shard = type.dtype;
    p.type = add_type(step_, std::move(type));
    if (p.gradient < 0) return {};
    state.summed_into = type_of_shard;
    state.gradient_dtype = casts_.empty() ? captured : dtype;
    state.reduced_dtype = mixed ? settings_.precision->reduced : dtype;
    state.reduced = state.reduced + scaled(padded, size_of(state.reduced_dtype), size_of(dtype));
    const auto gradient = static_cast<std::uint32_t>(p.gradient);
    if (std::find(state.gradients.begin(), state.gradients.end(), gradient) ==
        state.gradients.end())
      state.gradients.push_back(gradient);
    step_.storages[gradient].kind = StorageKind::kTransient;
    return {};
  }

  /// The sharded gradients of a unit are views of the reduction's output.
  void make_sharded_gradient(std::size_t u) {
    UnitState& state = states_[u];
    if (state.gradients.empty()) return;
    state.sharded_gradient = add_storage(
        step_,
        in_dtype(scaled(state.reduced, 1, settings_.ranks), state.reduced_dtype, state.summed_into),
        settings_.offload ? StorageKind::kTransient : StorageKind::kGradient);
    for (const std::uint32_t p : units_[u].parameters) {
      if (step_.parameters[p].gradient >= 0)
        step_.parameters[p].gradient =
            settings_.offload ? std::int64_t{-1} : *state.sharded_gradient;
    }
  }

  // -- the walk --------------------------------------------------------------------------------

  [[nodiscard]] bool is_root(std::size_t u) const { return units_[u].module.empty(); }

  /// What FSDP's hooks do at the position before event `e`: units that end before units that begin.
  void before(std::size_t e) {
    for (std::size_t u = 0; u < units_.size(); ++u) {
      if (units_[u].forward.end == e) post_forward(u);
      if (units_[u].backward.end == e) post_backward(u);
    }
    if (e == end_) end_of_backward();
    // The root's hooks run outside of those of the blocks.
    for (std::size_t u = units_.size(); u-- > 0;) {
      if (units_[u].forward.begin == e) pre_forward(u);
      if (units_[u].backward.begin == e) pre_backward(u);
    }
  }

  /// The mark of the step's end, or the end of all events when operators follow it.
  static std::size_t end_of(const Step& step) {
    std::size_t end = step.events.size();
    for (std::size_t e = 0; e < step.events.size(); ++e) {
      const Event& event = step.events[e];
      if (event.kind == EventKind::kPhase && Phase(event.value) == Phase::kEnd) end = e;
      if (event.kind == EventKind::kOperator) end = step.events.size();
    }
    return end;
  }

  void copy_event(const Event& event) {
    if (is_cast_away(event)) return;
    if (event.kind == EventKind::kAllocate) alive_[event.value] = true;
    if (event.kind == EventKind::kFree) alive_[event.value] = false;
    if (event.kind != EventKind::kOperator) {
      step_.events.push_back(event);
      return;
    }
    Operator op = old_.operators[event.value];
    for (auto* list : {&op.inputs, &op.outputs}) {
      for (TensorRef& tensor : *list) tensor.storage = current(tensor.storage);
    }
    add_operator(std::move(op));
  }

  /// Where the values of a parameter are now.
  [[nodiscard]] StorageId current(StorageId id) const {
    auto storage = static_cast<std::uint32_t>(index(id));
    if (const auto cast = casts_.copies.find(storage); cast != casts_.copies.end())
      storage = cast->second;
    if (!shards_.contains(storage)) return id;
    for (const UnitState& state : states_) {
      if (const auto it = state.copies.find(storage); it != state.copies.end())
        return StorageId(it->second);
    }
    return StorageId(storage);
  }

  // -- FSDP's hooks (_fsdp_param_group.py) -------------------------------------------------------

  void pre_forward(std::size_t u) {
    if (states_[u].unsharded()) return;
    gather(u);
    copy_out(u);
    // The buffer is kept until the next unit's copy-out, so that the next copy-in and this copy-out
    // may overlap.
    if (held_) release(*held_);
    held_ = std::exchange(states_[u].pending, std::nullopt);
  }

  void post_forward(std::size_t u) {
    if (is_root(u)) {
      if (held_) release(*std::exchange(held_, std::nullopt));
    } else if (settings_.reshard_after_forward) {
      reshard(u);
    }
  }

  void pre_backward(std::size_t u) {
    if (!states_[u].unsharded()) {
      gather(u);
      copy_out(u);
      if (states_[u].pending) release(*std::exchange(states_[u].pending, std::nullopt));
    }
    if (u > 0 && !states_[u - 1].unsharded()) gather(u - 1);
  }

  void post_backward(std::size_t u) {
    reshard(u);
    if (states_[u].sharded_gradient) reduce(u);
  }

  void end_of_backward() {
    for (std::size_t u = 0; u < units_.size(); ++u) {
      if (states_[u].sharded_gradient && !states_[u].done) post_backward(u);
      reshard(u);
      if (states_[u].pending) release(*std::exchange(states_[u].pending, std::nullopt));
    }
    if (held_) release(*std::exchange(held_, std::nullopt));
    if (reducing_) release(*std::exchange(reducing_, std::nullopt));
  }

  // -- what they consist of (_fsdp_collectives.py) ------------------------------------------------

  /// foreach_all_gather: one buffer for all, whose own part is the all-gather's input.
  void gather(std::size_t u) {
    UnitState& state = states_[u];
    if (state.pending || settings_.ranks == 1) return;
    const Polynomial share = scaled(state.gathered, 1, settings_.ranks);
    const TypeId part = add_flat_type(step_, state.dtype, share);
    std::vector<TensorRef> shards = shards_of(u);
    const std::optional<std::uint32_t> arrived =
        settings_.offload ? to_device(u, shards) : std::nullopt;
    // Shards of another precision are cast into one buffer first (_get_param_all_gather_inputs).
    std::optional<std::uint32_t> cast;
    if (state.casts) {
      cast = add_storage(step_, share);
      allocate(*cast);
    }
    const std::uint32_t buffer = add_storage(step_, state.gathered);
    allocate(buffer);
    std::vector<TensorRef> written{{part, StorageId(buffer)}};
    if (cast) written.push_back({part, StorageId(*cast)});
    const TensorRef all{add_flat_type(step_, state.dtype, state.gathered), StorageId(buffer)};
    add_operator("stoker::all_gather_copy_in", u, std::move(shards), std::move(written));
    add_operator("stoker::all_gather", u, {all}, {all});
    if (cast) release(*cast);
    if (arrived) release(*arrived);
    state.pending = buffer;
  }

  /// The shards in the device's memory, where the copy into the gathered buffer reads them.
  std::optional<std::uint32_t> to_device(std::size_t u, std::vector<TensorRef>& shards) {
    Polynomial bytes;
    for (const std::uint32_t s : states_[u].storages) bytes = bytes + shards_.at(s);
    const std::uint32_t copy = add_storage(step_, bytes);
    allocate(copy);
    const TensorRef all{add_flat_type(step_, DType::kU8, bytes), StorageId(copy)};
    add_operator("stoker::shard_to_device", u, std::move(shards), {all});
    shards = {all};
    return copy;
  }

  void copy_out(std::size_t u) {
    UnitState& state = states_[u];
    std::vector<TensorRef> outputs;
    for (const std::uint32_t storage : state.storages) {
      const std::uint32_t copy = add_storage(step_, padded_.at(storage));
      allocate(copy);
      state.copies[storage] = copy;
      outputs.push_back({add_flat_type(step_, state.dtype, padded_.at(storage)), StorageId(copy)});
    }
    std::vector<TensorRef> inputs = shards_of(u);
    if (state.pending)
      inputs = {{add_flat_type(step_, state.dtype, state.gathered), StorageId(*state.pending)}};
    add_operator("stoker::all_gather_copy_out", u, std::move(inputs), std::move(outputs));
  }

  void reshard(std::size_t u) {
    for (const auto& [storage, copy] : states_[u].copies) release(copy);
    states_[u].copies.clear();
  }

  /// foreach_reduce. One reduction is under way at a time: its input is let go at the next.
  void reduce(std::size_t u) {
    UnitState& state = states_[u];
    state.done = true;
    if (reducing_) release(*std::exchange(reducing_, std::nullopt));
    const std::uint32_t input = add_storage(step_, state.reduced);
    allocate(input);
    reducing_ = input;
    std::vector<TensorRef> gradients;
    for (const std::uint32_t captured : state.gradients) {
      const auto uncast = casts_.gradients.find(captured);
      const std::uint32_t g = uncast == casts_.gradients.end() ? captured : uncast->second;
      if (alive_[g])
        gradients.push_back(
            {add_flat_type(step_, state.gradient_dtype, old_.storages[g].bytes), StorageId(g)});
    }
    const TensorRef flat{add_flat_type(step_, state.reduced_dtype, state.reduced),
                         StorageId(input)};
    add_operator("stoker::reduce_scatter_copy_in", u, gradients, {flat});
    for (const TensorRef& g : gradients) {
      release(static_cast<std::uint32_t>(index(g.storage)));
      alive_[static_cast<std::uint32_t>(index(g.storage))] = false;
    }
    reduce_flat(u, flat);
  }

  /// The reduction itself. What comes out in another precision is copied into the gradient by the
  /// last collective's operator.
  void reduce_flat(std::size_t u, const TensorRef& flat) {
    UnitState& state = states_[u];
    const Polynomial bytes = scaled(state.reduced, 1, settings_.ranks);
    const bool casts = state.reduced_dtype != state.summed_into;
    const std::uint32_t output = casts ? add_storage(step_, bytes) : *state.sharded_gradient;
    allocate(output);
    const TensorRef summed{add_flat_type(step_, state.reduced_dtype, bytes), StorageId(output)};
    std::vector<TensorRef> written{summed};
    if (casts) {
      allocate(*state.sharded_gradient);
      const Polynomial stored = in_dtype(bytes, state.reduced_dtype, state.summed_into);
      written.push_back(
          {add_flat_type(step_, state.summed_into, stored), StorageId(*state.sharded_gradient)});
    }
    if (settings_.replicas > 1) {
      add_operator("stoker::reduce_scatter", u, {flat}, {summed});
      add_operator("stoker::all_reduce", u, {summed}, std::move(written), settings_.replicas);
    } else {
      add_operator("stoker::reduce_scatter", u, {flat}, std::move(written));
    }
    if (casts) release(output);
    if (!settings_.offload) return;
    const TensorRef gradient{add_flat_type(step_, state.summed_into,
                                           in_dtype(bytes, state.reduced_dtype, state.summed_into)),
                             StorageId(*state.sharded_gradient)};
    add_operator("stoker::gradient_to_host", u, {gradient}, {});
    release(*state.sharded_gradient);
  }

  std::vector<TensorRef> shards_of(std::size_t u) {
    std::vector<TensorRef> shards;
    for (const std::uint32_t s : states_[u].storages)
      shards.push_back({add_flat_type(step_, states_[u].stored, shards_.at(s)), StorageId(s)});
    return shards;
  }

  // -- events ----------------------------------------------------------------------------------

  void allocate(std::uint32_t storage) { step_.events.push_back({EventKind::kAllocate, storage}); }
  void release(std::uint32_t storage) { step_.events.push_back({EventKind::kFree, storage}); }

  void add_operator(Operator op) {
    step_.operators.push_back(std::move(op));
    step_.events.push_back(
        {EventKind::kOperator, static_cast<std::uint32_t>(step_.operators.size() - 1)});
  }

  void add_operator(std::string_view name, std::size_t u, std::vector<TensorRef> inputs,
                    std::vector<TensorRef> outputs, std::int64_t ranks = 0) {
    step_.events.push_back(
        {EventKind::kOperator,
         add_collective(step_, name, units_[u].module_id, ranks > 0 ? ranks : settings_.ranks,
                        std::move(inputs), std::move(outputs))});
  }

  /// Bytes of as many numbers of another type.
  static Polynomial in_dtype(const Polynomial& bytes, DType from, DType to) {
    return scaled(bytes, size_of(to), size_of(from));
  }

  /// Autocast's casts of parameters and of their gradients, and the storages that these made.
  [[nodiscard]] bool is_cast_away(const Event& event) const {
    switch (event.kind) {
      case EventKind::kOperator:
        return casts_.operators.contains(event.value);
      case EventKind::kAllocate:
        return casts_.copies.contains(event.value) || casts_.gradients.contains(event.value);
      case EventKind::kFree:
        return casts_.copies.contains(event.value) || casts_.gradients.contains(event.value) ||
               casts_.kept.contains(event.value);
      default:
        return false;
    }
  }

  void finish() {
    // Gradients that came into being after their unit's reduction; no captured step has them.
    for (const auto& [storage, alive] : alive_) {
      if (alive && old_.storages[storage].kind != step_.storages[storage].kind) release(storage);
    }
  }

  const Step& old_;
  Step step_;
  const ShardSettings settings_;
  const DimensionValues values_;
  std::vector<ShardUnit> units_;
  std::vector<UnitState> states_;
  ParameterCasts casts_;
  std::size_t end_ = 0;  ///< position at which the backward's final callback runs
  std::map<std::uint32_t, Polynomial> shards_, padded_;  ///< by parameter storage: bytes
  std::map<std::uint32_t, bool> alive_;
  std::optional<std::uint32_t> held_;      ///< gathered buffer of the unit copied out last
  std::optional<std::uint32_t> reducing_;  ///< input of the reduction under way
};

}  // namespace

Result<Step> sharded_step(const Step& step, const ShardSettings& settings) {
  if (settings.replicas < 1 || settings.ranks < 1 || settings.ranks > 1'000'000) {
    return fail(ErrorCode::kBadInput,
                "FSDP needs between 1 and 1,000,000 ranks, not " + std::to_string(settings.ranks));
  }
  return Sharding(step, settings).run();
}

}  // namespace stoker
