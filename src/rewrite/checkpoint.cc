#include "rewrite/checkpoint.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include "rewrite/forward_lifetimes.h"
#include "rewrite/module_runs.h"
#include "rewrite/step_edit.h"
#include "step/step_reader.h"

namespace stoker {
namespace {

/// What checkpointing does to one run of a module.
struct Checkpoint {
  ModuleRun run;
  std::vector<std::size_t> backward;  ///< positions of its backward operators
  std::size_t trigger = kNowhere;     ///< before this position the forward is run again
  std::size_t stop = 0;  ///< the second run ends before this position: everything needed is there
  std::size_t end = 0;   ///< last operator of the backward that needs what was saved
  std::set<std::uint32_t> saved;  ///< storages of the forward that its backward reads
  std::unordered_map<std::uint32_t, std::uint32_t> again;  ///< storage -> the one of the second run
};

/// The rewriting of one step; `run` once. Positions are those in the original's events.
class Checkpointing {
 public:
  Checkpointing(const Step& step, std::vector<ModuleRun> runs)
      : step_(step), index_(step), lifetimes_(step, index_), edit_(step) {
    run_of_.assign(step.storages.size(), kNone);
    for (ModuleRun& run : runs) checkpoints_.push_back({run, {}, kNowhere, 0, 0, {}, {}});
    held_until_.assign(step.storages.size(), 0);
    cast_anew_.assign(step.storages.size(), false);
  }

  Step run() {
    assign_storages();
    assign_backward();
    for (Checkpoint& c : checkpoints_) find_extent(c);
    if (step_.provenance.libraries.count("transformers") > 0) leave_out_cache();
    for (Checkpoint& c : checkpoints_) {
      if (c.trigger != kNowhere) run_again(c);
    }
    for (std::uint32_t s = 0; s < step_.storages.size(); ++s) end_first(s);
    return edit_.finish();
  }

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;

  const Operator& op_at(std::size_t position) const {
    return step_.operators[step_.events[position].value];
  }
  bool is_operator(std::size_t position) const {
    return step_.events[position].kind == EventKind::kOperator;
  }

  /// Whether the storage exists when the backward begins.
  bool of_forward(std::uint32_t s) const {
    return index_.allocated[s] == kNowhere || index_.allocated[s] < index_.backward;
  }
  bool made_in(const Checkpoint& c, std::uint32_t s) const {
    return run_of_[s] != kNone && &checkpoints_[run_of_[s]] == &c;
  }
  bool transient(std::uint32_t s) const {
    return step_.storages[s].kind == StorageKind::kTransient;
  }

  void assign_storages() {
    for (std::uint32_t c = 0; c < checkpoints_.size(); ++c) {
      const ModuleRun& run = checkpoints_[c].run;
      for (std::size_t e = run.begin; e < run.end; ++e) {
        if (step_.events[e].kind == EventKind::kAllocate) run_of_[step_.events[e].value] = c;
        if (is_operator(e) && op_at(e).link != 0) run_of_link_.emplace(op_at(e).link, c);
      }
    }
  }

  /// A backward operator belongs to the run that its forward operator is in; without a link, to the
  /// run whose tensors it reads.
  void assign_backward() {
    for (std::size_t e = index_.backward; e < step_.events.size(); ++e) {
      if (!is_operator(e)) continue;
      const std::uint32_t c = owner_of(op_at(e));
      if (c == kNone) continue;
      checkpoints_[c].backward.push_back(e);
    }
  }

  std::uint32_t owner_of(const Operator& op) const {
    if (const auto it = run_of_link_.find(op.link); op.link != 0 && it != run_of_link_.end())
      return it->second;
    if (op.link != 0) return kNone;
    for (const TensorRef& in : op.inputs) {
      const auto s = static_cast<std::uint32_t>(index(in.storage));
      const std::uint32_t c = run_of_[s];
      if (c != kNone && is_within(step_.module_names[index(op.module)], checkpoints_[c].run.module))
        return c;
    }
    return kNone;
  }

