#include <utility>

#include "lower/optimizer/optimizer_recipes.h"

// torch/optim/{sgd,adam,rmsprop,adagrad,adadelta,adamax,nadam,radam}.py, _single_tensor_*, and
// lion-pytorch. A name keeps the last parameter's tensor until it is assigned for the next one.
namespace stoker {
namespace {

/// `grad = grads[i]`, then weight decay added out of place, or taken off the parameter.
void take_gradient(StepWriter& step, const OptimizerSettings& o, const TrainedParameter& p,
                   Held& grad) {
  step.release(grad);
  if (o.weight_decay == 0) return;
  if (o.decoupled) return step.run(p, {1, 1, "mul_"});
  step.assign(grad, step.like(p));
  step.run(p, {2, 1, "add"});
}

/// Both running averages of Adam and its kin.
void update_moments(StepWriter& step, const TrainedParameter& p) {
  step.run(p, {2, 1, "lerp_"});
  step.run(p, {1, 1, "mul_"});
  step.run(p, {2, 1, "addcmul_"});
}

void sgd(StepWriter& step, const OptimizerSettings& o, const ParameterList& group) {
  Held grad;
  for (const TrainedParameter& p : group) {
    take_gradient(step, o, p, grad);
    if (o.momentum != 0) {
      step.state(p, p.bytes);
      step.run(p, {1, 1, "mul_"});
      step.run(p, {2, 1, "add_"});
      if (o.nesterov) {
        step.assign(grad, step.like(p));
        step.run(p, {2, 1, "add"});
      } else {
        step.release(grad);  // grad = buf
      }
    }
    step.run(p, {2, 1, "add_"});
  }
  step.release(grad);
}

void adam(StepWriter& step, const OptimizerSettings& o, const ParameterList& group) {
  step.states(group, state_tensors(o));
  Held grad;
  Held denominator;
  for (const TrainedParameter& p : group) {
    if (o.kind == OptimizerKind::kAdam) take_gradient(step, o, p, grad);
    else if (o.weight_decay != 0) step.run(p, {1, 1, "mul_"});
    update_moments(step, p);
    if (o.amsgrad) step.run(p, {2, 1, "maximum"});
    Held root = step.like(p);
    step.run(p, {1, 1, "sqrt"});
    Held quotient = step.like(p);
    step.run(p, {1, 1, "div"});
    step.release(root);
    step.run(p, {1, 1, "add_"});
    step.assign(denominator, std::move(quotient));
    step.run(p, {3, 1, "addcdiv_"});
  }
  step.release(denominator);
  step.release(grad);
}

void rmsprop(StepWriter& step, const OptimizerSettings& o, const ParameterList& group) {
  step.states(group, state_tensors(o));
  Held grad;
  Held average;
  for (const TrainedParameter& p : group) {
    take_gradient(step, o, p, grad);
    step.run(p, {1, 1, "mul_"});
    step.run(p, {2, 1, "addcmul_"});
    if (o.centered) step.run(p, {2, 1, "lerp_"});
    step.assign(average, step.like(p));
    if (o.centered) step.run(p, {2, 1, "addcmul"});
    step.run(p, {1, 1, "sqrt"});
    step.run(p, {1, 1, "add_"});
    if (o.momentum != 0) {
      step.run(p, {1, 1, "mul_"});
      step.run(p, {3, 1, "addcdiv_"});
      step.run(p, {2, 1, "sub_"});
    } else {
      step.run(p, {3, 1, "addcdiv_"});
    }
  }
  step.release(average);
  step.release(grad);
}

void adagrad(StepWriter& step, const OptimizerSettings& o, const ParameterList& group) {
  for (const TrainedParameter& p : group) step.constructed(p, p.bytes);
  Held grad;
  Held root;
  for (const TrainedParameter& p : group) {
    take_gradient(step, o, p, grad);
    step.run(p, {2, 1, "addcmul_"});
    step.assign(root, step.like(p));
    step.run(p, {1, 1, "sqrt"});
    step.run(p, {1, 1, "add_"});
    step.run(p, {3, 1, "addcdiv_"});
  }
  step.release(root);
  step.release(grad);
}

void adadelta(StepWriter& step, const OptimizerSettings& o, const ParameterList& group) {
  step.states(group, state_tensors(o));
  Held grad;
  Held deviation;
  Held delta;
  for (const TrainedParameter& p : group) {
    take_gradient(step, o, p, grad);
    step.run(p, {1, 1, "mul_"});
    step.run(p, {2, 1, "addcmul_"});
    for (Held* name : {&deviation, &delta}) {
      step.assign(*name, step.like(p));
      step.run(p, {1, 1, "add"});
      step.run(p, {1, 1, "sqrt_"});
    }
    step.run(p, {2, 1, "div_"});
    step.run(p, {2, 1, "mul_"});
    step.run(p, {1, 1, "mul_"});
    step.run(p, {2, 1, "addcmul_"});
    step.run(p, {2, 1, "add_"});
  }
  for (Held* name : {&grad, &deviation, &delta}) step.release(*name);
}

void adamax(StepWriter& step, const OptimizerSettings& o, const ParameterList& group) {
  step.states(group, state_tensors(o));
  Held grad;
  for (const TrainedParameter& p : group) {
    take_gradient(step, o, p, grad);
    step.run(p, {2, 1, "lerp_"});
    step.run(p, {1, 1, "mul_"});
    Held size = step.like(p);
    step.run(p, {1, 1, "abs"});
    step.run(p, {1, 1, "add_"});
    step.run(p, {2, 1, "maximum"});
    step.release(size);
    step.run(p, {3, 1, "addcdiv_"});
  }
  step.release(grad);
}

void nadam(StepWriter& step, const OptimizerSettings& o, const ParameterList& group) {
  step.states(group, state_tensors(o));
  Held grad;
  Held denominator;
  for (const TrainedParameter& p : group) {
    take_gradient(step, o, p, grad);
    update_moments(step, p);
    Held quotient = step.like(p);
    step.run(p, {1, 1, "div"});
    Held root = step.like(p);
    step.run(p, {1, 1, "sqrt"});
    step.release(quotient);
    step.assign(denominator, std::move(root));
    step.run(p, {1, 1, "add_"});
    step.run(p, {3, 1, "addcdiv_"});
    step.run(p, {3, 1, "addcdiv_"});
  }
  step.release(denominator);
  step.release(grad);
}

/// What one operation makes of a temporary, which goes then.
Held made_of(StepWriter& step, const TrainedParameter& p, Held& old, ListPass pass) {
  Held made = step.like(p);
  step.run(p, pass);
  step.release(old);
  return made;
}

/// As it steps from the sixth time on, when the variance is rectified.
void radam(StepWriter& step, const OptimizerSettings& o, const ParameterList& group) {
  step.states(group, state_tensors(o));
  Held grad;
  Held corrected;
  for (const TrainedParameter& p : group) {
    take_gradient(step, o, p, grad);
    update_moments(step, p);
    step.assign(corrected, step.like(p));
    step.run(p, {1, 1, "div"});
    Held update = step.like(p);
    step.run(p, {1, 1, "mul"});  // by the learning rate
    Held root = step.like(p);
    step.run(p, {1, 1, "sqrt"});
    step.run(p, {1, 1, "add_"});
    Held rate = step.like(p);
    step.run(p, {1, 1, "reciprocal"});
    rate = made_of(step, p, rate, {1, 1, "mul"});
    step.release(root);
    update = made_of(step, p, update, {2, 1, "mul"});
    step.release(rate);
    update = made_of(step, p, update, {1, 1, "mul"});  // by the rectification
    step.run(p, {2, 1, "add_"});
    step.release(update);
  }
  step.release(corrected);
  step.release(grad);
}

void lion(StepWriter& step, const ParameterList& group) {
  for (const TrainedParameter& p : group) {
    step.state(p, p.bytes);
    step.run(p, {1, 1, "mul_"});  // by 1 without decay
    Held copy = step.like(p);
    step.run(p, {1, 1, "clone"});
    step.run(p, {1, 1, "mul_"});
    Held update = step.like(p);
    step.run(p, {2, 1, "add"});
    step.release(copy);
    step.run(p, {1, 1, "sgn_"});
    step.run(p, {2, 1, "add_"});
    step.run(p, {1, 1, "mul_"});
    step.run(p, {2, 1, "add_"});
    step.release(update);
  }
}

}  // namespace

void step_for_loop(StepWriter& step, const OptimizerSettings& o, const ParameterList& group) {
  switch (o.kind) {
    case OptimizerKind::kSgd:
      return sgd(step, o, group);
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamW:
      return adam(step, o, group);
    case OptimizerKind::kRmsprop:
      return rmsprop(step, o, group);
    case OptimizerKind::kAdagrad:
      return adagrad(step, o, group);
    case OptimizerKind::kAdadelta:
      return adadelta(step, o, group);
    case OptimizerKind::kAdamax:
      return adamax(step, o, group);
    case OptimizerKind::kNAdam:
      return nadam(step, o, group);
    case OptimizerKind::kRAdam:
      return radam(step, o, group);
    case OptimizerKind::kAdafactor:
      return adafactor_for_loop(step, o, group);
    case OptimizerKind::kLion:
      return lion(step, group);
    case OptimizerKind::kLbfgs:
      return step_lbfgs(step, o, group);
    case OptimizerKind::kNone:
      return;
  }
}

}  // namespace stoker
