#include "lower/optimizer/optimizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "base/files.h"
#include "json/text.h"
#include "lower/common/test_live.h"
#include "lower/optimizer/gradient_steps.h"
#include "step/step_reader.h"
#include "step/test_step.h"

namespace stoker {
namespace {

using Json = json::Value;
using Events = std::vector<std::int64_t>;

/// PyTorch's own allocations, recorded by scripts/record-optimizers.
const Json& recorded() {
  static const Json file = [] {
    const auto text = read_file(STOKER_SOURCE_DIR "/src/lower/testdata/optimizers.json", kGiB);
    return json::parse(text.value()).value();
  }();
  return file;
}

DType dtype_named(const std::string& name) { return name == "bf16" ? DType::kBf16 : DType::kF32; }

/// The parameters of the recording, in the dtype of one case.
std::vector<TrainedParameter> parameters_of(const Json& test) {
  std::vector<TrainedParameter> parameters;
  for (const Json& row : recorded()["parameters"]) {
    TrainedParameter p;
    const std::string dtype = test["dtype"].as_string();
    p.dtype = dtype_named(dtype == "mixed" ? row["mixed"].as_string() : dtype);
    std::int64_t elements = 1;
    std::vector<std::int64_t> shape;
    for (const Json& side : row["shape"]) shape.push_back(side.as_integer());
    for (const std::int64_t side : shape) elements *= side;
    p.bytes = Bytes(elements * size_of(p.dtype));
    p.group = row.value("group", 0);
    if (shape.size() > 1) {
      p.rows = shape[shape.size() - 2];
      p.columns = shape[shape.size() - 1];
    }
    parameters.push_back(p);
  }
  return parameters;
}

/// Frees in a row leave an allocator in the same state in any order.
Events normal(Events events) {
  for (auto it = events.begin(); it != events.end();) {
    const auto run = std::find_if(it, events.end(), [](std::int64_t e) { return e > 0; });
    std::sort(it, run);
    it = std::find_if(run, events.end(), [](std::int64_t e) { return e < 0; });
  }
  return events;
}

/// Executes a Program as the recorder watched PyTorch: n > 0 allocates n bytes, -k frees the k-th
/// allocation. Allocations of the sizes in `unseen` are inside a CUDA kernel, where it saw nothing.
class Trace {
 public:
  Trace(const Program& program, std::set<std::int64_t> unseen = {})
      : program_(program), unseen_(std::move(unseen)) {}

  Events setup() { return run(program_.setup, When::kFirst); }
  Events iteration() {
    return run(program_.iteration, iterations_++ == 0 ? When::kFirst : When::kLater);
  }
  int hidden() const { return hidden_; }

 private:
  Events run(const std::vector<Instruction>& instructions, When now) {
    Events events;
    for (const Instruction& i : instructions) {
      if (i.when != When::kAlways && i.when != now) continue;
      if (i.kind == InstructionKind::kAllocate) {
        const std::int64_t bytes = program_.buffers[i.value].bytes.count();
        if (unseen_.count(bytes) != 0) {
          ++hidden_;
          continue;
        }
        number_[i.value] = ++allocations_;
        events.push_back(bytes);
      } else if (i.kind == InstructionKind::kFree) {
        if (unseen_.count(program_.buffers[i.value].bytes.count()) != 0) continue;
        EXPECT_NE(number_.count(i.value), 0U) << "freed though not alive";
        events.push_back(-number_[i.value]);
        number_.erase(i.value);
      }
    }
    return normal(events);
  }

