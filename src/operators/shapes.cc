#include "operators/shapes.h"

#include <algorithm>

namespace stoker {
namespace {

/// Sum over the queries i of how many keys lie before i + shift: causal masks and windows.
double keys_before(std::int64_t queries, std::int64_t keys, std::int64_t shift) {
  const std::int64_t first = std::clamp<std::int64_t>(-shift, 0, queries);           // that has one
  const std::int64_t full = std::clamp<std::int64_t>(keys - shift, first, queries);  // that has all
  const auto rising = static_cast<double>(full - first);
  const auto least = static_cast<double>(first + shift);
  return rising * least + rising * (rising - 1) / 2 +
         static_cast<double>(queries - full) * static_cast<double>(keys);
}

}  // namespace

double AttentionShape::pairs() const {
  const double all = static_cast<double>(query_length) * static_cast<double>(key_length);
  // PyTorch's causal mask is aligned at the upper left, flash-attn's windows at the lower right.
  if (!windowed()) return causal ? keys_before(query_length, key_length, 1) : all;
  const std::int64_t offset = key_length - query_length;
  const std::int64_t right = causal ? 0 : after;
  const double until = right < 0 ? all : keys_before(query_length, key_length, offset + right + 1);
  const double passed = before < 0 ? 0 : keys_before(query_length, key_length, offset - before);
  return std::max(0.0, until - passed);
}

std::string_view name_of(AttentionBackend backend) {
  switch (backend) {
    case AttentionBackend::kFlash:
      return "flash";
    case AttentionBackend::kMemoryEfficient:
      return "memory_efficient";
    case AttentionBackend::kMath:
      return "math";
  }
  return "";
}

}  // namespace stoker
