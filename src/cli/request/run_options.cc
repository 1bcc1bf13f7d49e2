#include "cli/request/run_options.h"

namespace stoker::cli {

std::vector<Flag> run_flags(RunOptions& o) {
  std::vector<Flag> flags{{"model",
                           "zoo name, step file, torchvision:NAME, timm:NAME or FILE.py:FUNCTION",
                           &o.model, true}};
  const auto append = [&](std::vector<Flag> more) {
    for (Flag& flag : more) flags.push_back(std::move(flag));
  };
  append(grouped(
      "Machine",
      {{"--gpu", "GPU (see `stoker gpus`) or machine file", &o.gpu, true},
       {"--gpus", "number of GPUs; default 1", &o.gpus},
       {"--host", "cores=16,ram=64G,shm=8G or a machine file; default: this machine", &o.host},
       {"--coefficients", "time coefficients of `stoker fit`, over those that ship",
        &o.coefficients},
       {"--price", "money per GPU and hour; for several GPUs one each: 1.3,2.5", &o.price}}));
  append(grouped(
      "Data",
      {{"--data", "folder of pictures, or a probe file of `stoker probe`", &o.data},
       {"--reprobe", "measure the folder again even if a probe is remembered", &o.reprobe},
       {"--samples", "samples in an epoch; default: the pictures in --data", &o.samples},
       {"--sample-cost", "CPU time of one sample instead of --data: 2.5ms", &o.sample_cost},
       {"--image-size", "side that pictures are cropped to; default: the model's", &o.image_size},
       {"--workers", "DataLoader workers per GPU; default: cores / GPUs", &o.workers},
       {"--prefetch", "batches ahead per worker; default 2", &o.prefetch},
       {"--no-pin", "pageable memory: DataLoader(pin_memory=False)", &o.no_pin}}));
  append(grouped("Step",
                 {{"--batch", "per GPU; default: the captured one", &o.batch},
                  {"--precision", "fp32, tf32, amp-fp16, amp-bf16, bf16, fp16", &o.precision}}));
  append(job_flags(o.job));
  append(allocator_flags(o.allocator));
  append(grouped("Answer", {{"--json", "for machines: docs/reference/json.md", &o.json}}));
  return flags;
}

}  // namespace stoker::cli