  const Program& program_;
  const std::set<std::int64_t> unseen_;
  std::map<std::uint32_t, std::int64_t> number_;
  std::int64_t allocations_ = 0;
  int iterations_ = 0, hidden_ = 0;
};

constexpr int kLaterCall = 3;  // scripts/record-optimizers, LATER

Events events_of(const Json& list) {
  Events events;
  for (const Json& one : list) events.push_back(one.as_integer());
  return events;
}

void expect_as_recorded(const Json& test, Trace& trace) {
  EXPECT_EQ(trace.setup(), normal(events_of(test["setup"])));
  EXPECT_EQ(trace.iteration(), normal(events_of(test["first"])));
  for (int call = 2; call < kLaterCall; ++call) trace.iteration();
  EXPECT_EQ(trace.iteration(), normal(events_of(test["later"])));
}

TEST(OptimizerRecording, EveryOptimizerAndLoopAllocatesAsPyTorchDoes) {
  std::map<std::string, int> loops;
  for (const Json& test : recorded()["cases"]) {
    if (test["what"] != "optimizer") continue;
    SCOPED_TRACE(test["name"].as_string());
    OptimizerSettings settings;
    settings.kind = parse_optimizer(test["kind"].as_string()).value();
    settings.loop = parse_optimizer_loop(test["loop"].as_string()).value();
    settings.momentum = test.value("momentum", 0.0);
    settings.nesterov = test.value("nesterov", false);
    settings.centered = test.value("centered", false);
    settings.amsgrad = test.value("amsgrad", false);
    settings.decoupled = test.value("decoupled_weight_decay", false);
    std::vector<GroupSettings> groups;
    for (const Json& decay : test["decay"]) groups.push_back({decay.as_double()});
    Program program;
    Emitter emit(program);
    emit_optimizer_step(emit, settings, groups, parameters_of(test));
    Trace trace(program);
    expect_as_recorded(test, trace);
    ++loops[test["loop"].as_string()];
  }
  EXPECT_GE(loops["foreach"], 30);
  EXPECT_GE(loops["for-loop"], 26);
  EXPECT_GE(loops["fused"], 16);
}

/// _foreach_norm's partial sums: tensors of one dtype x chunks of the largest x 4 bytes. The
/// largest has 360,000 elements, which is six chunks; the largest of the three bf16 tensors one.
std::set<std::int64_t> partial_sums(const Json& test) {
  if (test["dtype"] != "mixed") return {8 * 6 * 4};
  return {5 * 6 * 4, 3 * 1 * 4};
}

TEST(OptimizerRecording, ClippingAllocatesAsPyTorchDoes) {
  int cases = 0;
  for (const Json& test : recorded()["cases"]) {
    if (test["what"] != "clip") continue;
    SCOPED_TRACE(test["name"].as_string());
    Program program;
    Emitter emit(program);
    emit_clip(emit, parameters_of(test));
    Trace trace(program, partial_sums(test));
    expect_as_recorded(test, trace);
    EXPECT_EQ(trace.hidden(), kLaterCall * (test["dtype"] == "mixed" ? 2 : 1));
    ++cases;
  }
  EXPECT_EQ(cases, 3);
}

TEST(OptimizerRecording, TheScalerAllocatesAsPyTorchDoes) {
  int cases = 0;
  for (const Json& test : recorded()["cases"]) {
    if (test["what"] != "scaler") continue;
    SCOPED_TRACE(test["name"].as_string());
    const auto parameters = parameters_of(test);
    OptimizerSettings plain;
    plain.momentum = 0;
    Program program;
    Emitter emit(program);
    emit.free(emit_scale_loss(emit));
    const BufferId found = emit_unscale(emit, parameters);
    if (test["clip"].as_bool()) emit_clip(emit, parameters);
    emit_overflow_check(emit, plain.loop);
    emit_optimizer_step(emit, plain, parameters);
    emit_scale_update(emit, found);
    Trace trace(program, partial_sums(test));
    expect_as_recorded(test, trace);
    ++cases;
  }
  EXPECT_EQ(cases, 2);
}

TEST(OptimizerRecording, TheMovingAverageAllocatesAsPyTorchDoes) {
  for (const Json& test : recorded()["cases"]) {
    if (test["what"] != "ema") continue;
    auto tensors = parameters_of(test);
    tensors.push_back({Bytes(96 * 4), DType::kF32, ModuleId{}});
    tensors.push_back({Bytes(8), DType::kI64, ModuleId{}});
    Program program;
    Emitter emit(program);
    emit_ema(emit, tensors);
    Trace trace(program);
    expect_as_recorded(test, trace);
    return;
  }
  FAIL() << "no case";
}

int launches(const Program& program) {
  int count = 0;
  for (const Kernel& kernel : program.kernels) count += kernel.launches;
  return count;
}

TEST(Optimizer, FusedIsOneKernelADtypeAndFallsBackWhereThereIsNone) {
  const std::vector<TrainedParameter> two{{kMiB, DType::kF32, ModuleId{}},
                                          {kMiB, DType::kBf16, ModuleId{}}};
  OptimizerSettings settings{OptimizerKind::kAdamW, OptimizerLoop::kFused, 0};
  Program fused;
  Emitter emit(fused);
  emit_optimizer_step(emit, settings, two);
  EXPECT_EQ(launches(fused), 2);
  EXPECT_EQ(fused.diagnostics.count("no_fused_optimizer"), 0);
  settings.kind = OptimizerKind::kRmsprop;
  Program foreach;
  Emitter other(foreach);
  emit_optimizer_step(other, settings, two);
  EXPECT_EQ(foreach.diagnostics.count("no_fused_optimizer"), 1);
  settings.loop = OptimizerLoop::kForeach;
  Program asked;
  Emitter third(asked);
  emit_optimizer_step(third, settings, two);
  EXPECT_EQ(launches(foreach), launches(asked));
}

TEST(Optimizer, WhatTheOptimizerWasNotGivenIsLeftAlone) {
  constexpr std::int32_t kNotGiven = -1;
  const std::vector<TrainedParameter> one{{kMiB, DType::kF32, ModuleId{}}};
  std::vector<TrainedParameter> two = one;
  two.push_back({2 * kMiB, DType::kF32, ModuleId{}, kNotGiven});
  std::vector<Bytes> moved, state;
  for (const auto& parameters : {one, two}) {
    Program program;
    Emitter emit(program);
    emit_scale_update(emit, emit_unscale(emit, parameters));
    emit_optimizer_step(emit, {OptimizerKind::kAdamW, OptimizerLoop::kForeach, 0}, parameters);
    for (std::vector<Bytes>* sums : {&moved, &state}) sums->emplace_back();
    for (const Kernel& kernel : program.kernels) moved.back() += kernel.read + kernel.written;
    for (const Buffer& b : program.buffers) {
      if (b.role == BufferRole::kOptimizerState) state.back() += b.bytes;
    }
  }
  EXPECT_EQ(state[0], 2 * kMiB);
  EXPECT_EQ(state[1], state[0]);
  EXPECT_EQ(moved[1], moved[0]);
}

TEST(Optimizer, AdafactorWaitsForTheDeviceTwiceAParameter) {
  for (const OptimizerLoop loop : {OptimizerLoop::kForeach, OptimizerLoop::kForLoop}) {
    Program program;
    Emitter emit(program);
    emit_optimizer_step(
        emit, {OptimizerKind::kAdafactor, loop, 0},
        {{kMiB, DType::kF32, ModuleId{}, 0, 512, 512}, {kKiB, DType::kF32, ModuleId{}}});
    int waits = 0;
    for (const Instruction& i : program.iteration) {
      waits += i.kind == InstructionKind::kSynchronize ? 1 : 0;
    }
    EXPECT_EQ(waits, 4);
  }
}

TEST(Optimizer, LbfgsKeepsItsHistoryAndReadsEachProduct) {
  OptimizerSettings settings{OptimizerKind::kLbfgs};
  settings.history = 7;
  for (const OptimizerLoop loop : {OptimizerLoop::kForeach, OptimizerLoop::kForLoop}) {
    settings.loop = loop;
    Program program;
    Emitter emit(program);
    emit_optimizer_step(emit, settings,
                        {{kMiB, DType::kF32, ModuleId{}}, {2 * kMiB, DType::kF32, ModuleId{}}});
    testing_support::Live live(program);
    live.iterate();
    EXPECT_EQ(live.live(BufferRole::kOptimizerState), (2 * 7 + 4) * 3 * kMiB);
    EXPECT_EQ(live.peak(), (2 * 7 + 4 + 2) * 3 * kMiB);
    int waits = 0;
    for (const Instruction& i : program.iteration) {
      waits += i.kind == InstructionKind::kSynchronize ? 1 : 0;
    }
    EXPECT_EQ(waits, 2 * 7 + 3);
    std::int64_t parts = 0;
    for (const Kernel& kernel : program.kernels) parts += kernel.elements == 1 << 18 ? 1 : 0;
    EXPECT_EQ(parts, 1);  // the update alone goes parameter by parameter
  }
}

TEST(Optimizer, ParametersBringTheirLastTwoDimensions) {
  const Step step = parse_step(testing_support::linear_step_json(), "test").value();
  const auto sizes = Sizes::at(step, {{"batch", 2}});
  const TrainedParameter p = trained_parameter(step, *sizes, step.parameters[0], ModuleId{3});
  EXPECT_EQ(p.bytes, Bytes(48));
  EXPECT_EQ(p.rows, 4);
  EXPECT_EQ(p.columns, 3);
  EXPECT_EQ(p.module, ModuleId{3});
}

std::vector<double> decays(const Step& step, double asked) {
  OptimizerSettings settings = captured_optimizer(step);
  if (asked >= 0) settings.weight_decay = asked;
  std::vector<double> values;
  for (const GroupSettings& group : optimizer_groups(step, settings)) {
    values.push_back(group.weight_decay);
  }
  return values;
}

TEST(Optimizer, GroupsKeepTheirOwnWeightDecay) {
  constexpr double kAsCaptured = -1;
  Step step = parse_step(testing_support::linear_step_json(), "test").value();
  EXPECT_EQ(decays(step, 0.1), (std::vector<double>{0.1}));
  step.optimizer.name = "adamw";
  step.optimizer.groups = {{{{"weight_decay", 0.05}}}, {{{"weight_decay", 0.0}}}};
  EXPECT_EQ(decays(step, kAsCaptured), (std::vector<double>{0.05, 0}));
  EXPECT_EQ(decays(step, 0.2), (std::vector<double>{0.2, 0}));  // norms stay without
  EXPECT_EQ(decays(step, 0), (std::vector<double>{0, 0}));
  step.optimizer.name = "unheard of";
  EXPECT_EQ(decays(step, kAsCaptured), (std::vector<double>{0.05, 0}));
  EXPECT_EQ(decays(step, 0.2), (std::vector<double>{0.2, 0}));
  step.optimizer.groups[0].numbers.clear();
  EXPECT_EQ(decays(step, 0.2), (std::vector<double>{0.2, 0.2}));  // none had any
}

TEST(Optimizer, GroupsThatAnotherOneStepsKeepItsState) {
  Step step = parse_step(testing_support::linear_step_json(), "test").value();
  step.optimizer.name = "sgd";
  step.optimizer.groups = {{{{"momentum", 0.9}}}, {{{"weight_decay", 0.1}}, "adamw"}, {{}}};
  const auto state = [&](const OptimizerSettings& settings) {
    Program program;
    Emitter emit(program);
    emit_optimizer_step(emit, settings, optimizer_groups(step, settings),
                        {{kMiB, DType::kF32, ModuleId{}, 0},
                         {4 * kMiB, DType::kF32, ModuleId{}, 1},
                         {16 * kMiB, DType::kF32, ModuleId{}, 2}});
    testing_support::Live live(program);
    live.iterate();
    return live.live(BufferRole::kOptimizerState);
  };
  OptimizerSettings settings = captured_optimizer(step);
  EXPECT_EQ(settings.kind, OptimizerKind::kSgd);
  EXPECT_EQ(settings.weight_decay, 0.1);
  EXPECT_EQ(state(settings), (1 + 2 * 4) * kMiB);  // the last group has no momentum
  settings.loop = OptimizerLoop::kForLoop;
  EXPECT_EQ(state(settings), (1 + 2 * 4) * kMiB);
  settings.kind = OptimizerKind::kLion;  // asked for in place of them
  EXPECT_EQ(state(settings), (1 + 4 + 16) * kMiB);
  step.optimizer.groups[1].name = "unheard of";
  EXPECT_EQ(state(captured_optimizer(step)), kMiB);
}

TEST(Optimizer, ACapturedOneBringsItsLoopAndItsState) {
  Step step = parse_step(testing_support::linear_step_json(), "test").value();
  step.optimizer.name = "adafactor";
  step.optimizer.groups = {{}};
  EXPECT_EQ(captured_optimizer(step).loop, OptimizerLoop::kForLoop);  // PyTorch's default
  step.optimizer.groups[0].numbers["foreach"] = 1;
  EXPECT_EQ(captured_optimizer(step).loop, OptimizerLoop::kForeach);
  step.optimizer.name = "rmsprop";
  step.optimizer.groups[0].numbers = {{"centered", 1}, {"foreach", 0}};
  EXPECT_EQ(captured_optimizer(step).loop, OptimizerLoop::kForLoop);
  EXPECT_TRUE(captured_optimizer(step).centered);
}

TEST(Optimizer, StateAndTemporariesInParameterBytes) {
  struct Case {
    OptimizerSettings settings;
    int state, temporaries;
  };
  const std::vector<Case> cases{
      {{OptimizerKind::kSgd, OptimizerLoop::kForeach, 0.0}, 0, 0},
      {{OptimizerKind::kSgd, OptimizerLoop::kForeach, 0.9}, 1, 0},
      {{OptimizerKind::kSgd, OptimizerLoop::kForeach, 0.9, false, 1e-4}, 1, 1},
      {{OptimizerKind::kAdamW, OptimizerLoop::kForeach}, 2, 1},
      {{OptimizerKind::kAdagrad, OptimizerLoop::kForeach}, 1, 2}};
  for (const Case& c : cases) {
    Program program;
    Emitter emit(program);
    emit_optimizer_step(emit, c.settings,
                        {{kMiB, DType::kF32, ModuleId{}}, {kMiB, DType::kF32, ModuleId{}}});
    testing_support::Live live(program);
    live.iterate();
    EXPECT_EQ(live.live(BufferRole::kOptimizerState), 2 * c.state * kMiB);
    EXPECT_EQ(live.peak(), 2 * (c.state + c.temporaries) * kMiB);
  }
}

}  // namespace
}  // namespace stoker
