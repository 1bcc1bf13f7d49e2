#include "step/step.h"

namespace stoker {

int size_of(DType dtype) {
  switch (dtype) {
    case DType::kF64:
    case DType::kI64:
    case DType::kC64:
      return 8;
    case DType::kF32:
    case DType::kTf32:
    case DType::kI32:
      return 4;
    case DType::kF16:
    case DType::kBf16:
    case DType::kI16:
      return 2;
    case DType::kF8:
    case DType::kI8:
    case DType::kU8:
    case DType::kBool:
      return 1;
  }
  return 0;
}

std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return "f64";
    case DType::kF32:
      return "f32";
    case DType::kTf32:
      return "tf32";
    case DType::kF16:
      return "f16";
    case DType::kBf16:
      return "bf16";
    case DType::kF8:
      return "f8";
    case DType::kI64:
      return "i64";
    case DType::kI32:
      return "i32";
    case DType::kI16:
      return "i16";
    case DType::kI8:
      return "i8";
    case DType::kU8:
      return "u8";
    case DType::kBool:
      return "b8";
    case DType::kC64:
      return "c64";
  }
  return "";
}

std::string_view name_of(Phase phase) {
  switch (phase) {
    case Phase::kLoad:
      return "load";
    case Phase::kForward:
      return "forward";
    case Phase::kLoss:
      return "loss";
    case Phase::kBackward:
      return "backward";
    case Phase::kEnd:
      return "end";
  }
  return "";
}

}  // namespace stoker
