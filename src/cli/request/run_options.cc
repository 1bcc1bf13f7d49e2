#include "cli/request/run_options.h"

namespace stoker::cli {

std::vector<Binding> run_bindings(RunOptions& o, SettingTarget batch) {
  return joined({{{"model", &o.model},
                  {"gpu", &o.gpu},
                  {"gpus", &o.gpus},
                  {"host", &o.host},
                  {"coefficients", &o.coefficients},
                  {"price", &o.price},
                  {"data", &o.data},
                  {"from", &o.from},
                  {"recapture", &o.recapture},
                  {"mode", &o.mode},
                  {"lora", &o.lora},
                  {"qlora", &o.qlora},
                  {"assume", &o.assumptions},
                  {"reprobe", &o.reprobe},
                  {"samples", &o.samples},
                  {"sample-cost", &o.sample_cost},
                  {"storage", &o.storage},
                  {"image-size", &o.image_size},
                  {"workers", &o.workers},
                  {"prefetch", &o.prefetch},
                  {"pin", &o.pin},
                  {"persistent-workers", &o.persistent_workers},
                  {"start-method", &o.start_method},
                  {"link", &o.link},
                  {"batch", batch},
                  {"batch-arg", &o.batch_argument},
                  {"time-limit", &o.script_run.time_limit},
                  {"max-host-memory", &o.script_run.max_host_memory},
                  {"fake-data", &o.script_run.fake_data},
                  {"allow-network", &o.script_run.allow_network},
                  {"compile", &o.script_run.compile},
                  {"precision", &o.precision}},
                 job_bindings(o.job),
                 allocator_bindings(o.allocator),
                 {{"strict", &o.strict}, {"html", &o.html}, {"json", &o.json}}});
}

}  // namespace stoker::cli
