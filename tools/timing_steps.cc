// timing_steps ROWS [--coefficients FILE] | --classes: whole steps through lowering and the step
// model, for fitting and scoring. A developer's tool, not installed; scripts/fit-timing drives it.
//
// ROWS has one step a line, blank-separated:
//   STEP_FILE GPU BATCH PRECISION CHANNELS_LAST GPUS COPY [JOB]
// COPY 0: the input is on the device already (synthetic benchmarks), 1: it is copied there each
// step. JOB "torch1.12": as timm's benchmark.py ran under PyTorch 1.12 (SGD with a loop over the
// parameters, gradients zeroed in place, no fused attention); "benchmark": cuDNN chooses by
// timing; "inference": the same, and no optimizer; "fsdp": AdamW, clipping, the loss in one fused
// kernel. After it, settings of the job in any order: seq_len=N accumulate=N nodes=N
// network=BYTES_PER_S parallel=fsdp-zero3 policy=MIXED_PRECISION checkpoint=MODULES
// cpu=PROCESSOR (blanks as _).
// Each line of standard input is a patch ("gemm.compute=0.9 kernel.floor_us=3", or empty); the
// answer is the time of every step in nanoseconds, as native doubles. One word before the patch
// asks for more:
//   bands    each row's band (below, above)
//   kernels  each row's number of records, its time, what of it the device waited for the host
//   (ns),
//            its parameters, then a record for each kernel: see answer_kernels
//   doubt    each row's time, what the host's spread makes it longer by (a share), the level of its
//            coefficients, then share and spread of each term of its band (names: --terms)
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "device/catalogue/gpu_catalogue.h"
#include "device/host/host_speed.h"
#include "lower/loop/lower.h"
#include "step/step_reader.h"
#include "timing/gpu/gpu_step.h"
#include "timing/gpu/kernel_cost.h"
#include "timing/step/coefficient_file.h"
#include "timing/step/predict_step.h"
#include "timing_tool.h"

