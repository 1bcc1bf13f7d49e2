#include "accuracy/measure_kinds.h"

#include "accuracy/common/conditions.h"
#include "accuracy/common/llm_rows.h"
#include "accuracy/common/measured_rows.h"
#include "accuracy/input/measures.h"
#include "accuracy/memory/measures.h"
#include "accuracy/scaling/measures.h"
#include "accuracy/time/measures.h"

namespace stoker::accuracy {
namespace {

/// The requests of a measure that needs no captured step.
std::vector<CaptureRequest> wanted_nothing(const Bench&, const Table&) { return {}; }

}  // namespace

const std::vector<MeasureKind>& measure_kinds() {
  static const std::vector<MeasureKind> kKinds{
      {"memory", "timm-a100", "memory/gpumemnet_timm_a100_40gb.csv", wanted_timm_a100,
       run_timm_a100},
      {"memory", "timm-a100-safe-batch", "memory/gpumemnet_timm_a100_40gb.csv", wanted_timm_a100,
       run_safe_batch},
      {"memory", "timm-maxbatch-rtx3090", "memory/timm_train_maxbatch_rtx3090.csv",
       wanted_timm_benchmark, run_timm_maxbatch},
      {"memory", "mlp-a100", "memory/gpumemnet_mlp_a100.csv", wanted_mlp, run_mlp},
      {"memory", "gpumemnet-models", "memory/gpumemnet_paper_models_a100.csv", wanted_named,
       run_paper_models},
      {"memory", "carma", "memory/carma_peak_mem_dgx_station_a100.csv", wanted_named, run_carma},
      {"memory", "schedtune", "memory/schedtune_peak_mem.csv", wanted_schedtune, run_schedtune},
      {"memory", "lambda-batch", "memory/lambda_batch_by_gpu.csv", wanted_batch_bounds,
       run_batch_bounds},
      {"memory", "measured", "measured/*/memory.csv", wanted_measured, run_measured_peaks},
      {"memory", "xmem", "memory/xmem_nvml_ground_truth.csv", wanted_xmem, run_xmem},
      {"memory", "llm-fits", "llm_training.csv", wanted_llm, run_llm_fits},
      {"time", "operators-gemm", "ops-neusight-gemm.csv.gz", wanted_nothing, run_operator_gemm},
      {"time", "operators-elementwise-norm", "ops-neusight-vec.csv.gz", wanted_nothing,
       run_operator_vector},
      {"time", "operators-convolution", "ops-neusight-conv.csv.gz", wanted_nothing,
       run_operator_convolution},
      {"time", "mlpredict-conv", "layers-mlpredict-conv.csv.gz", wanted_nothing,
       run_mlpredict_convolution},
      {"time", "mlpredict-dense", "layers-mlpredict-dense.csv.gz", wanted_nothing,
       run_mlpredict_dense},
      {"time", "iit-layers", "layers-iit-conv.csv.gz", wanted_nothing, run_iit_convolution},
      {"time", "iit-models", "layers-iit-models.csv", wanted_nothing, run_iit_models},
      {"time", "iit-e2e", "e2e-iit.csv", wanted_nothing, run_iit},
      {"time", "vgg16-v100", "e2e-mlpredict-vgg16.csv", wanted_nothing, run_vgg16},
      {"time", "timm-rtx3090", "memory/timm_train_maxbatch_rtx3090.csv", wanted_timm_benchmark,
       run_timm_time},
      {"time", "inference-latency", "inference_latency.csv", wanted_inference_latency,
       run_inference_latency},
      {"time", "neusight", "e2e-neusight.csv", wanted_neusight, run_neusight},
      {"time", "all-reduce", "allreduce.csv", wanted_nothing, run_all_reduce},
      {"time", "ddp-scaling", "ddp-scaling.csv", wanted_nothing, run_published_scaling},
      {"time", "scaling-lambda", "lambda_throughput.csv", wanted_nothing, run_lambda_scaling},
      {"time", "ddp-forecast", "ddp-scaling.csv", wanted_scaling, run_scaling},
      {"time", "measured", "measured/*/steps.csv", wanted_measured, run_measured_steps},
      {"time", "lambda-one-gpu", "lambda_throughput.csv", wanted_lambda_one_gpu,
       run_lambda_one_gpu},
      {"time", "lambda", "lambda_throughput.csv", wanted_lambda, run_lambda},
      {"time", "llm-training", "llm_training.csv", wanted_llm, run_llm_training},
      {"input", "loaders", "measured/input/*.json", wanted_nothing, run_input_loaders},
      {"input", "studies", "studies.csv", wanted_nothing, run_input_studies},
  };
  return kKinds;
}

}  // namespace stoker::accuracy
