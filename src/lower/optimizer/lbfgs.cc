#include "lower/optimizer/optimizer_recipes.h"

// torch/optim/lbfgs.py, one pass of the loop in step(), which evaluates the loss once. All vectors
// are as long as the parameters together. The history is full, as it is after `history_size` passes
// (at PyTorch's defaults in the fifth or sixth step).
namespace stoker {
namespace {

/// Vectors that live through an evaluation of the loss, beside the history: the gradient, the one
/// before it, the direction, and `q`, from which the direction was made.
constexpr int kBesideHistory = 4;

/// `tensor > number`, `float(tensor)`, `add_(..., alpha=tensor)`: the host reads the number.
void read_product(StepWriter& step, const TrainedParameter& flat) {
  step.run(flat, {2, 0, "dot"});
  step.read_number();
}

/// One loop over the history: the product with one half of a pair, then the other half added.
void walk_history(StepWriter& step, const TrainedParameter& flat, int pairs) {
  for (int i = 0; i < pairs; ++i) {
    read_product(step, flat);
    step.run(flat, {2, 1, "add_"});
  }
}

}  // namespace

void step_lbfgs(StepWriter& step, const OptimizerSettings& o, const ParameterList& group) {
  if (group.empty()) return;
  TrainedParameter flat = group.front();
  flat.bytes = Bytes(0);
  for (const TrainedParameter& p : group) flat.bytes += p.bytes;
  for (int i = 0; i < 2 * o.history + kBesideHistory; ++i) step.state(flat, flat.bytes);
  step.run(flat, {1, 1, "cat"});
  Held magnitude = step.like(flat);
  step.run(flat, {1, 1, "abs"});
  step.run(flat, {1, 0, "max"});
  step.read_number();
  step.release(magnitude);
  Held pair = step.like(ParameterList{flat, flat});  // takes the place of the oldest
  step.run(flat, {2, 1, "sub"});
  step.run(flat, {1, 1, "mul"});
  read_product(step, flat);
  step.run(flat, {2, 0, "dot"});
  step.release(pair);
  step.run(flat, {1, 1, "neg"});
  walk_history(step, flat, o.history);
  step.run(flat, {1, 1, "mul"});
  walk_history(step, flat, o.history);
  step.run(flat, {1, 1, "copy_"});
  read_product(step, flat);  // of gradient and direction
  for (const TrainedParameter& p : group) step.run(p, {2, 1, "add_"});
}

}  // namespace stoker
