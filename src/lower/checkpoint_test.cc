#include "lower/checkpoint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "lower/evaluation.h"
#include "step/sizes.h"
#include "step/step_reader.h"

namespace stoker {
namespace {

std::filesystem::path zoo(const std::string& name) {
  return std::filesystem::path(STOKER_SOURCE_DIR) / "data/zoo" / (name + ".step.gz");
}

/// The most bytes of transient storages alive at once, and when the backward begins.
struct Live {
  std::int64_t peak = 0, at_backward = 0;
};

Live live_bytes(const Step& step, std::int64_t batch) {
  const Sizes sizes = Sizes::at(step, {{"batch", batch}}).value();
  Live live;
  std::int64_t now = 0;
  for (const Event& event : step.events) {
    if (event.kind == EventKind::kPhase && Phase(event.value) == Phase::kBackward)
      live.at_backward = now;
    if (event.kind != EventKind::kAllocate && event.kind != EventKind::kFree) continue;
    if (step.storages[event.value].kind != StorageKind::kTransient) continue;
    const std::int64_t bytes = sizes.storage(StorageId(event.value)).count();
    now += event.kind == EventKind::kAllocate ? bytes : -bytes;
    live.peak = std::max(live.peak, now);
  }
  EXPECT_EQ(now, 0);
  return live;
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
    const auto step = read_step_file(zoo(c.model));
    ASSERT_TRUE(step) << step.error().text();
    const auto blocks = repeated_blocks(*step);
    EXPECT_EQ(blocks.size(), c.count) << c.model;
    EXPECT_EQ(blocks.empty() ? "" : blocks.front(), c.first) << c.model;
  }
}

TEST(Checkpointing, KeepsEveryStepOfTheZooInOrderAndSmaller) {
  for (const auto& entry : std::filesystem::directory_iterator(zoo("").parent_path())) {
    if (entry.path().extension() != ".gz") continue;
    const auto step = read_step_file(entry.path());
    ASSERT_TRUE(step) << step.error().text();
    if (repeated_blocks(*step).empty()) continue;
    const auto less = with_checkpointing(*step, {"blocks"});
    ASSERT_TRUE(less) << less.error().text();
    ASSERT_TRUE(check_lifetimes(*less, entry.path().filename()));
    const Live before = live_bytes(*step, 16), after = live_bytes(*less, 16);
    EXPECT_LT(after.at_backward, before.at_backward * 3 / 4) << entry.path();
    EXPECT_LT(after.peak, before.peak) << entry.path();
    EXPECT_GT(less->events.size(), step->events.size());
  }
}

}  // namespace
}  // namespace stoker
