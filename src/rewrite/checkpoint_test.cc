#include "rewrite/checkpoint.h"

#include <string>
#include <vector>

#include "lower/common/step_plan.h"
#include "rewrite/module_runs.h"
#include "rewrite/rewrite_testing.h"

namespace stoker {
namespace {

using testing_support::live_bytes;
using testing_support::operator_counts;
using testing_support::rewrite_case;
using testing_support::zoo_files;

Step zoo(const std::string& name) {
  return read_step_file(std::filesystem::path(STOKER_SOURCE_DIR) / "data/zoo" / (name + ".step.gz"))
      .value();
}

TEST(RepeatedBlocks, AreFoundInEachKindOfModel) {
  const struct {
    const char* model;
    std::size_t count;
    const char* first;
  } cases[] = {{"resnet50.fp32", 16, "layer1.0"},
               {"gpt2.fp32", 12, "transformer.h.0"},
               {"bert_base.fp32", 12, "bert.encoder.layer.0"},
               {"vit_b_16.fp32", 12, "encoder.layers.encoder_layer_0"},
               {"t5_small.fp32", 12, "encoder.block.0"},
               {"efficientnet_b0.fp32", 16, "features.1.0"},
               {"swin_t.fp32", 12, "features.1.0"},
               {"densenet121.fp32", 58, "features.denseblock1.denselayer1"},
               {"squeezenet1_1.fp32", 8, "features.3"},
               {"vgg16.fp32", 0, ""}};
  for (const auto& c : cases) {
    const auto blocks = repeated_blocks(zoo(c.model));
    EXPECT_EQ(blocks.size(), c.count) << c.model;
    EXPECT_EQ(blocks.empty() ? "" : blocks.front(), c.first) << c.model;
  }
}

TEST(ModuleRuns, TellACallInARowFromALayerSharedByAll) {
  const Step transformer = rewrite_case("transformer.amp-bf16.plain");
  EXPECT_EQ(module_runs(transformer, {"shared"}).size(), 2u);
  // Every block calls blocks.0.act: one run each all the same.
  const Step convolutional = rewrite_case("convolutional.fp32.plain");
  const auto modules = resolve_modules(convolutional, {"blocks"}).value();
  const auto runs = module_runs(convolutional, modules);
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[0].end, runs[1].begin);
  EXPECT_EQ(runs[1].end, runs[2].begin);
}

struct Case {
  const char* model;
  std::vector<std::string> modules;
};

/// One model, captured once with torch.utils.checkpoint in its code and once without.
TEST(Checkpointing, IsWhatPyTorchDoes) {
  const Case cases[] = {{"transformer", {"blocks.*", "shared"}}, {"convolutional", {"blocks"}}};
  for (const Case& c : cases) {
    for (const std::string precision : {".fp32", ".amp-bf16"}) {
      const Step plain = rewrite_case(c.model + precision + ".plain");
      const Step expected = rewrite_case(c.model + precision + ".checkpointed");
      const auto result = with_checkpointing(plain, c.modules);
      ASSERT_TRUE(result) << result.error().text();
      EXPECT_EQ(operator_counts(*result), operator_counts(expected)) << c.model << precision;
      for (const std::int64_t batch : {1, 8, 64}) {
        const auto live = live_bytes(*result, batch), truth = live_bytes(expected, batch);
        EXPECT_EQ(live.peak, truth.peak) << c.model << precision << " batch " << batch;
        EXPECT_EQ(live.at_backward, truth.at_backward) << c.model << precision;
        EXPECT_LT(live.peak, live_bytes(plain, batch).peak);
      }
    }
  }
}

/// What a backend of attention saves lives from the second run to the backward.
TEST(Checkpointing, PairsTheBackwardOfAttentionWithTheSecondRun) {
  const Step plain = rewrite_case("transformer.fp32.plain");
  for (const Step& step : {with_checkpointing(plain, {"blocks.*", "shared"}).value(),
                           rewrite_case("transformer.fp32.checkpointed")}) {
    const StepPlan plan = plan_step(step);
    int paired = 0;
    bool backward = false;
    for (const Event& event : step.events) {
      backward |= event.kind == EventKind::kPhase && Phase(event.value) == Phase::kBackward;
      if (event.kind != EventKind::kOperator) continue;
      if (plan.attention_backward[event.value] == StepPlan::kNone) continue;
      EXPECT_TRUE(backward);
      ++paired;
    }
    EXPECT_EQ(paired, 5);
  }
}

TEST(Checkpointing, EveryAttentionOfTheZooHasItsForward) {
  for (const auto& file : zoo_files()) {
    const Step step = read_step_file(file).value();
    const StepPlan plan = plan_step(step);
    for (std::uint32_t o = 0; o < step.operators.size(); ++o) {
      const bool backward = step.operator_name(step.operators[o]) == "stoker::attention_backward";
      EXPECT_EQ(plan.attention_forward[o] != StepPlan::kNone, backward) << file;
    }
  }
}

TEST(Checkpointing, KeepsEveryStepOfTheZooInOrderAndMakesItSmaller) {
  for (const auto& file : zoo_files()) {
    const auto step = read_step_file(file);
    ASSERT_TRUE(step) << step.error().text();
    if (repeated_blocks(*step).empty()) continue;
    const auto less = with_checkpointing(*step, {"blocks"});
    ASSERT_TRUE(less) << less.error().text();
    ASSERT_TRUE(check_lifetimes(*less, file.filename()));
    const auto before = live_bytes(*step, 16), after = live_bytes(*less, 16);
    EXPECT_LT(after.at_backward, before.at_backward * 3 / 4) << file;
    EXPECT_LT(after.peak, before.peak) << file;
    EXPECT_EQ(after.transient_at_end, 0) << file;
  }
}

TEST(Checkpointing, LeavesOutTheCacheOfHuggingFaceModels) {
  const Step gpt2 = zoo("gpt2.fp32");  // with keys and values of 12 layers as outputs
  const auto outputs = [](const Step& step) {
    return std::count_if(step.storages.begin(), step.storages.end(),
                         [](const Storage& s) { return s.kind == StorageKind::kOutput; });
  };
  EXPECT_EQ(outputs(gpt2), 26);
  EXPECT_EQ(outputs(with_checkpointing(gpt2, {"blocks"}).value()), 2);  // loss and logits
}

TEST(Checkpointing, CheckpointsNestedModulesOnceAtTheOuterOne) {
  const Step plain = rewrite_case("transformer.fp32.plain");
  const auto outer = with_checkpointing(plain, {"blocks.0"}).value();
  const auto both = with_checkpointing(plain, {"blocks.0.mlp", "blocks.0"}).value();
  EXPECT_EQ(operator_counts(both), operator_counts(outer));
  EXPECT_EQ(both.events.size(), outer.events.size());
}

TEST(Checkpointing, LeavesAModelAloneThatCheckpointsByItself) {
  for (const std::string precision : {"fp32", "amp-bf16"}) {
    const Step own = rewrite_case("transformer." + precision + ".checkpointed");
    const auto again = with_checkpointing(own, {"blocks"}).value();
    EXPECT_EQ(operator_counts(again), operator_counts(own)) << precision;
    EXPECT_EQ(live_bytes(again, 8).peak, live_bytes(own, 8).peak) << precision;
  }
}

TEST(Checkpointing, RefusesModulesThatAreNotThere) {
  const Step plain = rewrite_case("transformer.fp32.plain");
  const auto typo = with_checkpointing(plain, {"shraed"});
  ASSERT_FALSE(typo);
  EXPECT_NE(typo.error().message.find("did you mean shared?"), std::string::npos)
      << typo.error().message;
  EXPECT_FALSE(with_checkpointing(plain, {"head.*"}));
  const auto none = with_checkpointing(zoo("vgg16.fp32"), {"blocks"});
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("no repeated blocks"), std::string::npos);
}

TEST(Checkpointing, ChangesNothingWhereThereIsNoBackward) {
  const Step inference = rewrite_case("transformer.fp32.inference");
  EXPECT_EQ(with_checkpointing(inference, {"blocks"}).value().events.size(),
            inference.events.size());
}

}  // namespace
}  // namespace stoker