  bool reads_saved(const Operator& op) const {
    return std::any_of(op.inputs.begin(), op.inputs.end(), [&](const TensorRef& in) {
      return of_forward(static_cast<std::uint32_t>(index(in.storage)));
    });
  }

  void find_extent(Checkpoint& c) {
    for (std::size_t i = 0; i < c.backward.size(); ++i) {
      const Operator& op = op_at(c.backward[i]);
      if (!reads_saved(op)) continue;
      for (const TensorRef& in : op.inputs) {
        const auto s = static_cast<std::uint32_t>(index(in.storage));
        if (of_forward(s)) c.saved.insert(s);
      }
      const auto [first, last] = node_of(c.backward, i);
      if (c.trigger == kNowhere) c.trigger = begin_of_operator(step_, first);
      c.end = std::max(c.end, last);
    }
    // A model that checkpoints by itself, or a layer that saves its input alone, has nothing to
    // make again.
    const bool needed = std::any_of(c.saved.begin(), c.saved.end(), [&](std::uint32_t s) {
      return made_in(c, s) || lifetimes_.cached_cast(s);
    });
    if (!needed) c.trigger = kNowhere;
    c.stop = early_stop(c);
  }

  /// First and last operator of the autograd node that `owned[i]` belongs to.
  std::pair<std::size_t, std::size_t> node_of(const std::vector<std::size_t>& owned,
                                              std::size_t i) const {
    const std::uint32_t link = op_at(owned[i]).link;
    std::size_t first = i, last = i;
    if (link != 0) {
      while (first > 0 && op_at(owned[first - 1]).link == link) --first;
      while (last + 1 < owned.size() && op_at(owned[last + 1]).link == link) ++last;
    }
    return {owned[first], owned[last]};
  }

  /// The second run stops as soon as the last tensor is saved: before the last operator that saves
  /// inputs only (autograd saves them first), after the last one that saves a result.
  std::size_t early_stop(const Checkpoint& c) const {
    std::unordered_map<std::uint32_t, std::set<std::uint32_t>> saved_by;  // link -> storages
    for (const std::size_t e : c.backward) {
      for (const TensorRef& in : op_at(e).inputs) {
        const auto s = static_cast<std::uint32_t>(index(in.storage));
        if (of_forward(s)) saved_by[op_at(e).link].insert(s);
      }
    }
    std::size_t stop = c.run.begin;
    std::set<std::uint32_t> seen;
    for (std::size_t e = c.run.begin; e < c.run.end; ++e) {
      if (!is_operator(e)) continue;
      const Operator& op = op_at(e);
      const auto it = saved_by.find(op.link);
      if (op.link == 0 || it == saved_by.end()) continue;
      if (seen.insert(op.link).second) stop = std::max(stop, begin_of_operator(step_, e));
      for (const TensorRef& out : op.outputs) {
        if (it->second.count(static_cast<std::uint32_t>(index(out.storage))) > 0) stop = e + 1;
      }
    }
    for (const std::uint32_t s : c.saved) {  // an operator whose link is another's
      if (made_in(c, s) && index_.maker[s] != kNowhere) stop = std::max(stop, index_.maker[s] + 1);
    }
    return stop;
  }

  /// Hugging Face's models return the keys and values of each block (use_cache), and switch that
  /// off where they checkpoint (transformers/modeling_layers.py, GradientCheckpointingLayer). Their
  /// copies stay in the step, but die as the tensors of any other operator.
  void leave_out_cache() {
    std::vector<bool> read_elsewhere(step_.storages.size());
    for (std::size_t e = 0; e < step_.events.size(); ++e) {
      if (!is_operator(e)) continue;
      const Operator& op = op_at(e);
      const bool attends = step_.operator_name(op).substr(0, 17) == "stoker::attention";
      for (const TensorRef& in : op.inputs)
        read_elsewhere[index(in.storage)] = read_elsewhere[index(in.storage)] || !attends;
    }
    for (std::uint32_t s = 0; s < step_.storages.size(); ++s) {
      if (step_.storages[s].kind != StorageKind::kOutput || run_of_[s] == kNone) continue;
      const Checkpoint& c = checkpoints_[run_of_[s]];
      if (c.trigger == kNowhere || c.saved.count(s) == 0 || read_elsewhere[s]) continue;
      edit_.step().storages[s].kind = StorageKind::kTransient;
      edit_.insert_after(lifetimes_.end_of(s), {EventKind::kFree, s});
    }
  }

