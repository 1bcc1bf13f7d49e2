#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "step/step.h"

/// What the rewrites for several GPUs add to a step that they are changing.
namespace stoker {

/// Index of an operator's name, which is added where it is new.
[[nodiscard]] NameId name_id(Step& step, std::string_view name);

/// Bytes of a dense tensor of this type.
[[nodiscard]] Polynomial bytes_of(const TensorType& type);

[[nodiscard]] TypeId add_type(Step& step, TensorType type);
/// A tensor of one dimension with these bytes.
[[nodiscard]] TypeId add_flat_type(Step& step, DType dtype, const Polynomial& bytes);
[[nodiscard]] std::uint32_t add_storage(Step& step, Polynomial bytes,
                                        StorageKind kind = StorageKind::kTransient);
/// A collective among `ranks`, or a copy that belongs to one; returns its index.
std::uint32_t add_collective(Step& step, std::string_view name, ModuleId module, std::int64_t ranks,
                             std::vector<TensorRef> inputs, std::vector<TensorRef> outputs);

}  // namespace stoker
