#include "rewrite/compile/compiled_step.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "rewrite/compile/kernel_fusion.h"
#include "rewrite/step_edit.h"
#include "rewrite/step_parts.h"
#include "rewrite/storage_of.h"
#include "rewrite/symbolic.h"

namespace stoker {
namespace {

/// One run of a graph without anything between: positions in the events.
struct GraphRun {
  std::size_t begin = 0, end = 0;
};

class Compiler {
 public:
  explicit Compiler(const Step& step) : step_(step), result_(step), at_(step) {
    renamed_.resize(step.storages.size());
    for (std::uint32_t s = 0; s < renamed_.size(); ++s) renamed_[s] = s;
  }

  Step run() {
    std::vector<Event> events;
    std::size_t done = 0;
    for (const GraphRun& graph : graph_runs()) {
      events.insert(events.end(), step_.events.begin() + static_cast<std::ptrdiff_t>(done),
                    step_.events.begin() + static_cast<std::ptrdiff_t>(graph.begin));
      compile(graph, events);
      done = graph.end;
    }
    events.insert(events.end(), step_.events.begin() + static_cast<std::ptrdiff_t>(done),
                  step_.events.end());
    rename(events);
    return std::move(result_);
  }

 private:
  [[nodiscard]] std::int32_t graph_of(const Event& event) const {
    if (event.kind != EventKind::kOperator) return 0;
    return step_.attributes_of(step_.operators[event.value]).graph;
  }

  [[nodiscard]] std::vector<GraphRun> graph_runs() const {
    std::vector<GraphRun> runs;
    for (std::size_t e = 0; e < step_.events.size(); ++e) {
      const std::int32_t graph = graph_of(step_.events[e]);
      if (graph == 0) continue;
      GraphRun run{begin_of_operator(step_, e), e + 1};
      for (std::size_t next = e + 1; next < step_.events.size(); ++next) {
        const Event& event = step_.events[next];
        if (event.kind == EventKind::kPhase || event.kind == EventKind::kSynchronize) break;
        if (event.kind == EventKind::kOperator && graph_of(event) != graph) break;
        if (event.kind == EventKind::kOperator) run.end = next + 1;
      }
      while (run.end < step_.events.size() && step_.events[run.end].kind == EventKind::kFree)
        ++run.end;
      e = run.end - 1;
      runs.push_back(run);
    }
    return runs;
  }

  /// What a run allocates, frees and leaves.
  struct Lives {
    std::vector<std::uint32_t> operators;
    std::vector<bool> made, freed;                  ///< by storage: within the run
    std::map<std::uint32_t, std::size_t> last_use;  ///< storage -> kernel
  };

  [[nodiscard]] Lives lives_of(const GraphRun& graph) const {
    Lives lives;
    lives.made.resize(step_.storages.size());
    lives.freed.resize(step_.storages.size());
    for (std::size_t e = graph.begin; e < graph.end; ++e) {
      const Event& event = step_.events[e];
      if (event.kind == EventKind::kOperator) lives.operators.push_back(event.value);
      if (event.kind == EventKind::kAllocate) lives.made[event.value] = true;
      if (event.kind == EventKind::kFree) lives.freed[event.value] = true;
    }
    return lives;
  }

  void compile(const GraphRun& graph, std::vector<Event>& events) {
    Lives lives = lives_of(graph);
    std::vector<bool> outlives(step_.storages.size());
    for (std::size_t s = 0; s < outlives.size(); ++s)
      outlives[s] = !(lives.made[s] && lives.freed[s]);
    const std::vector<FusedKernel> kernels = fused_kernels(step_, lives.operators, outlives);
    for (std::size_t k = 0; k < kernels.size(); ++k) {
      for (const auto* tensors : {&kernels[k].reads, &kernels[k].writes}) {
        for (const TensorRef& t : *tensors) lives.last_use[storage_of(t)] = k;
      }
    }
    free_unread(graph, lives, events);
    for (std::size_t k = 0; k < kernels.size(); ++k) emit(kernels[k], k, lives, events);
  }

  /// What the run was given and lets go of, though no kernel reads it.
  void free_unread(const GraphRun& graph, const Lives& lives, std::vector<Event>& events) const {
    for (std::size_t e = graph.begin; e < graph.end; ++e) {
      const Event& event = step_.events[e];
      if (event.kind == EventKind::kFree && !lives.made[event.value] &&
          !lives.last_use.contains(event.value))
        events.push_back(event);
    }
  }