  // -- the second run ------------------------------------------------------------------------

  void run_again(Checkpoint& c) {
    std::vector<Event> events;
    std::set<std::uint32_t> open;  // made anew and not freed yet
    for (std::size_t e = c.run.begin; e < c.stop; ++e) {
      const Event& event = step_.events[e];
      switch (event.kind) {
        case EventKind::kAllocate:
          make_again(c, event.value, events, open);
          break;
        case EventKind::kOperator:
          for (const TensorRef& in : op_at(e).inputs)
            cast_again(c, static_cast<std::uint32_t>(index(in.storage)), events, open);
          events.push_back({EventKind::kOperator, copy_operator(c, op_at(e))});
          break;
        case EventKind::kFree:
          if (const auto it = c.again.find(event.value); it != c.again.end()) {
            events.push_back({EventKind::kFree, it->second});
            open.erase(event.value);
          }
          break;
        default:
          events.push_back(event);
      }
    }
    for (const std::uint32_t s : c.saved) cast_again(c, s, events, open);
    for (const std::uint32_t s : open) {
      if (c.saved.count(s) == 0) events.push_back({EventKind::kFree, c.again.at(s)});
    }
    for (const Event& event : events) edit_.insert_before(c.trigger, event);
    read_again(c, open);
    hold_inputs(c);
  }

  void make_again(Checkpoint& c, std::uint32_t s, std::vector<Event>& events,
                  std::set<std::uint32_t>& open) {
    if (step_.storages[s].kind == StorageKind::kPersistent) return;  // a cache, filled once
    const std::uint32_t copy =
        edit_.add_storage({step_.storages[s].bytes, StorageKind::kTransient});
    c.again[s] = copy;
    open.insert(s);
    events.push_back({EventKind::kAllocate, copy});
  }

  /// A weight that autocast had cast before this run: its cache is gone, so it is cast again.
  void cast_again(Checkpoint& c, std::uint32_t s, std::vector<Event>& events,
                  std::set<std::uint32_t>& open) {
    if (!lifetimes_.cached_cast(s) || c.again.count(s) > 0) return;
    cast_anew_[s] = true;
    make_again(c, s, events, open);
    events.push_back({EventKind::kOperator, copy_operator(c, op_at(index_.maker[s]))});
  }

  std::uint32_t copy_operator(const Checkpoint& c, const Operator& op) {
    Operator copy = op;
    for (auto* list : {&copy.inputs, &copy.outputs}) {
      for (TensorRef& tensor : *list) rename(c, tensor);
    }
    return edit_.add_operator(std::move(copy));
  }

  static void rename(const Checkpoint& c, TensorRef& tensor) {
    const auto it = c.again.find(static_cast<std::uint32_t>(index(tensor.storage)));
    if (it != c.again.end()) tensor.storage = StorageId(it->second);
  }

  /// The backward reads what the second run made, and a tensor dies with the node that read it
  /// last.
  void read_again(const Checkpoint& c, const std::set<std::uint32_t>& open) {
    std::unordered_map<std::uint32_t, std::size_t> last;
    for (std::size_t i = 0; i < c.backward.size(); ++i) {
      const std::size_t e = c.backward[i];
      Operator& op = edit_.step().operators[step_.events[e].value];
      for (TensorRef& in : op.inputs) {
        const auto s = static_cast<std::uint32_t>(index(in.storage));
        if (open.count(s) == 0) continue;
        rename(c, in);
        last[s] = last_reader_of_node(c, i);
      }
    }
    for (const std::uint32_t s : open) {
      if (const auto it = last.find(s); it != last.end())
        edit_.insert_after(it->second, {EventKind::kFree, c.again.at(s)});
    }
  }

