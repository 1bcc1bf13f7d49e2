#include "measures.h"

namespace stoker::accuracy {

const std::vector<MeasureKind>& measure_kinds() {
  static const std::vector<MeasureKind> kKinds{
      {"memory", "timm-a100", "memory/gpumemnet_timm_a100_40gb.csv", wanted_timm_a100,
       run_timm_a100},
      {"memory", "timm-maxbatch-rtx3090", "memory/timm_train_maxbatch_rtx3090.csv",
       wanted_timm_maxbatch, run_timm_maxbatch},
      {"memory", "xmem", "memory/xmem_nvml_ground_truth.csv", wanted_xmem, run_xmem},
      {"time", "timm-rtx3090", "memory/timm_train_maxbatch_rtx3090.csv", wanted_timm_maxbatch,
       run_timm_time},
      {"time", "neusight", "e2e-neusight.csv", wanted_neusight, run_neusight},
      {"time", "ddp-scaling", "ddp-scaling.csv", wanted_scaling, run_scaling},
      {"time", "lambda", "lambda_throughput.csv", wanted_lambda, run_lambda},
  };
  return kKinds;
}

}  // namespace stoker::accuracy
