#include "rewrite/fused_loss.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rewrite/step_edit.h"
#include "rewrite/step_parts.h"
#include "rewrite/storage_of.h"
#include "rewrite/symbolic.h"

namespace stoker {
namespace {

constexpr std::uint32_t kNoOperator = 0xffffffff;

/// One cross entropy as PyTorch dispatches it, by index of operators and storages.
struct CrossEntropy {
  std::uint32_t softmax = kNoOperator, pick = kNoOperator;                    ///< forward
  std::uint32_t pick_backward = kNoOperator, softmax_backward = kNoOperator;  ///< backward
  /// Label smoothing: the sum of a row's logarithms, and the sum of the two gradients of them.
  std::uint32_t smoothing = kNoOperator, smoothing_backward = kNoOperator;
  std::vector<std::uint32_t> copies;           ///< of the scores, before the softmax
  std::vector<std::uint32_t> gradient_copies;  ///< of the gradient, after its backward
  TensorRef scores{}, gradient{};              ///< at the far ends of the copies
};

class LossFusion {
 public:
  explicit LossFusion(const Step& step) : step_(step), at_(step), edit_(step) {
    readers_.resize(step.storages.size());
    maker_.assign(step.storages.size(), kNoOperator);
    position_.assign(step.operators.size(), kNowhere);
    for (std::size_t e = 0; e < step.events.size(); ++e) {
      if (step.events[e].kind != EventKind::kOperator) continue;
      const std::uint32_t o = step.events[e].value;
      position_[o] = e;
      for (const TensorRef& in : step.operators[o].inputs) read(storage_of(in), o);
      for (const TensorRef& out : step.operators[o].outputs) {
        if (maker_[storage_of(out)] == kNoOperator) maker_[storage_of(out)] = o;
      }
    }
  }

  int run() {
    int fused = 0;
    for (std::uint32_t o = 0; o < step_.operators.size(); ++o) {
      if (position_[o] == kNowhere || position_[o] > at_.backward) continue;
      if (const auto found = cross_entropy_at(o)) {
        fuse(*found);
        ++fused;
      }
    }
    return fused;
  }

  Step finish() {
    Step changed = edit_.finish();
    for (Operator& op : changed.operators) {
      for (auto* list : {&op.inputs, &op.outputs}) {
        for (TensorRef& tensor : *list) {
          for (const auto& [from, to] : moved_) {
            if (storage_of(tensor) == from) tensor.storage = StorageId(to);
          }
        }
      }
    }
    return changed;
  }

 private:
  void read(std::uint32_t storage, std::uint32_t o) {
    std::vector<std::uint32_t>& list = readers_[storage];
    if (list.empty() || list.back() != o) list.push_back(o);
  }

  [[nodiscard]] std::string_view name(std::uint32_t o) const {
    return step_.operator_name(step_.operators[o]);
  }
  [[nodiscard]] std::uint32_t reader_named(std::uint32_t storage, std::string_view wanted) const {
    for (const std::uint32_t o : readers_[storage]) {
      if (name(o) == wanted) return o;
    }
    return kNoOperator;
  }
  /// Whatever the overload: "aten::sum" and "aten::sum.dim_IntList".
  [[nodiscard]] bool is_called(std::uint32_t o, std::string_view wanted) const {
    return name(o).substr(0, name(o).find('.')) == wanted;
  }
  [[nodiscard]] bool is_transient(std::uint32_t storage) const {
    return step_.storages[storage].kind == StorageKind::kTransient;
  }
  [[nodiscard]] const TensorType& type(const TensorRef& tensor) const {
    return step_.types[index(tensor.type)];
  }

  /// A copy of one tensor into a new one: a cast, a slice made contiguous, its backward.
  [[nodiscard]] bool is_copy(std::uint32_t o) const {
    const Operator& op = step_.operators[o];
    return step_.family_of(op).kernel_class == KernelClass::kCopy && op.inputs.size() == 1 &&
           op.outputs.size() == 1 && is_transient(storage_of(op.outputs[0]));
  }

  // -- finding ---------------------------------------------------------------------------------

