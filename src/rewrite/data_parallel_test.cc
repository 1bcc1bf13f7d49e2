#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "rewrite/shard.h"
#include "rewrite/tensor_chunks.h"
#include "step/sizes.h"
#include "step/step_reader.h"
#include "step/test_step.h"

namespace stoker {
namespace {

struct Footprint {
  std::int64_t begin = 0, peak = 0, end = 0;
};

Footprint footprint(const Step& step, std::int64_t batch) {
  const auto sizes = Sizes::at(step, {{"batch", batch}});
  EXPECT_TRUE(sizes);
  Footprint f;
  const auto bytes = [&](std::uint32_t s) { return sizes->storage(StorageId(s)).count(); };
  for (std::uint32_t s = 0; s < step.storages.size(); ++s) {
    const StorageKind kind = step.storages[s].kind;
    if (kind == StorageKind::kParameter || kind == StorageKind::kBuffer ||
        kind == StorageKind::kInput)
      f.begin += bytes(s);
  }
  f.peak = f.end = f.begin;
  for (const Event& event : step.events) {
    if (event.kind == EventKind::kAllocate) f.end += bytes(event.value);
    if (event.kind == EventKind::kFree) f.end -= bytes(event.value);
    f.peak = std::max(f.peak, f.end);
  }
  return f;
}

Step data_parallel(const Step& step, std::int64_t gpus) {
  auto result = data_parallel_step(step, gpus);
  EXPECT_TRUE(result) << result.error().text();
  const Status valid = check_lifetimes(*result, "data parallel");
  EXPECT_TRUE(valid) << valid.error().text();
  return *result;
}

std::vector<std::string> collectives(const Step& step) {
  std::vector<std::string> names;
  for (const Event& event : step.events) {
    if (event.kind != EventKind::kOperator) continue;
    const auto name = step.operator_name(step.operators[event.value]);
    if (name.starts_with("stoker::")) names.emplace_back(name.substr(8));
  }
  return names;
}

TEST(DataParallel, TheSmallStepByHand) {
  // A layer [b, 4] x [4, 3] and a sum, 10 rows on each of three GPUs. Weight 48, inputs of all
  // 30 * 16.
  const Step step = parse_step(testing_support::linear_step_json(), "test").value();
  const Step three = data_parallel(step, 3);
  EXPECT_EQ(collectives(three),
            (std::vector<std::string>{"scatter", "broadcast", "gather", "scatter", "reduce"}));
  const Footprint f = footprint(three, 10);
  EXPECT_EQ(f.begin, 48 + 480);
  // The own output (120) makes room for the gathered one (360); beside that the loss (4) and its
  // gradient for all rows (360).
  EXPECT_EQ(f.peak, 48 + 480 + 360 + 4 + 360);
  // The summed gradient takes the place of the own one.
  EXPECT_EQ(f.end, 48 + 480 + 4 + 48);
  EXPECT_EQ(collectives(data_parallel(step, 1)), std::vector<std::string>{});
}

TEST(DataParallel, ChunksEndBeforeTenMebibytes) {
  Step step;
  std::vector<ChunkedTensor> tensors;
  for (const int mib : {1, 8, 2, 30, 4, 6, 1}) {
    step.types.push_back({DType::kF32, {Polynomial(mib << 18)}, Layout::kRowMajor, {}});
    tensors.push_back({TypeId(static_cast<std::uint32_t>(step.types.size() - 1)), StorageId{}});
  }
  std::vector<std::vector<std::uint32_t>> found;
  for (const TensorChunk& chunk : tensor_chunks(step, tensors)) found.push_back(chunk.tensors);
  // 1 + 8 and 2 would be 11; 2 and 30 exceed; 30 alone exceeds; 4 + 6 fit exactly.
  EXPECT_EQ(found, (std::vector<std::vector<std::uint32_t>>{{0, 1}, {2}, {3}, {4, 5}, {6}}));
}

/// What must hold for every captured model that ships.
TEST(DataParallel, GpuZeroNeedsMoreThanItsShareInEveryModel) {
  const std::filesystem::path zoo = std::filesystem::path(STOKER_SOURCE_DIR) / "data" / "zoo";
  int models = 0;
  for (const auto& entry : std::filesystem::directory_iterator(zoo)) {
    const std::string file = entry.path().filename().string();
    if (!file.ends_with("fp32.step.gz")) continue;
    SCOPED_TRACE(file);
    const auto step = read_step_file(entry.path());
    ASSERT_TRUE(step);
    const std::int64_t batch = step->dimensions[0].default_value;
    const Footprint one = footprint(*step, batch);
    const Footprint two = footprint(data_parallel(*step, 2), batch);
    const Footprint four = footprint(data_parallel(*step, 4), batch);
    EXPECT_GT(two.peak, one.peak);
    EXPECT_GE(four.peak, two.peak);
    // Only inputs, outputs and the loss are of the whole batch.
    EXPECT_LT(four.peak, 4 * one.peak);
    ++models;
  }
  EXPECT_GT(models, 20);
}

}  // namespace
}  // namespace stoker
