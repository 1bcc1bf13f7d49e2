#include "rewrite/step_parts.h"

#include <algorithm>
#include <utility>

#include "rewrite/symbolic.h"

namespace stoker {
NameId name_id(Step& step, std::string_view name) {
  auto& names = step.operator_names;
  const auto it = std::find(names.begin(), names.end(), name);
  const auto at = static_cast<std::uint32_t>(it - names.begin());
  if (it == names.end()) names.emplace_back(name);
  return NameId(at);
}

Polynomial bytes_of(const TensorType& type) {
  Polynomial product(size_of(type.dtype));
  for (const Polynomial& side : type.shape) product = product * side;
  return product;
}

TypeId add_type(Step& step, TensorType type) {
  step.types.push_back(std::move(type));
  return TypeId(static_cast<std::uint32_t>(step.types.size() - 1));
}

TypeId add_flat_type(Step& step, DType dtype, const Polynomial& bytes) {
  return add_type(step, {dtype, {scaled(bytes, 1, size_of(dtype))}, Layout::kRowMajor, {}});
}

std::uint32_t add_storage(Step& step, Polynomial bytes, StorageKind kind) {
  step.storages.push_back({std::move(bytes), kind});
  return static_cast<std::uint32_t>(step.storages.size() - 1);
}

std::uint32_t add_collective(Step& step, std::string_view name, ModuleId module, std::int64_t ranks,
                             std::vector<TensorRef> inputs, std::vector<TensorRef> outputs) {
  step.attributes.emplace_back().groups = static_cast<std::int32_t>(ranks);
  const auto attributes = static_cast<std::uint32_t>(step.attributes.size() - 1);
  step.operators.push_back(
      {name_id(step, name), module, 0, std::move(inputs), std::move(outputs), attributes});
  return static_cast<std::uint32_t>(step.operators.size() - 1);
}

}  // namespace stoker
