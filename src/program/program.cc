#include "program/program.h"

namespace stoker {

std::string_view name_of(BufferRole role) {
  switch (role) {
    case BufferRole::kParameter:
      return "parameters";
    case BufferRole::kModelBuffer:
      return "buffers";
    case BufferRole::kGradient:
      return "gradients";
    case BufferRole::kOptimizerState:
      return "optimizer_state";
    case BufferRole::kInput:
      return "inputs";
    case BufferRole::kActivation:
      return "activations";
    case BufferRole::kTemporary:
      return "temporaries";
    case BufferRole::kWorkspace:
      return "workspaces";
    case BufferRole::kBucket:
      return "communication_buffers";
    case BufferRole::kOutput:
      return "outputs";
  }
  return "";
}

std::string_view name_of(MathUnit unit) {
  switch (unit) {
    case MathUnit::kFp32:
      return "fp32";
    case MathUnit::kTf32Tensor:
      return "tf32_tensor";
    case MathUnit::kFp16Tensor:
      return "fp16_tensor";
    case MathUnit::kBf16Tensor:
      return "bf16_tensor";
    case MathUnit::kFp16:
      return "fp16";
    case MathUnit::kFp64:
      return "fp64";
    case MathUnit::kInteger:
      return "integer";
  }
  return "";
}

std::string_view name_of(StepPhase phase) {
  switch (phase) {
    case StepPhase::kLoad:
      return "load";
    case StepPhase::kForward:
      return "forward";
    case StepPhase::kLoss:
      return "loss";
    case StepPhase::kBackward:
      return "backward";
    case StepPhase::kOptimizer:
      return "optimizer";
  }
  return "";
}

}  // namespace stoker