namespace stoker {
namespace {

struct Row {
  Machine machine;
  Program program;
  double parameters = 0;  ///< elements
};

/// Copies to the device become nothing.
void drop_copies(Program& program) {
  program.drop([&](const Instruction& in) {
    return in.kind == InstructionKind::kLaunch &&
           program.kernels[in.value].kernel_class == KernelClass::kHostToDevice;
  });
}

double parameters_of(const Step& step) {
  double count = 0;
  for (const Parameter& p : step.parameters) {
    double elements = 1;
    for (const Polynomial& size : step.types[index(p.type)].shape)
      elements *= static_cast<double>(size.evaluate({}).value_or(0));
    count += elements;
  }
  return count;
}

void set_torch_1_12(Job& job) {
  job.optimizer = {.kind = OptimizerKind::kSgd, .loop = OptimizerLoop::kForLoop, .nesterov = true};
  job.cudnn = CudnnProfile::kBenchmark;
  job.cublas_workspaces_in_allocator = false;
  job.zero_grad_fills = true;
  job.attention = AttentionBackend::kMath;
}

void set_fsdp(Job& job) {
  job.optimizer = {.kind = OptimizerKind::kAdamW, .weight_decay = 0.1};
  job.clip = true;
  job.loss = LossKernel::kFused;
}

Status set_cpu(std::string name, Host& host) {
  std::replace(name.begin(), name.end(), '_', ' ');
  const HostSpeed known = TRY(host_speed(name));
  host.cpu = known.cpu;
  host.dispatch_speed = known.speed;
  host.dispatch_spread = known.spread;
  host.dispatch_basis = known.basis;
  return {};
}

/// One setting of the job, "name=value".
Status set(const std::string& item, Job& job, Machine& machine) {
  const std::size_t equals = item.find('=');
  const std::string name = item.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : item.substr(equals + 1);
  if (name == "cpu") return set_cpu(value, machine.host);
  if (name == "seq_len") job.dimensions[name] = std::atoll(value.c_str());
  if (name == "accumulate") job.accumulate = std::atoi(value.c_str());
  if (name == "nodes") job.nodes = std::max(1, std::atoi(value.c_str()));
  if (name == "network") machine.network_bandwidth = std::atof(value.c_str());
  if (name == "checkpoint") job.checkpoint = {value};
  if (name == "parallel") job.parallel = TRY(parse_parallel(value));
  if (name == "policy") job.fsdp_precision = TRY(parse_fsdp_precision(value));
  return {};
}

Result<Row> read_row(const std::string& line, const GpuCatalogue& catalogue,
                     std::map<std::string, Step>& steps) {
  std::istringstream in(line);
  std::string file, gpu, precision;
  Job job;
  bool copy = true;
  in >> file >> gpu >> job.batch >> precision >> job.channels_last >> job.gpus >> copy;
  if (!in) return fail(ErrorCode::kBadInput, "not a row of steps", line);
  if (!steps.contains(file)) {
    auto step = TRY(read_step_file(file));
    steps.emplace(file, std::move(step));
  }
  const auto parsed = TRY(parse_precision(precision));
  job.precision = parsed;
  job.optimizer = captured_optimizer(steps.at(file));
  std::string how;
  in >> how;
  if (how == "torch1.12") set_torch_1_12(job);
  if (how == "benchmark") job.cudnn = CudnnProfile::kBenchmark;
  if (how == "inference") {
    job.cudnn = CudnnProfile::kBenchmark;
    job.optimizer.kind = OptimizerKind::kNone;
  }
  if (how == "fsdp") set_fsdp(job);
  Row row;
  for (std::string item; in >> item;) TRY(set(item, job, row.machine));
  job.tf32_matmul = job.precision == Precision::kTf32;
  const auto found = TRY(catalogue.find(gpu));
  row.machine.device = found;
  row.machine.nodes = job.nodes;
  row.machine.gpu_count = job.gpus / job.nodes;
  auto program = TRY(lower(steps.at(file), job, row.machine));
  row.program = std::move(program);
  if (!copy) drop_copies(row.program);
  row.parameters = parameters_of(steps.at(file));
  return row;
}

Result<std::vector<Row>> read_rows(const std::string& path) {
  auto catalogue = TRY(GpuCatalogue::load());
  std::ifstream file(path);
  if (!file) return fail(ErrorCode::kIo, "cannot be read", path);
  std::vector<Row> rows;
  std::map<std::string, Step> steps;
  for (std::string line; std::getline(file, line);) {
    auto row = TRY(read_row(line, catalogue, steps));
    rows.push_back(std::move(row));
  }
  return rows;
}

/// For each kernel that is launched in every iteration: class, device kernels of the call, time,
/// compute and memory (ns, at the class's efficiencies, without a learned residual).
void answer_kernels(const Row& row, Coefficients coefficients, std::vector<double>& out) {
  coefficients.residual = nullptr;
  const StepTime time = predict_step(row.program, row.machine, coefficients);
  const CostModel model(*row.machine.device.gpu(), coefficients);
  std::vector<double> records;
  for (const Instruction& in : row.program.iteration) {
    if (in.kind != InstructionKind::kLaunch || in.when == When::kFirst) continue;
    const Kernel& kernel = row.program.kernels[in.value];
    const KernelCost cost = model.cost_of(kernel);
    records.insert(records.end(),
                   {static_cast<double>(cost.cost_class), static_cast<double>(kernel.launches),
                    cost.time.count(), cost.compute.count(), cost.memory.count()});
  }
  out.insert(out.end(), {static_cast<double>(records.size() / 5), time.total.count(),
                         time.exposed_host.count(), row.parameters});
  out.insert(out.end(), records.begin(), records.end());
}

void answer_doubt(const Row& row, const Coefficients& coefficients, std::vector<double>& out) {
  const GpuStepModel model(row.program, *row.machine.device.gpu(), coefficients, {});
  const StepTime time = model.predict(row.machine, {});
  const GpuStepModel::Doubt doubt = model.doubt(row.machine, {}, time);
  out.insert(out.end(), {time.total.count(), doubt.host, static_cast<double>(coefficients.level)});
  for (const BandTerm& term : doubt.terms) out.insert(out.end(), {term.share, term.spread});
}

Status answer(const std::vector<Row>& rows, const CoefficientFile& file, std::istringstream& line) {
  CoefficientPatch patch;
  std::string what;
  for (std::string item; line >> item;) {
    if (item == "bands" || item == "kernels" || item == "doubt") {
      what = item;
      continue;
    }
    TRY(timing_tool::add_item(item, patch));
  }
  std::vector<double> out;
  for (const Row& row : rows) {
    // A patch makes coefficients count as calibrated, and an empty one would too.
    auto coefficients =
        TRY(file.for_device(row.machine.device, patch.values.empty() ? nullptr : &patch));
    if (what == "kernels") {
      answer_kernels(row, coefficients, out);
      continue;
    }
    if (what == "doubt") {
      answer_doubt(row, coefficients, out);
      continue;
    }
    const StepTime time = predict_step(row.program, row.machine, coefficients);
    if (what == "bands") {
      out.insert(out.end(), {time.band.below, time.band.above});
    } else {
      out.push_back(time.total.count());
    }
  }
  std::fwrite(out.data(), sizeof(double), out.size(), stdout);
  std::fflush(stdout);
  return {};
}

/// The speed of a processor by its core and clock alone, without what rows say of it.
int print_speed(const char* cpu) {
  const auto known = host_speed(cpu);
  if (!known) {
    std::fprintf(stderr, "timing_steps: %s\n", known.error().text().c_str());
    return 3;
  }
  std::printf("%.6g\n", known->speed / known->measured);
  return 0;
}

int print_classes() {
  for (std::size_t i = 0; i < kCostClasses; ++i)
    std::printf("%s\n", std::string(name_of(static_cast<CostClass>(i))).c_str());
  return 0;
}

int print_terms() {
  for (std::size_t i = 0; i < kBandTerms; ++i) std::printf("%s\n", band_term_name(i).c_str());
  return 0;
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--classes") == 0) return stoker::print_classes();
  if (argc == 2 && std::strcmp(argv[1], "--terms") == 0) return stoker::print_terms();
  if (argc == 3 && std::strcmp(argv[1], "--host-speed") == 0) return stoker::print_speed(argv[2]);
  const bool names_coefficients = argc == 4 && std::strcmp(argv[2], "--coefficients") == 0;
  if (argc == 2 || names_coefficients) {
    return stoker::timing_tool::answer_lines("timing_steps", names_coefficients ? argv[3] : "",
                                             stoker::read_rows(argv[1]), stoker::answer);
  }
  std::fprintf(
      stderr,
      "usage: timing_steps ROWS [--coefficients FILE] | --classes | --terms | --host-speed CPU\n");
  return 2;
}
