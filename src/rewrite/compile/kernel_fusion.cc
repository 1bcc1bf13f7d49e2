#include "rewrite/compile/kernel_fusion.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

#include "operators/family.h"
#include "rewrite/symbolic.h"

namespace stoker {
namespace {

/// torch/_inductor/config.py, realize_reads_threshold and realize_acc_reads_threshold.
constexpr std::size_t kSharedReads = 4, kMostReads = 8;
constexpr std::uint32_t kNone = 0xffffffff;

enum class Kind : std::uint8_t { kLibrary, kElements, kAlongRows, kAcrossRows };

/// An operator whose result is in memory, with what is computed on the way to it.
struct Node {
  Kind kind = Kind::kElements;
  std::vector<std::uint32_t> operators;
  std::vector<TensorRef> reads, writes;
  std::size_t extent = 0;  ///< number of elements, as an index into the extents
  std::size_t sums = 0;    ///< of a reduction's result
};

struct Group {
  Kind kind = Kind::kElements;
  std::vector<std::size_t> nodes;
  std::size_t extent = 0, sums = 0;
  std::size_t at = 0;         ///< the node in whose place it runs
  bool read_outside = false;  ///< of what it makes, by another
};

std::uint32_t id(const TensorRef& tensor) {
  return static_cast<std::uint32_t>(index(tensor.storage));
}

class Fusion {
 public:
  Fusion(const Step& step, const std::vector<std::uint32_t>& operators,
         const std::vector<bool>& outlives)
      : step_(step), operators_(operators), outlives_(outlives) {}

  std::vector<FusedKernel> run() {
    for (const std::uint32_t o : operators_) look_at(o);
    for (const std::uint32_t o : operators_) realize(o);
    for (std::size_t n = 0; n < nodes_.size(); ++n) place(n);
    return kernels();
  }

 private:
  struct Lazy {
    std::vector<TensorRef> reads;
    std::vector<std::uint32_t> operators;
  };

  [[nodiscard]] const TensorType& type(const TensorRef& tensor) const {
    return step_.types[index(tensor.type)];
  }

  [[nodiscard]] Kind kind_of(const Operator& op) const {
    const OperatorFamily& family = step_.family_of(op);
    switch (family.kernel_class) {
      case KernelClass::kElementwise:
        return family.rule == WorkRule::kPlain ? Kind::kElements : Kind::kLibrary;
      case KernelClass::kCopy:
      case KernelClass::kFill:
      case KernelClass::kPooling:
        return Kind::kElements;
      case KernelClass::kReduction:
        if (family.rule != WorkRule::kPlain || op.inputs.empty()) return Kind::kLibrary;
        return along_rows(op) ? Kind::kAlongRows : Kind::kAcrossRows;
      default:
        return Kind::kLibrary;
    }
  }

  /// Over the last dimensions, and not over all of them.
  [[nodiscard]] bool along_rows(const Operator& op) const {
    const auto rank = static_cast<std::int32_t>(type(op.inputs[0]).shape.size());
    std::vector<std::int32_t> dims = step_.attributes_of(op).dim;
    for (std::int32_t& d : dims) d += d < 0 ? rank : 0;
    std::sort(dims.begin(), dims.end());
    const auto count = static_cast<std::int32_t>(dims.size());
    if (count == 0 || count >= rank) return false;
    for (std::int32_t i = 0; i < count; ++i) {
      if (dims[static_cast<std::size_t>(i)] != rank - count + i) return false;
    }
    return true;
  }

  [[nodiscard]] std::size_t extent_of(const TensorRef& tensor) {
    const auto known = extent_of_type_.find(index(tensor.type));
    if (known != extent_of_type_.end()) return known->second;
    Polynomial elements(1);
    for (const Polynomial& size : type(tensor).shape) elements = elements * size;
    const auto same = std::find_if(extents_.begin(), extents_.end(),
                                   [&](const Polynomial& p) { return is_same(p, elements); });
    const auto number = static_cast<std::size_t>(same - extents_.begin());
    if (same == extents_.end()) extents_.push_back(elements);
    extent_of_type_[index(tensor.type)] = number;
    return number;
  }