  [[nodiscard]] std::optional<CrossEntropy> cross_entropy_at(std::uint32_t o) const {
    if (name(o) != "aten::_log_softmax") return std::nullopt;
    CrossEntropy loss;
    loss.softmax = o;
    const Operator& softmax = step_.operators[o];
    const std::uint32_t logarithms = storage_of(softmax.outputs[0]);
    for (const std::string_view kind : {"aten::nll_loss", "aten::nll_loss2d"}) {
      const std::uint32_t pick = reader_named(logarithms, std::string(kind) + "_forward");
      if (pick == kNoOperator) continue;
      loss.pick = pick;
      loss.pick_backward = reader_named(logarithms, std::string(kind) + "_backward");
    }
    loss.softmax_backward = reader_named(logarithms, "aten::_log_softmax_backward_data");
    if (loss.pick == kNoOperator || loss.pick_backward == kNoOperator ||
        loss.softmax_backward == kNoOperator)
      return std::nullopt;
    find_smoothing(loss, logarithms);
    // Probabilities as targets, and logarithms that somebody reads, use them beyond these.
    const std::size_t readers = loss.smoothing_backward == kNoOperator ? 3 : 4;
    if (readers_[logarithms].size() != readers || !is_transient(logarithms)) return std::nullopt;
    loss.scores = softmax.inputs[0];
    loss.gradient = step_.operators[loss.softmax_backward].outputs[0];
    if (!is_transient(storage_of(loss.gradient))) return std::nullopt;
    follow_scores(loss);
    follow_gradient(loss);
    return loss;
  }

  /// PyTorch's label smoothing (cross_entropy_loss_label_smoothing in LossNLL.cpp) subtracts the
  /// sum of each row's logarithms, whose gradient is added to that of the picked ones.
  void find_smoothing(CrossEntropy& loss, std::uint32_t logarithms) const {
    const auto& readers = readers_[logarithms];
    const auto sum = std::find_if(readers.begin(), readers.end(),
                                  [&](std::uint32_t o) { return is_called(o, "aten::sum"); });
    const std::uint32_t picked = storage_of(step_.operators[loss.pick_backward].outputs[0]);
    const std::uint32_t both = maker_[storage_of(step_.operators[loss.softmax_backward].inputs[0])];
    if (sum == readers.end() || both == kNoOperator || !is_called(both, "aten::add")) return;
    const auto& added = step_.operators[both].inputs;
    const bool adds_picked = std::any_of(
        added.begin(), added.end(), [&](const TensorRef& in) { return storage_of(in) == picked; });
    if (!adds_picked || readers_[picked].size() != 1) return;
    loss.smoothing = *sum;
    loss.smoothing_backward = both;
  }

  void follow_scores(CrossEntropy& loss) const {
    while (true) {
      const std::uint32_t storage = storage_of(loss.scores);
      const std::uint32_t maker = maker_[storage];
      if (maker == kNoOperator || !is_copy(maker) || readers_[storage].size() != 1) return;
      loss.copies.push_back(maker);
      loss.scores = step_.operators[maker].inputs[0];
    }
  }

  void follow_gradient(CrossEntropy& loss) const {
    while (!same_kind(loss)) {
      const std::vector<std::uint32_t>& readers = readers_[storage_of(loss.gradient)];
      if (readers.size() != 1 || !is_copy(readers[0])) return;
      loss.gradient_copies.push_back(readers[0]);
      loss.gradient = step_.operators[readers[0]].outputs[0];
    }
  }

  /// The gradient has the precision and the bytes of the scores, so it fits over them.
  [[nodiscard]] bool same_kind(const CrossEntropy& loss) const {
    return type(loss.scores).dtype == type(loss.gradient).dtype &&
           is_same(step_.storages[storage_of(loss.scores)].bytes,
                   step_.storages[storage_of(loss.gradient)].bytes);
  }

  /// Nobody reads the scores after their gradient lies there.
  [[nodiscard]] bool in_place(const CrossEntropy& loss) const {
    const std::uint32_t scores = storage_of(loss.scores);
    const StorageKind kind = step_.storages[scores].kind;
    if (!same_kind(loss) || (kind != StorageKind::kTransient && kind != StorageKind::kOutput))
      return false;
    const std::size_t over = position_[loss.softmax_backward];
    return std::none_of(readers_[scores].begin(), readers_[scores].end(),
                        [&](std::uint32_t o) { return position_[o] > over; });
  }

  // -- changing --------------------------------------------------------------------------------

  void drop_storage(std::uint32_t storage) {
    if (at_.allocated[storage] != kNowhere) edit_.remove(at_.allocated[storage]);
    if (at_.freed[storage] != kNowhere) edit_.remove(at_.freed[storage]);
  }

  void drop_operator(std::uint32_t o, std::uint32_t keep) {
    edit_.remove(position_[o]);
    for (const TensorRef& out : step_.operators[o].outputs) {
      if (storage_of(out) != keep) drop_storage(storage_of(out));
    }
  }

