// timing_cpu ROWS.json rows | timing_cpu ROWS.json step STEP_FILE BATCH THREADS: what measured
// operators of a CPU (docs/guide/calibrating.md) say, for scoring and for looking at errors. A
// developer's tool, not installed.
//
//   rows  each row with the rule's time and what the others say of it when it is left out
//   step  phases and, by phase and function, calls and time; then each operator of the capture
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "base/files.h"
#include "json/text.h"
#include "lower/loop/lower.h"
#include "step/step_reader.h"
#include "timing/cpu/cpu_model.h"
#include "timing/step/predict_step.h"

namespace stoker {
namespace {

Cpu cpu_of(const json::Value& file) {
  const auto& device = file["device"];
  const auto number = [&](const char* name) {
    return device.contains(name) && device[name].is_number() ? device[name].as_double() : 0.0;
  };
  Cpu cpu;
  cpu.name = "cpu";
  cpu.cores = static_cast<int>(number("cores"));
  cpu.simd_bits = static_cast<int>(number("simd_bits"));
  const auto bytes = [&](const char* name) {
    return Bytes(static_cast<std::int64_t>(number(name)));
  };
  cpu.l1 = bytes("l1_bytes"), cpu.l2 = bytes("l2_bytes"), cpu.l3 = bytes("l3_bytes");
  cpu.memory = cpu.usable_memory = bytes("memory_bytes");
  cpu.clock_mhz = number("clock_mhz");
  cpu.peak.fp32 = cpu.cores * cpu.clock_mhz * 1e6 * cpu.simd_bits / 32 * 4;
  auto calibration = std::make_shared<Calibration>();
  for (const auto& f : file["figures"]) {
    calibration->figures.push_back({f["name"].as_string(), f.value("threads", 0),
                                    f["value"].as_double(), f.value("spread", 0.0), "figure"});
    if (f["name"] == "copy_gbs")
      cpu.bandwidth = std::max(cpu.bandwidth, 1e9 * f["value"].as_double());
  }
  for (const auto& o : file["operators"]) {
    MeasuredOperator row;
    row.kind = o["kind"].as_string();
    row.function = o["function"].as_string();
    row.threads = o.value("threads", 0);
    for (const auto& [name, value] : o["sizes"].items()) row.sizes[name] = value.as_integer();
    row.precision = o["precision"].as_string();
    row.pass = o["pass"].as_string();
    row.time_us = o["time_us"].as_double();
    row.spread = o["spread"].as_double();
    row.warm = o["warm"].as_bool();
    row.where = "row";
    calibration->operators.push_back(row);
  }
  cpu.calibration = calibration;
  return cpu;
}

int print_rows(const Cpu& cpu) {
  const auto model = CpuModel::make(cpu);
  if (!model) return std::fprintf(stderr, "%s\n", model.error().text().c_str()), 3;
  for (const CpuModel::LeftOut& row : (*model)->left_out()) {
    const MeasuredOperator& m = cpu.calibration->operators[row.row];
    std::printf("%s\t%s\t%d\t%s\t%.3f\t%.4f\t%.4f\t%.4f\t%.4f\n",
                std::string(name_of(row.group)).c_str(), m.function.c_str(), m.threads,
                (label_of(m) + (m.warm ? "" : " cold")).c_str(), m.time_us, row.residual, row.error,
                row.deviation, m.spread);
  }
  return 0;
}

int print_step(const Cpu& cpu, const char* path, int batch, int threads) {
  const auto complain = [](const Error& e) {
    return std::fprintf(stderr, "%s\n", e.text().c_str()), 3;
  };
  const auto step = read_step_file(path);
  if (!step) return complain(step.error());
  Machine machine;
  machine.device = cpu;
  Job job;
  job.batch = batch;
  job.optimizer = captured_optimizer(*step);
  job.optimizer.loop = OptimizerLoop::kForLoop;
  const auto program = lower(*step, job, machine);
  if (!program) return complain(program.error());
  Coefficients coefficients;
  const auto model = CpuModel::make(cpu);
  if (!model) return complain(model.error());
  coefficients.cpu = *model;
  StepTimeOptions options;
  options.threads = threads;
  if (const char* fresh = std::getenv("FRESH")) options.fresh = Bytes(std::atoll(fresh));
  const StepTime t = predict_step(*program, machine, coefficients, options);
  std::printf("total\t%.4f\t%.3f\t%.3f\n", milliseconds(t.total), t.band.below, t.band.above);
  for (std::size_t p = 0; p < kStepPhases; ++p) {
    std::printf("phase\t%s\t%.4f\t%.4f\n", std::string(name_of(StepPhase(p))).c_str(),
                milliseconds(t.phase_elapsed[p]), milliseconds(t.phase_host[p]));
  }
  std::map<std::string, std::pair<int, double>> sums;
  for (const Instruction& in : program->iteration) {
    if (in.kind != InstructionKind::kLaunch || in.when == When::kFirst) continue;
    const Kernel& k = program->kernels[in.value];
    auto& [calls, ms] =
        sums[std::string(name_of(k.phase)) + "\t" + std::string(program->function_of(k))];
    ++calls;
    ms += milliseconds(t.kernel_times[in.value]);
    std::printf("op\t%s\t%u\t%s\t%.5f\t%lld\t%d\n", std::string(name_of(k.phase)).c_str(), k.source,
                std::string(program->function_of(k)).c_str(),
                milliseconds(t.kernel_times[in.value]), static_cast<long long>(k.elements),
                k.views);
  }
  for (const auto& [name, sum] : sums)
    std::printf("sum\t%s\t%d\t%.4f\n", name.c_str(), sum.first, sum.second);
  return 0;
}

int run(int argc, char** argv) {
  const auto text = read_file(argv[1], kGiB);
  const auto file = json::parse(text.value_or(std::string())).value_or(json::Value());
  if (file.is_null()) return std::fprintf(stderr, "%s: no JSON\n", argv[1]), 3;
  const Cpu cpu = cpu_of(file);
  if (argc == 3) return print_rows(cpu);
  return print_step(cpu, argv[3], std::atoi(argv[4]), std::atoi(argv[5]));
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
  if (argc == 3 || argc == 6) return stoker::run(argc, argv);
  std::fprintf(stderr,
               "usage: timing_cpu ROWS.json rows | timing_cpu ROWS.json step STEP BATCH THREADS\n");
  return 2;
}
