#include "lower/common/gradient_sums.h"

#include <algorithm>
#include <numeric>

namespace stoker {
namespace {

bool same_size(const Storage& a, const Storage& b) {
  const auto x = a.bytes.terms(), y = b.bytes.terms();
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const auto& p, const auto& q) {
    return p.coefficient == q.coefficient && p.exponents == q.exponents;
  });
}

/// Whether the storage is freed after event `e` and before the next operator: nothing but the
/// engine held it.
bool freed_at_once(const Step& step, std::size_t e, std::size_t storage) {
  for (++e; e < step.events.size() && step.events[e].kind != EventKind::kOperator; ++e) {
    if (step.events[e].kind == EventKind::kFree && step.events[e].value == storage) return true;
  }
  return false;
}

/// The engine's sums have no node: link 0.
bool is_sum(const Step& step, const Operator& op) {
  return op.link == 0 && op.inputs.size() == 2 && op.outputs.size() == 1 &&
         step.operator_name(op) == "aten::add.Tensor";
}

constexpr TypeId kUnwritten{0xffffffff};

/// Which gradients are views: what they are views of holds the storage too.
class Views {
 public:
  explicit Views(const Step& step)
      : step_(step), written_as_(step.storages.size(), kUnwritten), turned_(step.storages.size()) {}

  void write(const Operator& op) {
    const bool turned = is_gradient_of_weight(op);
    for (const TensorRef& out : op.outputs) {
      written_as_[index(out.storage)] = out.type;
      turned_[index(out.storage)] = turned;
    }
  }

  [[nodiscard]] bool is_view(const TensorRef& tensor) const {
    return turned_[index(tensor.storage)] || written_as_[index(tensor.storage)] != tensor.type;
  }

 private:
  /// A linear layer's weight is transposed twice on its way into the backward, and so is the
  /// gradient on its way out (torch/csrc/autograd/FunctionsManual.cpp, mm_mat2_backward): its type
  /// is as if it had never been.
  [[nodiscard]] bool is_gradient_of_weight(const Operator& op) const {
    return !op.inputs.empty() && step_.operator_name(op) == "aten::mm" &&
           step_.types[index(op.inputs[0].type)].layout == Layout::kPermuted &&
           written_as_[index(op.inputs[0].storage)] != kUnwritten;
  }

  const Step& step_;
  std::vector<TypeId> written_as_;  ///< by storage, in the backward
  std::vector<bool> turned_;        ///< by storage
};

}  // namespace

/// torch/csrc/autograd/input_buffer.cpp, can_accumulate_inplace: the first is dense, and nothing
/// else holds it. A capture sees the sum out of place, since its tensors are a subclass.
GradientSums find_gradient_sums(const Step& step) {
  GradientSums sums{std::vector<bool>(step.storages.size()),
                    std::vector<std::uint32_t>(step.storages.size())};
  std::vector<std::uint32_t>& lies_in = sums.lies_in;
  std::iota(lies_in.begin(), lies_in.end(), 0U);
  Views views(step);
  bool backward = false;
  for (std::size_t e = 0; e < step.events.size(); ++e) {
    const Event& event = step.events[e];
    if (event.kind == EventKind::kPhase) backward = Phase(event.value) == Phase::kBackward;
    if (!backward || event.kind != EventKind::kOperator) continue;
    const Operator& op = step.operators[event.value];
    views.write(op);
    if (!is_sum(step, op)) continue;
    const std::size_t first = index(op.inputs[0].storage), sum = index(op.outputs[0].storage);
    if (first == sum || first == index(op.inputs[1].storage)) continue;
    if (views.is_view(op.inputs[0]) || !freed_at_once(step, e, first)) continue;
    const StorageKind kind = step.storages[sum].kind;
    if (kind != StorageKind::kTransient && kind != StorageKind::kGradient) continue;
    // A part of a tensor is not dense, nor is one that is expanded.
    if (!same_size(step.storages[first], step.storages[sum])) continue;
    sums.in_place[sum] = true;
    lies_in[first] = static_cast<std::uint32_t>(sum);
  }
  for (std::uint32_t& storage : lies_in) {
    while (lies_in[storage] != storage) storage = lies_in[storage];
  }
  return sums;
}

}  // namespace stoker