  void look_at(std::uint32_t o) {
    const Operator& op = step_.operators[o];
    const bool library = kind_of(op) == Kind::kLibrary;
    for (const TensorRef& in : op.inputs) {
      ++readers_[id(in)];
      if (library) read_by_library_[id(in)] = true;
    }
    for (const TensorRef& out : op.outputs) ++writers_[id(out)];
  }

  // -- what is in memory -----------------------------------------------------------------------

  /// Strided views of one storage are different parts of it; the others are all of it.
  void add_read(std::vector<TensorRef>& reads, const TensorRef& tensor) {
    const bool part = type(tensor).layout == Layout::kStrided;
    const bool known = std::any_of(reads.begin(), reads.end(), [&](const TensorRef& r) {
      if (r.storage != tensor.storage) return false;
      return part ? r.type == tensor.type : type(r).layout != Layout::kStrided;
    });
    if (!known) reads.push_back(tensor);
  }

  [[nodiscard]] bool stays_lazy(const Operator& op, const Node& node) {
    if (node.kind != Kind::kElements || op.outputs.size() != 1) return false;
    const std::uint32_t out = id(op.outputs[0]);
    if (outlives_[out] || read_by_library_[out] || writers_[out] != 1 || readers_[out] == 0)
      return false;
    if (node.reads.size() > kMostReads) return false;
    return readers_[out] == 1 || node.reads.size() <= kSharedReads;
  }

  void realize(std::uint32_t o) {
    const Operator& op = step_.operators[o];
    Node node;
    node.kind = kind_of(op);
    node.writes = op.outputs;
    if (op.outputs.empty()) node.kind = Kind::kLibrary;
    for (const TensorRef& in : op.inputs) {
      const auto lazy = lazy_.find(id(in));
      if (lazy == lazy_.end()) {
        add_read(node.reads, in);
        continue;
      }
      for (const TensorRef& read : lazy->second.reads) add_read(node.reads, read);
      for (const std::uint32_t other : lazy->second.operators) {
        if (std::find(node.operators.begin(), node.operators.end(), other) == node.operators.end())
          node.operators.push_back(other);
      }
    }
    node.operators.push_back(o);
    if (stays_lazy(op, node)) {
      lazy_[id(op.outputs[0])] = {std::move(node.reads), std::move(node.operators)};
      return;
    }
    if (node.kind != Kind::kLibrary) {
      const bool reduces = node.kind != Kind::kElements;
      node.extent = extent_of(reduces ? op.inputs[0] : op.outputs[0]);
      node.sums = reduces ? extent_of(op.outputs[0]) : node.extent;
    }
    nodes_.push_back(std::move(node));
  }

  // -- which kernels are one -------------------------------------------------------------------

  [[nodiscard]] static bool agree(const Node& node, const Group& group) {
    const bool same = node.extent == group.extent;
    switch (group.kind) {
      case Kind::kLibrary:
        return false;
      case Kind::kElements:
        return same && (node.kind == Kind::kElements || node.kind == Kind::kAlongRows);
      case Kind::kAlongRows:
        if (node.kind == Kind::kAlongRows) return same && node.sums == group.sums;
        return node.kind == Kind::kElements && (same || node.extent == group.sums);
      case Kind::kAcrossRows:
        if (node.kind == Kind::kAcrossRows) return same && node.sums == group.sums;
        return node.kind == Kind::kElements && node.extent == group.sums;
    }
    return false;
  }

  /// All that the node reads is there where the group runs.
  [[nodiscard]] bool may_run_with(const Node& node, std::size_t g) const {
    return std::all_of(node.reads.begin(), node.reads.end(), [&](const TensorRef& read) {
      const auto maker = made_by_.find(id(read));
      return maker == made_by_.end() || maker->second == g ||
             groups_[maker->second].at < groups_[g].at;
    });
  }

  [[nodiscard]] std::optional<std::size_t> group_for(const Node& node) const {
    std::vector<std::size_t> candidates;
    const auto consider = [&](const std::map<std::uint32_t, std::size_t>& by, std::uint32_t s) {
      const auto found = by.find(s);
      if (found != by.end()) candidates.push_back(found->second);
    };
    for (const TensorRef& read : node.reads) consider(made_by_, id(read));
    for (const TensorRef& read : node.reads) consider(read_by_, id(read));
    for (const std::size_t g : candidates) {
      if (agree(node, groups_[g]) && may_run_with(node, g)) return g;
    }
    for (const std::size_t g : candidates) {
      if (agree(node, groups_[g]) && !groups_[g].read_outside) return g;
    }
    return std::nullopt;
  }

