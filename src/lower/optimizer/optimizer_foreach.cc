#include <utility>

#include "lower/optimizer/optimizer_recipes.h"

// torch/optim/{sgd,adam,rmsprop,adagrad,adadelta,adamax,nadam,radam}.py, _multi_tensor_*, and
// timm/optim/lion.py. Each list operation out of place makes all its results before the name lets
// the old list go; a name assigned in the loop over dtypes keeps its list until the next one is
// made.
namespace stoker {
namespace {

/// `grads` of the next list, with weight decay added out of place or taken off the parameters.
void take_gradients(StepWriter& step, const OptimizerSettings& o, const ParameterList& list,
                    Held& grads) {
  step.release(grads);
  if (o.weight_decay == 0) return;
  if (o.decoupled) return step.run(list, {1, 1});
  grads = step.like(list);
  step.run(list, {2, 1});
}

/// Both running averages of Adam and its kin.
void update_moments(StepWriter& step, const ParameterList& list) {
  step.run(list, {2, 1});  // lerp_
  step.run(list, {1, 1});  // mul_
  step.run(list, {2, 1});  // addcmul_
}

void sgd_foreach(StepWriter& step, const OptimizerSettings& o, const ParameterList& group) {
  for (const ParameterList& list : by_dtype(group)) {
    Held grads;
    if (o.weight_decay != 0) {
      grads = step.like(list);
      step.run(list, {2, 1});  // grads + decay * params
    }
    if (o.momentum != 0) {
      for (const TrainedParameter& p : list) step.state(p, p.bytes);
      step.run(list, {1, 1});  // mul_
      step.run(list, {2, 1});  // add_
      if (o.nesterov) step.run(list, {2, 1});
      else step.release(grads);  // grads = bufs
    }
    step.run(list, {2, 1});  // params -= lr * grads
    step.release(grads);
  }
}

void adam_foreach(StepWriter& step, const OptimizerSettings& o, const ParameterList& group) {
  step.states(group, state_tensors(o));
  Held root;
  for (const ParameterList& list : by_dtype(group)) {
    Held grads;
    if (o.weight_decay != 0) {
      if (o.kind == OptimizerKind::kAdamW) {
        step.run(list, {1, 1});
      } else {
        grads = step.like(list);
        step.run(list, {2, 1});
      }
    }
    update_moments(step, list);
    step.release(grads);  // del
    if (o.amsgrad) step.run(list, {2, 1});
    step.assign(root, step.like(list));
    step.run(list, {1, 1});  // sqrt
    step.run(list, {1, 1});  // div_
    step.run(list, {1, 1});  // add_
    step.run(list, {3, 1});  // addcdiv_
  }
  step.release(root);
}

void rmsprop_foreach(StepWriter& step, const OptimizerSettings& o, const ParameterList& group) {
  step.states(group, state_tensors(o));
  Held average;
  for (const ParameterList& list : by_dtype(group)) {
    Held grads;
    take_gradients(step, o, list, grads);
    step.run(list, {1, 1});                  // mul_
    step.run(list, {2, 1});                  // addcmul_
    if (o.centered) step.run(list, {2, 1});  // lerp_
    step.assign(average, step.like(list));
    if (o.centered) step.run(list, {2, 1});  // addcmul
    step.run(list, {1, 1});                  // sqrt
    step.run(list, {1, 1});                  // add_
    if (o.momentum != 0) {
      step.run(list, {1, 1});  // mul_
      step.run(list, {3, 1});  // addcdiv_
      step.run(list, {2, 1});  // params -= lr * bufs
    } else {
      step.run(list, {3, 1});
    }
    step.release(grads);
  }
  step.release(average);
}

void adagrad_foreach(StepWriter& step, const OptimizerSettings& o, const ParameterList& group) {
  for (const TrainedParameter& p : group) step.constructed(p, p.bytes);
  Held root;
  Held numerator;
  for (const ParameterList& list : by_dtype(group)) {
    Held grads;
    take_gradients(step, o, list, grads);
    step.run(list, {2, 1});  // addcmul_
    step.assign(root, step.like(list));
    step.run(list, {1, 1});  // sqrt
    step.run(list, {1, 1});  // add_
    if (o.weight_decay == 0) grads = step.like(list);
    step.run(list, {1, 1});  // mul, into grads where they are a temporary already
    step.assign(numerator, std::move(grads));
    step.run(list, {3, 1});  // addcdiv_
  }
  step.release(numerator);
  step.release(root);
}

void adadelta_foreach(StepWriter& step, const OptimizerSettings& o, const ParameterList& group) {
  step.states(group, state_tensors(o));
  Held grads;
  Held deviation;
  Held deltas;
  for (const ParameterList& list : by_dtype(group)) {
    take_gradients(step, o, list, grads);
    step.run(list, {1, 1});  // mul_
    step.run(list, {2, 1});  // addcmul_
    for (Held* name : {&deviation, &deltas}) {
      step.assign(*name, step.like(list));
      step.run(list, {1, 1});  // add
      step.run(list, {1, 1});  // sqrt_
    }
    step.run(list, {2, 1});  // div_
    step.run(list, {2, 1});  // mul_
    step.run(list, {1, 1});  // mul_
    step.run(list, {2, 1});  // addcmul_
    step.run(list, {2, 1});  // params -= lr * deltas
  }
  for (Held* name : {&grads, &deviation, &deltas}) step.release(*name);
}

void adamax_foreach(StepWriter& step, const OptimizerSettings& o, const ParameterList& group) {
  step.states(group, state_tensors(o));
  Held grads;
  for (const ParameterList& list : by_dtype(group)) {
    take_gradients(step, o, list, grads);
    step.run(list, {2, 1});  // lerp_
    step.run(list, {1, 1});  // mul_
    if (o.weight_decay == 0) grads = step.like(list);
    step.run(list, {1, 1});  // abs, into grads where they are a temporary already
    step.run(list, {1, 1});  // add_
    step.run(list, {2, 1});  // maximum_
    step.run(list, {3, 1});  // addcdiv_
  }
  step.release(grads);
}

void nadam_foreach(StepWriter& step, const OptimizerSettings& o, const ParameterList& group) {
  step.states(group, state_tensors(o));
  Held grads;
  Held root;
  for (const ParameterList& list : by_dtype(group)) {
    take_gradients(step, o, list, grads);
    update_moments(step, list);
    step.assign(root, step.like(list));
    step.run(list, {1, 1});  // sqrt
    step.run(list, {1, 1});  // div_
    step.run(list, {1, 1});  // add_
    step.run(list, {3, 1});  // addcdiv_
    step.run(list, {3, 1});  // addcdiv_
  }
  step.release(root);
  step.release(grads);
}

void radam_foreach(StepWriter& step, const OptimizerSettings& o, const ParameterList& group) {
  step.states(group, state_tensors(o));
  Held root;
  for (const ParameterList& list : by_dtype(group)) {
    Held grads;
    take_gradients(step, o, list, grads);
    update_moments(step, list);
    step.release(grads);  // del
    step.assign(root, step.like(list));
    step.run(list, {1, 1});  // sqrt
    step.run(list, {1, 1});  // add_
    step.run(list, {1, 1});  // div_
    step.run(list, {1, 1});  // reciprocal_
    step.run(list, {1, 1});  // add_
    step.run(list, {3, 1});  // addcmul_
  }
  step.release(root);
}

void lion_foreach(StepWriter& step, const ParameterList& group) {
  step.states(group, 1);
  step.run(group, {1, 1});  // mul_, by 1 without decay
  Held updates = step.like(group);
  step.run(group, {2, 1});                                      // lerp
  for (const TrainedParameter& p : group) step.run(p, {1, 1});  // sign_
  step.run(group, {2, 1});                                      // add_
  step.run(group, {2, 1});                                      // lerp_
  step.release(updates);
}

}  // namespace

void step_foreach(StepWriter& step, const OptimizerSettings& o, const ParameterList& group) {
  switch (o.kind) {
    case OptimizerKind::kSgd:
      return sgd_foreach(step, o, group);
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamW:
      return adam_foreach(step, o, group);
    case OptimizerKind::kRmsprop:
      return rmsprop_foreach(step, o, group);
    case OptimizerKind::kAdagrad:
      return adagrad_foreach(step, o, group);
    case OptimizerKind::kAdadelta:
      return adadelta_foreach(step, o, group);
    case OptimizerKind::kAdamax:
      return adamax_foreach(step, o, group);
    case OptimizerKind::kNAdam:
      return nadam_foreach(step, o, group);
    case OptimizerKind::kRAdam:
      return radam_foreach(step, o, group);
    case OptimizerKind::kAdafactor:
      return adafactor_foreach(step, o, group);
    case OptimizerKind::kLion:
      return lion_foreach(step, group);
    case OptimizerKind::kLbfgs:
      return step_lbfgs(step, o, group);
    case OptimizerKind::kNone:
      return;
  }
}

}  // namespace stoker
