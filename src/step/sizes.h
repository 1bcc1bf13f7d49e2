#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "step/step.h"

namespace stoker {

/// A step's sizes at given values of its dimensions: every polynomial evaluated once.
class Sizes {
 public:
  /// Refuses values that are not positive, no multiple of the unit, beyond the model's own maximum,
  /// or that overflow. `named` holds values in the user's terms; dimensions not in it take their
  /// default.
  [[nodiscard]] static Result<Sizes> at(const Step& step,
                                        const std::map<std::string, std::int64_t>& named);

  [[nodiscard]] std::span<const std::int64_t> shape(TypeId type) const {
    const auto& [begin, length] = shape_spans_[index(type)];
    return {sides_.data() + begin, length};
  }
  [[nodiscard]] std::int64_t elements(TypeId type) const { return elements_[index(type)]; }
  /// Bytes of a dense tensor of this type.
  [[nodiscard]] Bytes tensor(const Step& step, TypeId type) const {
    return Bytes(elements(type) * size_of(step.types[index(type)].dtype));
  }
  [[nodiscard]] Bytes storage(StorageId id) const { return storages_[index(id)]; }
  /// What reading this tensor once moves: its elements, but never more than its storage holds (a
  /// broadcast view has many elements and few bytes).
  [[nodiscard]] Bytes touched(const TensorRef& ref) const {
    const std::size_t type = index(ref.type);
    const Bytes bytes(elements_[type] * element_bytes_[type]);
    const Bytes held = storage(ref.storage);
    // Storages whose size is a library's secret are written with 0 bytes; the type is all we have.
    return held.count() == 0 ? bytes : std::min(bytes, held);
  }

 private:
  std::vector<std::int64_t> sides_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> shape_spans_;
  std::vector<std::int64_t> elements_;
  std::vector<int> element_bytes_;
  std::vector<Bytes> storages_;
};

}  // namespace stoker
