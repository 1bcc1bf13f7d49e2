#include "step/sizes.h"

#include <algorithm>

#include "base/setting.h"
#include "base/text.h"

namespace stoker {
namespace {

constexpr std::int64_t kMaxDimensionValue = 1LL << 32;

Result<DimensionValues> values_of(const Step& step,
                                  const std::map<std::string, std::int64_t>& named) {
  DimensionValues values{};
  for (const auto& [name, value] : named) {
    const bool known =
        std::any_of(step.dimensions.begin(), step.dimensions.end(),
                    [&, &wanted = name](const Dimension& d) { return d.name == wanted; });
    if (known) continue;
    std::string list;
    std::vector<std::string> names;
    for (const Dimension& d : step.dimensions) {
      list += (list.empty() ? "" : ", ") + d.name;
      names.push_back(d.name);
    }
    const std::string near = suggestion(name, names);
    return fail(ErrorCode::kBadInput,
                step.name + " has no dimension \"" + name + "\"; it has " + list +
                    (!near.empty()       ? near
                     : name == "seq_len" ? "; leave out " + mark(Setting::kSeqLen)
                                         : "; leave out " + mark(Setting::kDim) + " " + name));
  }
  for (std::size_t i = 0; i < step.dimensions.size(); ++i) {
    const Dimension& d = step.dimensions[i];
    const auto it = named.find(d.name);
    const std::int64_t value = it == named.end() ? d.default_value : it->second;
    if (value < std::max<std::int64_t>(1, d.minimum) || value > kMaxDimensionValue) {
      return fail(ErrorCode::kBadInput, d.name + " must be at least " +
                                            std::to_string(std::max<std::int64_t>(1, d.minimum)) +
                                            " and at most 2^32, not " + std::to_string(value));
    }
    if (d.maximum > 0 && value > d.maximum) {
      return fail(ErrorCode::kBadInput, step.name + " takes " + d.name + " up to " +
                                            std::to_string(d.maximum) + ", not " +
                                            std::to_string(value));
    }
    if (value % d.unit != 0) {
      return fail(ErrorCode::kBadInput, d.name + " must be a multiple of " +
                                            std::to_string(d.unit) + ", not " +
                                            std::to_string(value));
    }
    values[i] = value / d.unit;
  }
  return values;
}

}  // namespace

Result<Sizes> Sizes::at(const Step& step, const std::map<std::string, std::int64_t>& named) {
  const auto values = TRY(values_of(step, named));
  const auto too_big = [&](const char* what, std::size_t i) {
    return fail(ErrorCode::kBadInput, std::string("at these dimensions ") + what + " " +
                                          std::to_string(i) + " of " + step.name +
                                          " has no size or too large a one; choose smaller ones");
  };
  Sizes sizes;
  sizes.shape_spans_.reserve(step.types.size());
  sizes.elements_.reserve(step.types.size());
  sizes.element_bytes_.reserve(step.types.size());
  for (std::size_t t = 0; t < step.types.size(); ++t) {
    const auto begin = static_cast<std::uint32_t>(sizes.sides_.size());
    std::int64_t elements = 1;
    for (const Polynomial& side : step.types[t].shape) {
      const auto value = side.evaluate(values);
      if (!value || *value < 0 || __builtin_mul_overflow(elements, *value, &elements)) {
        return too_big("tensor type", t);
      }
      sizes.sides_.push_back(*value);
    }
    sizes.shape_spans_.emplace_back(begin, static_cast<std::uint32_t>(step.types[t].shape.size()));
    sizes.elements_.push_back(elements);
    sizes.element_bytes_.push_back(size_of(step.types[t].dtype));
  }
  sizes.storages_.reserve(step.storages.size());
  for (std::size_t s = 0; s < step.storages.size(); ++s) {
    const auto value = step.storages[s].bytes.evaluate(values);
    if (!value || *value < 0) return too_big("storage", s);
    sizes.storages_.emplace_back(*value);
  }
  return sizes;
}

}  // namespace stoker