  void emit(const FusedKernel& kernel, std::size_t k, const Lives& lives,
            std::vector<Event>& events) {
    std::vector<std::uint32_t> dying;
    for (const auto* tensors : {&kernel.reads, &kernel.writes}) {
      for (const TensorRef& t : *tensors) {
        const std::uint32_t s = storage_of(t);
        if (lives.freed[s] && lives.last_use.at(s) == k) dying.push_back(s);
      }
    }
    std::sort(dying.begin(), dying.end());
    dying.erase(std::unique(dying.begin(), dying.end()), dying.end());
    for (const TensorRef& out : kernel.writes) {
      const std::uint32_t s = storage_of(out);
      if (!lives.made[s] || take_over(kernel, s, lives, dying)) continue;
      allocate(s, events);
    }
    for (const std::uint32_t s : workspaces(kernel, lives)) {
      allocate(s, events);
      dying.push_back(s);
    }
    events.push_back({EventKind::kOperator, operator_of(kernel)});
    for (const std::uint32_t s : dying) events.push_back({EventKind::kFree, s});
  }

  /// Several outputs may lie in one storage.
  void allocate(std::uint32_t s, std::vector<Event>& events) {
    if (allocated_.size() < step_.storages.size()) allocated_.resize(step_.storages.size());
    if (allocated_[s]) return;
    allocated_[s] = true;
    events.push_back({EventKind::kAllocate, s});
  }

  /// What a library call allocates besides its outputs.
  [[nodiscard]] std::vector<std::uint32_t> workspaces(const FusedKernel& kernel,
                                                      const Lives& lives) const {
    std::vector<std::uint32_t> found;
    if (!kernel.library) return found;
    const std::uint32_t o = kernel.operators.front();
    for (std::uint32_t s = 0; s < step_.storages.size(); ++s) {
      if (!lives.made[s] || !lives.freed[s] || lives.last_use.contains(s)) continue;
      const std::size_t maker = at_.maker[s];
      if (maker != kNowhere && step_.events[maker].kind == EventKind::kOperator &&
          step_.events[maker].value == o)
        found.push_back(s);
    }
    return found;
  }

  /// A result lies over an operand of its size that nothing reads afterwards: codegen/wrapper.py,
  /// make_buffer_reuse, and inplace_buffers.
  bool take_over(const FusedKernel& kernel, std::uint32_t out, const Lives& lives,
                 std::vector<std::uint32_t>& dying) {
    if (kernel.library || kernel.across_rows) return false;
    for (const TensorRef& read : kernel.reads) {
      const std::uint32_t s = storage_of(read);
      const auto place = std::find(dying.begin(), dying.end(), s);
      if (s == out || place == dying.end() || !lives.made[s]) continue;
      if (!is_same(step_.storages[s].bytes, step_.storages[out].bytes)) continue;
      dying.erase(place);
      renamed_[s] = out;
      if (allocated_.size() < step_.storages.size()) allocated_.resize(step_.storages.size());
      allocated_[out] = true;
      return true;
    }
    return false;
  }

  std::uint32_t operator_of(const FusedKernel& kernel) {
    if (kernel.library) return kernel.operators.front();
    const Operator& last = step_.operators[kernel.operators.back()];
    Operator fused;
    fused.name = name_id(result_, kernel.across_rows ? "stoker::fused_reduction" : "stoker::fused");
    fused.module = last.module;
    fused.link = last.link;
    fused.inputs = kernel.reads;
    fused.outputs = kernel.writes;
    fused.attributes = static_cast<std::uint32_t>(result_.attributes.size());
    Attributes attributes;
    attributes.graph = step_.attributes_of(last).graph;
    result_.attributes.push_back(attributes);
    result_.operators.push_back(std::move(fused));
    return static_cast<std::uint32_t>(result_.operators.size() - 1);
  }

  [[nodiscard]] std::uint32_t final_name(std::uint32_t s) const {
    while (renamed_[s] != s) s = renamed_[s];
    return s;
  }

  void rename(std::vector<Event>& events) {
    for (Event& event : events) {
      if (event.kind == EventKind::kAllocate || event.kind == EventKind::kFree)
        event.value = final_name(event.value);
    }
    for (Operator& op : result_.operators) {
      for (auto* tensors : {&op.inputs, &op.outputs}) {
        for (TensorRef& t : *tensors) t.storage = StorageId(final_name(storage_of(t)));
      }
    }
    result_.events = std::move(events);
  }

  const Step& step_;
  Step result_;
  const EventIndex at_;
  std::vector<std::uint32_t> renamed_;  ///< by storage: whose memory it is, itself without another
  std::vector<bool> allocated_;
};

}  // namespace

Step compiled_step(const Step& step) { return Compiler(step).run(); }

}  // namespace stoker
