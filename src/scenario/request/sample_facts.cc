#include "scenario/request/sample_facts.h"

#include <algorithm>
#include <array>

#include "step/sizes.h"

namespace stoker {

Result<OutputShape> loader_output(const Step& step,
                                  const std::map<std::string, std::int64_t>& dimensions) {
  const auto sizes = TRY(Sizes::at(step, dimensions));
  OutputShape shape;
  Bytes bytes;
  for (const NamedTensor& input : step.inputs) bytes += sizes.storage(input.storage);
  const auto named = dimensions.find("batch");
  const std::int64_t batch =
      named == dimensions.end() ? step.dimensions[0].default_value : named->second;
  shape.bytes_per_sample = Bytes(bytes.count() / std::max<std::int64_t>(1, batch));
  shape.tensors = std::max(1, static_cast<int>(step.inputs.size()));
  return shape;
}

std::int64_t image_side(const Step& step) {
  if (step.inputs.empty()) return 0;
  const auto sizes = Sizes::at(step, {});
  if (!sizes) return 0;
  const TypeId type = step.inputs[0].type;
  const DType dtype = step.types[index(type)].dtype;
  const bool pixels =
      dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBf16 || dtype == DType::kU8;
  const auto shape = sizes->shape(type);
  constexpr std::array<std::int64_t, 3> kChannels{1, 3, 4};  // grey, colour, colour with alpha
  const bool image = shape.size() == 4 &&
                     std::find(kChannels.begin(), kChannels.end(), shape[1]) != kChannels.end();
  return pixels && image ? shape[3] : 0;
}

std::string sample_word(const Step& step) {
  if (image_side(step) > 0) return "img";
  if (step.sample_what == "video") return "clip";
  return step.sample_what == "sequence" ? "seq" : step.sample_what;
}

}  // namespace stoker
