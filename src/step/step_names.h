#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "step/step.h"

namespace stoker {

/// What a step file calls types, storages, phases and ways of capturing
/// (docs/reference/step-file.md).
inline constexpr std::array<std::pair<std::string_view, DType>, kDTypes> kDTypeNames{
    {{"f64", DType::kF64},
     {"f32", DType::kF32},
     {"tf32", DType::kTf32},
     {"f16", DType::kF16},
     {"bf16", DType::kBf16},
     {"f8", DType::kF8},
     {"i64", DType::kI64},
     {"i32", DType::kI32},
     {"i16", DType::kI16},
     {"i8", DType::kI8},
     {"u8", DType::kU8},
     {"b8", DType::kBool},
     {"c64", DType::kC64}}};

inline constexpr std::array<std::pair<std::string_view, StorageKind>, 7> kKinds{
    {{"parameter", StorageKind::kParameter},
     {"buffer", StorageKind::kBuffer},
     {"input", StorageKind::kInput},
     {"gradient", StorageKind::kGradient},
     {"output", StorageKind::kOutput},
     {"transient", StorageKind::kTransient},
     {"persistent", StorageKind::kPersistent}}};

inline constexpr std::array<std::pair<std::string_view, Phase>, 5> kPhases{
    {{"load", Phase::kLoad},
     {"forward", Phase::kForward},
     {"loss", Phase::kLoss},
     {"backward", Phase::kBackward},
     {"end", Phase::kEnd}}};

inline constexpr std::array<std::pair<std::string_view, CaptureKind>, 3> kCaptures{
    {{"cuda", CaptureKind::kCuda},
     {"fake-cuda", CaptureKind::kFakeCuda},
     {"fake-cpu", CaptureKind::kFakeCpu}}};

}  // namespace stoker