  void place(std::size_t n) {
    const Node& node = nodes_[n];
    std::size_t g = groups_.size();
    if (node.kind != Kind::kLibrary) {
      if (const auto found = group_for(node)) g = *found;
    }
    if (g == groups_.size()) {
      groups_.push_back({node.kind, {n}, node.extent, node.sums, n, false});
    } else {
      Group& group = groups_[g];
      if (!may_run_with(node, g)) group.at = n;
      group.nodes.push_back(n);
      if (group.kind == Kind::kElements && node.kind == Kind::kAlongRows) {
        group.kind = node.kind;
        group.sums = node.sums;
      }
    }
    for (const TensorRef& read : node.reads) {
      const auto maker = made_by_.find(id(read));
      if (maker != made_by_.end() && maker->second != g) groups_[maker->second].read_outside = true;
      if (node.kind != Kind::kLibrary) read_by_[id(read)] = g;
    }
    for (const TensorRef& out : node.writes) made_by_[id(out)] = g;
  }

  // -- the answer ------------------------------------------------------------------------------

  [[nodiscard]] bool is_needed(const TensorRef& out, std::size_t g) const {
    if (outlives_[id(out)]) return true;
    const auto users = used_in_.find(id(out));
    if (users == used_in_.end()) return nodes_[groups_[g].nodes[0]].kind == Kind::kLibrary;
    return std::any_of(users->second.begin(), users->second.end(),
                       [&](std::size_t user) { return user != g; });
  }

  std::vector<FusedKernel> kernels() {
    std::vector<std::size_t> order(groups_.size());
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      order[g] = g;
      for (const std::size_t n : groups_[g].nodes) {
        for (const TensorRef& read : nodes_[n].reads) used_in_[id(read)].push_back(g);
      }
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return groups_[a].at < groups_[b].at; });
    std::vector<FusedKernel> result;
    for (const std::size_t g : order) result.push_back(kernel_of(g));
    return result;
  }

  FusedKernel kernel_of(std::size_t g) {
    FusedKernel kernel;
    const Group& group = groups_[g];
    kernel.library = group.kind == Kind::kLibrary;
    kernel.across_rows = group.kind == Kind::kAcrossRows;
    for (const std::size_t n : group.nodes) {
      const Node& node = nodes_[n];
      kernel.operators.insert(kernel.operators.end(), node.operators.begin(), node.operators.end());
      for (const TensorRef& read : node.reads) {
        const auto maker = made_by_.find(id(read));
        if (maker == made_by_.end() || maker->second != g || kernel.library)
          add_read(kernel.reads, read);
      }
      for (const TensorRef& out : node.writes) {
        if (is_needed(out, g)) kernel.writes.push_back(out);
      }
    }
    return kernel;
  }

  const Step& step_;
  const std::vector<std::uint32_t>& operators_;
  const std::vector<bool>& outlives_;
  std::unordered_map<std::uint32_t, int> readers_, writers_;  ///< by storage: operators
  std::unordered_map<std::uint32_t, bool> read_by_library_;   ///< by storage
  std::unordered_map<std::uint32_t, Lazy> lazy_;              ///< by storage: not in memory
  std::unordered_map<std::size_t, std::size_t> extent_of_type_;
  std::vector<Polynomial> extents_;
  std::vector<Node> nodes_;
  std::vector<Group> groups_;
  std::map<std::uint32_t, std::size_t> made_by_;  ///< storage -> group
  std::map<std::uint32_t, std::size_t> read_by_;  ///< storage -> the last group that reads it
  std::unordered_map<std::uint32_t, std::vector<std::size_t>> used_in_;  ///< storage -> groups
};

}  // namespace

std::vector<FusedKernel> fused_kernels(const Step& step,
                                       const std::vector<std::uint32_t>& operators,
                                       const std::vector<bool>& outlives) {
  return Fusion(step, operators, outlives).run();
}

}  // namespace stoker
