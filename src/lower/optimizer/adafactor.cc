#include <algorithm>
#include <utility>

#include "lower/optimizer/optimizer_recipes.h"

// torch/optim/_adafactor.py. A tensor of two or more dimensions keeps the second moment of its rows
// (its shape with the last dimension 1) and of its columns (the last but one 1); a vector keeps all
// of it.
namespace stoker {
namespace {

bool factored(const TrainedParameter& p) { return p.rows > 0 && p.columns > 0; }

Bytes row_bytes(const TrainedParameter& p) { return p.bytes / p.columns; }
Bytes column_bytes(const TrainedParameter& p) { return p.bytes / p.rows; }
Bytes one(const TrainedParameter& p) { return Bytes(size_of(p.dtype)); }

void make_state(StepWriter& step, const ParameterList& group) {
  for (const TrainedParameter& p : group) {
    if (factored(p)) {
      step.state(p, row_bytes(p));
      step.state(p, column_bytes(p));
    } else {
      step.state(p, p.bytes);
    }
  }
}

/// `tensor.norm(2).item()`
void read_norm(StepWriter& step, const TrainedParameter& p) {
  Held norm = step.scratch(p, one(p));
  step.run(p, {1, 0});
  step.read_number();
  step.release(norm);
}

/// Work on row or column factors: square, divide, lerp into the state.
void fold(StepWriter& step, const TrainedParameter& p, Bytes bytes) {
  constexpr int kOperations = 3;
  for (int i = 0; i < kOperations; ++i) step.run_small(p, bytes.count() / size_of(p.dtype));
}

/// Part of a foreach step: the factors of a list of matrices. Returns the estimates.
Held factor_list(StepWriter& step, const ParameterList& list) {
  for (const auto bytes_of : {row_bytes, column_bytes}) {
    Held means;
    for (const TrainedParameter& p : list) {
      means.push_back(step.scratch(p, bytes_of(p)).front());
      step.run(p, {1, 0});  // norm along one dimension
    }
    for (const TrainedParameter& p : list) fold(step, p, bytes_of(p));
    step.release(means);
  }
  Held estimates;
  for (const TrainedParameter& p : list) {
    estimates.push_back(step.like(p).front());
    step.run(p, {0, 1});  // row @ column
  }
  Held means;
  for (const TrainedParameter& p : list) {
    means.push_back(step.scratch(p, row_bytes(p) / p.rows).front());
    step.run_small(p, row_bytes(p).count() / size_of(p.dtype));
  }
  step.run(list, {1, 1});  // div_
  step.release(means);
  return estimates;
}

Held square_list(StepWriter& step, const ParameterList& list) {
  Held squared = step.like(list);
  step.run(list, {1, 1});  // mul
  step.run(list, {2, 1});  // lerp_
  step.release(squared);
  Held estimates = step.like(list);
  for (const TrainedParameter& p : list) step.run(p, {1, 1});  // clone
  return estimates;
}

/// By dtype, then matrices and vectors apart, the kind met first in front.
std::vector<ParameterList> uniform_lists(const ParameterList& group) {
  std::vector<ParameterList> lists;
  for (const ParameterList& list : by_dtype(group)) {
    ParameterList first;
    ParameterList second;
    for (const TrainedParameter& p : list) {
      (factored(p) == factored(list.front()) ? first : second).push_back(p);
    }
    lists.push_back(std::move(first));
    if (!second.empty()) lists.push_back(std::move(second));
  }
  return lists;
}

}  // namespace

void adafactor_foreach(StepWriter& step, const OptimizerSettings& o, const ParameterList& group) {
  make_state(step, group);
  Held updates;
  for (const ParameterList& list : uniform_lists(group)) {
    for (const TrainedParameter& p : list) read_norm(step, p);
    if (o.weight_decay != 0) step.run(list, {1, 1});
    Held estimates = factored(list.front()) ? factor_list(step, list) : square_list(step, list);
    step.run(list, {1, 1});  // clamp_min_
    step.run(list, {1, 1});  // rsqrt_
    step.run(list, {2, 1});  // mul_
    step.assign(updates, std::move(estimates));
    for (const TrainedParameter& p : list) read_norm(step, p);
    step.run(list, {1, 1});  // mul_
    step.run(list, {2, 1});  // params.add_
  }
  step.release(updates);
}

void adafactor_for_loop(StepWriter& step, const OptimizerSettings& o, const ParameterList& group) {
  make_state(step, group);
  Held row_mean;
  Held column_mean;
  Held squared;
  Held update;
  for (const TrainedParameter& p : group) {
    read_norm(step, p);
    if (o.weight_decay != 0) step.run(p, {1, 1});
    Held estimate;
    if (factored(p)) {
      step.assign(row_mean, step.scratch(p, row_bytes(p)));
      step.run(p, {1, 0});
      fold(step, p, row_bytes(p));
      step.assign(column_mean, step.scratch(p, column_bytes(p)));
      step.run(p, {1, 0});
      fold(step, p, column_bytes(p));
      estimate = step.like(p);
      step.run(p, {0, 1});  // row @ column
      Held mean = step.scratch(p, row_bytes(p) / p.rows);
      step.run_small(p, row_bytes(p).count() / size_of(p.dtype));
      step.run(p, {1, 1});  // div_
      step.release(mean);
    } else {
      step.assign(squared, step.like(p));
      step.run(p, {1, 1});  // mul
      step.run(p, {2, 1});  // lerp_
      estimate = step.like(p);
      step.run(p, {1, 1});  // clone
    }
    step.assign(update, std::move(estimate));
    step.run(p, {1, 1});  // clamp_
    step.run(p, {1, 1});  // rsqrt_
    step.run(p, {2, 1});  // mul_
    read_norm(step, p);
    step.run(p, {2, 1});  // param.add_
  }
  for (Held* name : {&row_mean, &column_mean, &squared, &update}) step.release(*name);
}

}  // namespace stoker