  void fuse(const CrossEntropy& loss) {
    const std::uint32_t gradient = storage_of(loss.gradient);
    for (const std::uint32_t o : loss.copies) drop_operator(o, kNoOperator);
    for (const std::uint32_t o : loss.gradient_copies) drop_operator(o, gradient);
    drop_operator(loss.softmax, kNoOperator);
    drop_operator(loss.pick_backward, kNoOperator);
    if (loss.smoothing_backward != kNoOperator) {
      edit_.remove(position_[loss.smoothing]);  // its result, one number a row, is the kernel's too
      drop_operator(loss.smoothing_backward, kNoOperator);
    }
    for (const TensorRef& out : step_.operators[loss.softmax_backward].outputs) {
      if (storage_of(out) != gradient) drop_storage(storage_of(out));
    }
    const bool over_scores = in_place(loss);
    if (over_scores) {
      gradient_over_scores(loss);
    } else {
      gradient_beside_scores(loss);
    }
    call(loss, over_scores ? loss.scores : loss.gradient);
  }

  void gradient_over_scores(const CrossEntropy& loss) {
    const std::uint32_t scores = storage_of(loss.scores), gradient = storage_of(loss.gradient);
    const std::size_t scores_end = at_.freed[scores], gradient_end = at_.freed[gradient];
    drop_storage(gradient);
    moved_.emplace_back(gradient, scores);
    if (scores_end == kNowhere || gradient_end == kNowhere || scores_end > gradient_end) return;
    edit_.remove(scores_end);
    edit_.insert_after(gradient_end, {EventKind::kFree, scores});
  }

  void gradient_beside_scores(const CrossEntropy& loss) {
    const std::uint32_t scores = storage_of(loss.scores), gradient = storage_of(loss.gradient);
    const std::size_t made = position_[loss.softmax_backward];
    edit_.remove(at_.allocated[gradient]);
    edit_.insert_before(made, {EventKind::kAllocate, gradient});
    if (at_.freed[scores] == kNowhere || at_.freed[scores] > made) return;
    edit_.remove(at_.freed[scores]);
    edit_.insert_after(made, {EventKind::kFree, scores});
  }

  /// The class indices: whole numbers, one a row.
  [[nodiscard]] const TensorRef* classes(const CrossEntropy& loss) const {
    for (const TensorRef& in : step_.operators[loss.pick].inputs) {
      if (type(in).dtype == DType::kI64 || type(in).dtype == DType::kI32) return &in;
    }
    return nullptr;
  }

  void call(const CrossEntropy& loss, const TensorRef& gradient) {
    Step& step = edit_.step();
    std::vector<TensorRef> inputs{loss.scores};
    TensorType rows{DType::kF32, {Polynomial(1)}, Layout::kRowMajor, {}};
    if (const TensorRef* chosen = classes(loss)) {
      inputs.push_back(*chosen);
      rows.shape = type(*chosen).shape;
    }
    const Polynomial bytes = bytes_of(rows);
    const TensorRef numbers{add_type(step, rows),
                            StorageId(edit_.add_storage({bytes, StorageKind::kTransient}))};
    edit_.insert_before(position_[loss.pick], {EventKind::kAllocate, storage_of(numbers)});
    edit_.insert_after(position_[loss.softmax_backward], {EventKind::kFree, storage_of(numbers)});
    Operator& forward = step.operators[loss.pick];
    forward.link = step_.operators[loss.softmax].link;
    forward.name = name_id(step, "stoker::cross_entropy");
    forward.inputs = inputs;
    forward.outputs.push_back(numbers);
    Operator& backward = step.operators[loss.softmax_backward];
    backward.name = name_id(step, "stoker::cross_entropy_backward");
    backward.inputs = {loss.scores, numbers};
    backward.outputs = {{loss.scores.type, gradient.storage}};
    if (gradient.storage != loss.scores.storage) backward.outputs = {gradient};
  }

  const Step& step_;
  const EventIndex at_;
  StepEdit edit_;
  std::vector<std::vector<std::uint32_t>> readers_;  ///< by storage: operators, in order
  std::vector<std::uint32_t> maker_;                 ///< by storage: the first that writes it
  std::vector<std::size_t> position_;                ///< by operator: its event
  std::vector<std::pair<std::uint32_t, std::uint32_t>> moved_;  ///< storages that are others' now
};

}  // namespace

Result<Step> with_fused_loss(const Step& step) {
  LossFusion fusion(step);
  if (step.mode != "train" || fusion.run() == 0) {
    return fail(ErrorCode::kBadInput,
                step.name +
                    " computes no cross entropy over class indices whose gradient could "
                    "lie over the scores (probabilities as targets, and class weights beside label "
                    "smoothing, count as none); leave the loss as captured");
  }
  return fusion.finish();
}

}  // namespace stoker
