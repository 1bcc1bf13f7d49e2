#include "measures.h"

namespace stoker::accuracy {

const std::vector<MeasureKind>& measure_kinds() {
  static const std::vector<MeasureKind> kKinds{
      {"memory", "timm-a100", "memory/gpumemnet_timm_a100_40gb.csv", wanted_timm_a100, run_timm_a100},
      {"memory", "timm-maxbatch-rtx3090", "memory/timm_train_maxbatch_rtx3090.csv", wanted_timm_maxbatch, run_timm_maxbatch},
  };
  return kKinds;
}

}  // namespace stoker::accuracy