  /// Tensors that a node unpacked live to its end; what the engine does to its results afterwards
  /// (sums to a bias's shape) reads none.
  std::size_t last_reader_of_node(const Checkpoint& c, std::size_t i) const {
    const std::uint32_t link = op_at(c.backward[i]).link;
    std::size_t last = c.backward[i];
    for (std::size_t j = i + 1; link != 0 && j < c.backward.size(); ++j) {
      if (op_at(c.backward[j]).link != link) break;
      if (reads_saved(op_at(c.backward[j]))) last = c.backward[j];
    }
    return last;
  }

  /// The checkpoint holds what its forward read until its last node is done.
  void hold_inputs(const Checkpoint& c) {
    const auto hold = [&](const Operator& op) {
      for (const TensorRef& in : op.inputs) {
        const auto s = static_cast<std::uint32_t>(index(in.storage));
        if (!of_forward(s) || c.again.count(s) > 0 || made_in(c, s)) continue;
        held_until_[s] = std::max(held_until_[s], c.end);
      }
    };
    for (std::size_t e = c.run.begin; e < c.run.end; ++e) {
      if (is_operator(e)) hold(op_at(e));
    }
    for (const std::size_t e : c.backward) hold(op_at(e));
  }

  // -- what the first run made ------------------------------------------------------------------

  /// Moves the end of a storage of the forward to where its last holder lets it go.
  void end_first(std::uint32_t s) {
    const std::size_t freed = index_.freed[s];
    if (!transient(s) || freed == kNowhere || !of_forward(s)) return;
    const std::uint32_t c = run_of_[s];
    const bool dropped = freed > index_.backward &&
                         ((c != kNone && checkpoints_[c].trigger != kNowhere) || cast_anew_[s]);
    std::size_t last = dropped ? last_reader_elsewhere(s) : freed;
    last = std::max(last, held_until_[s]);
    if (last == freed) return;
    edit_.remove(freed);
    edit_.insert_after(last, {EventKind::kFree, s});
  }

  /// The last event that needs what the first run made, once its own backward does not any more.
  std::size_t last_reader_elsewhere(std::uint32_t s) {
    if (readers_.empty()) find_backward_readers();
    const std::size_t reader = readers_[s];
    return reader != kNowhere ? reader : lifetimes_.end_of(s);
  }

  void find_backward_readers() {
    readers_.assign(step_.storages.size(), kNowhere);
    for (std::size_t e = index_.backward; e < step_.events.size(); ++e) {
      if (!is_operator(e)) continue;
      const Operator& changed = edit_.step().operators[step_.events[e].value];
      for (const auto* list : {&changed.inputs, &changed.outputs}) {
        for (const TensorRef& tensor : *list) {
          if (index(tensor.storage) < readers_.size()) readers_[index(tensor.storage)] = e;
        }
      }
    }
  }

  const Step& step_;
  const EventIndex index_;
  const ForwardLifetimes lifetimes_;
  StepEdit edit_;
  std::vector<Checkpoint> checkpoints_;
  std::vector<std::uint32_t> run_of_;  ///< by storage: the checkpoint that made it
  std::unordered_map<std::uint32_t, std::uint32_t> run_of_link_;
  std::vector<bool> cast_anew_;          ///< by storage: a cast that a second run makes anew
  std::vector<std::size_t> held_until_;  ///< by storage: by checkpoints that read it; 0: by none
  std::vector<std::size_t> readers_;     ///< by storage: last operator of the backward
};

}  // namespace

Result<Step> with_checkpointing(const Step& step, const std::vector<std::string>& modules) {
  auto resolved = TRY(resolve_modules(step, modules));
  if (step.mode != "train" || resolved.empty()) return step;  // nothing is kept that could be saved
  Step result = Checkpointing(step, module_runs(step, resolved)).run();
  if (auto status = check_lifetimes(result, step.name); !status) {
    return fail(ErrorCode::kUnsupported,
                "checkpointing does not work on " + step.name +
                    ": its backward needs tensors in an order that was not foreseen (" +
                    status.error().message + "); leave out the module that they belong to");
  }
  return result;
}

}  // namespace stoker
