#include "evidence/calibration/calibrated_machine.h"

#include <gtest/gtest.h>

#include "evidence/training/test_rows.h"

namespace stoker {
namespace {

const GpuCatalogue& catalogue() {
  static const GpuCatalogue loaded = *GpuCatalogue::load();
  return loaded;
}

CalibrationContext context() {
  CalibrationContext c;
  c.catalogue = &catalogue();
  c.here.cores = 2;
  c.here.memory = kGiB * 24;
  c.here.shared_memory = kGiB * 8;
  c.version = "0.1.0";
  return c;
}

CalibrationRuns cpu_runs() {
  return *parse_calibration_runs(test_rows::kCpuCalibration, "cal.json");
}

TEST(CalibratedMachine, AFileIsMadeThatForecastsRead) {
  const CalibratedMachine made = calibrated_machine(cpu_runs(), std::nullopt, context());
  EXPECT_FALSE(made.updated);
  EXPECT_EQ(made.measured_operators, 2u);
  const auto file = parse_machine_file(machine_file_text(made.file), "m.toml", catalogue());
  ASSERT_TRUE(file.has_value()) << file.error().text();
  const Cpu& cpu = *file->device->cpu();
  EXPECT_EQ(cpu.cores, 2);
  EXPECT_DOUBLE_EQ(cpu.bandwidth, 25.3e9);
  // 2 cores x 2.3 GHz x 16 lanes x 2 FLOP x 2 units: more than was sustained.
  EXPECT_DOUBLE_EQ(cpu.peak.fp32, 2 * 2.3e9 * 16 * 2 * 2);
  EXPECT_EQ(*cpu.context_memory, kMiB * 240);
  EXPECT_EQ(cpu.calibration->operators.size(), 2u);
  EXPECT_EQ(cpu.calibration->figures.size(), 6u);
  EXPECT_DOUBLE_EQ(file->host->cores, 2);
  EXPECT_EQ(file->provenance.at("calibrated_by"), "stoker 0.1.0");
  EXPECT_EQ(file->provenance.at("torch"), "2.13.0+cpu");
}

TEST(CalibratedMachine, SaysWhatIsSustained) {
  const CalibratedMachine made = calibrated_machine(cpu_runs(), std::nullopt, context());
  ASSERT_EQ(made.rates.size(), 4u);
  EXPECT_EQ(made.rates[1].kind, RateKind::kFp32);
  EXPECT_EQ(name_of(made.rates[1].kind), "matrix products, fp32");
  EXPECT_EQ(made.rates[1].threads, 2);
  EXPECT_DOUBLE_EQ(made.rates[1].measured, 186e9);
  EXPECT_DOUBLE_EQ(made.rates[1].sheet, 2 * 2.3e9 * 16 * 2 * 2);
  EXPECT_DOUBLE_EQ(made.rates[3].measured, 25.3e9);
  EXPECT_DOUBLE_EQ(made.rates[3].sheet, 0);
  EXPECT_DOUBLE_EQ(made.worst_spread, 0.03);
  EXPECT_EQ(made.worst_label, "forward_us");
}

TEST(CalibratedMachine, WhatAPersonWroteStays) {
  CalibratedMachine made = calibrated_machine(cpu_runs(), std::nullopt, context());
  made.file.device->facts().price_per_hour = 0.4;
  made.file.device->facts().notes = "under the desk";
  made.file.host->shared_memory = kGiB;
  made.file.name = "mine";
  const auto before = parse_machine_file(machine_file_text(made.file), "m.toml", catalogue());
  ASSERT_TRUE(before.has_value()) << before.error().text();
  CalibrationRuns later = cpu_runs();
  later.calibration.operators.pop_back();
  later.calibration.operators[0].time_us = 700;
  for (MeasuredFigure& f : later.calibration.figures) {
    if (f.name == "forward_us") f.value = 5.6;
  }
  const CalibratedMachine updated = calibrated_machine(later, *before, context());
  EXPECT_TRUE(updated.updated);
  EXPECT_DOUBLE_EQ(updated.file.device->facts().price_per_hour, 0.4);
  EXPECT_EQ(updated.file.device->facts().notes, "under the desk");
  EXPECT_EQ(updated.file.host->shared_memory, kGiB);
  EXPECT_EQ(updated.file.name, "mine");
  EXPECT_EQ(updated.kept_operators, 1u);
  ASSERT_EQ(updated.calibration.operators.size(), 2u);
  EXPECT_DOUBLE_EQ(updated.calibration.operators[0].time_us, 700);
  ASSERT_FALSE(updated.changes.empty());
  EXPECT_EQ(updated.changes[0].name, "forward_us");
  EXPECT_NEAR(updated.changes[0].change(), 5.6 / 5.1 - 1, 1e-12);
}

TEST(CalibratedMachine, RowsOfOtherSoftwareGo) {
  const CalibratedMachine made = calibrated_machine(cpu_runs(), std::nullopt, context());
  CalibrationRuns later = cpu_runs();
  later.provenance["torch"] = "3.0";
  later.calibration.operators.pop_back();
  const CalibratedMachine updated = calibrated_machine(later, made.file, context());
  EXPECT_EQ(updated.kept_operators, 0u);
  EXPECT_EQ(updated.calibration.operators.size(), 1u);
  EXPECT_FALSE(updated.notes.empty());
}

/// It corrected forecasts from the rows that are now replaced.
TEST(CalibratedMachine, WhatWasLearnedGoesWithTheRows) {
  CalibratedMachine made = calibrated_machine(cpu_runs(), std::nullopt, context());
  Calibration learned = made.calibration;
  set_figure(learned, {.name = "gemm_pace", .threads = 2, .value = 1.1});
  made.file.device->facts().calibration = std::make_shared<const Calibration>(learned);
  const CalibratedMachine updated = calibrated_machine(cpu_runs(), made.file, context());
  EXPECT_EQ(find_figure(updated.calibration, "gemm_pace", 2), nullptr);
  ASSERT_EQ(updated.notes.size(), 1u);
  EXPECT_NE(updated.notes[0].find("--learn"), std::string::npos);
}

TEST(CalibratedMachine, AnotherMachineIsRefused) {
  const auto file = [](const std::string& text) {
    const auto parsed = parse_machine_file(text, "m.toml", catalogue());
    EXPECT_TRUE(parsed.has_value()) << parsed.error().text();
    return *parsed;
  };
  const MeasuredDevice here = cpu_runs().device;
  const auto cpu = [&](const std::string& name, int cores, const std::string& memory) {
    return file("[cpu]\nname = \"" + name + "\"\ncores = " + std::to_string(cores) +
                "\nfp32_tflops = 1\nbandwidth_gbs = 20\nmemory = \"" + memory + "\"\n");
  };
  EXPECT_TRUE(check_same_device(cpu("Xeon", 2, "24G"), "m.toml", here, catalogue()).has_value());
  // A quota, an affinity or a container's limit makes no other machine.
  for (const MachineFile& limited : {cpu("Xeon", 4, "24G"), cpu("Xeon", 2, "64G")})
    EXPECT_TRUE(check_same_device(limited, "m.toml", here, catalogue()).has_value());
  MachineFile other_cache = cpu("Xeon", 2, "24G");
  other_cache.device->cpu()->l2 = here.l2 * 2;
  for (const MachineFile& other :
       {cpu("Epyc", 2, "24G"), other_cache, file("[gpu]\nbase = \"t4\"\n")}) {
    const auto same = check_same_device(other, "m.toml", here, catalogue());
    ASSERT_FALSE(same.has_value());
    EXPECT_EQ(same.error().where, "m.toml");
    EXPECT_NE(same.error().message.find("another file with -o"), std::string::npos);
  }
  EXPECT_TRUE(
      check_same_device(file("[host]\ncores = 9\nmemory = \"9G\"\n"), "m.toml", here, catalogue())
          .has_value());
  MeasuredDevice t4;
  t4.name = "Tesla T4";
  EXPECT_TRUE(
      check_same_device(file("[gpu]\nbase = \"t4\"\n"), "m.toml", t4, catalogue()).has_value());
  EXPECT_FALSE(check_same_device(file("[gpu]\nbase = \"a100-40gb\"\n"), "m.toml", t4, catalogue())
                   .has_value());
}

TEST(CalibratedMachine, AnotherShareOfTheMachineIsToldAndTaken) {
  const CalibratedMachine made = calibrated_machine(cpu_runs(), std::nullopt, context());
  CalibrationRuns limited = cpu_runs();
  limited.device.cores = 1;
  limited.device.memory = kGiB * 8;
  const CalibratedMachine updated = calibrated_machine(limited, made.file, context());
  EXPECT_EQ(updated.file.device->cpu()->cores, 1);
  EXPECT_EQ(updated.file.device->facts().memory, kGiB * 8);
  ASSERT_EQ(updated.notes.size(), 1u);
  EXPECT_EQ(updated.notes[0],
            "the file was of Xeon with 2 cores and 23.5 GiB, and is of Xeon with 1 cores and 8.0 "
            "GiB: this process's share of the machine changed");
  EXPECT_TRUE(calibrated_machine(cpu_runs(), made.file, context()).notes.empty());
}

TEST(CalibratedMachine, AGpuStartsFromTheCatalogue) {
  CalibrationRuns runs;
  runs.device.name = "Tesla T4";
  runs.device.usable = kMiB * 15000;
  runs.device.context = kMiB * 300;
  runs.calibration.launch_floor_us = 5;
  MeasuredOperator gemm;
  gemm.kind = "gemm";
  gemm.sizes = {{"m", 4096}, {"n", 4096}, {"k", 4096}};
  gemm.time_us = 2.0 * 4096 * 4096 * 4096 / 4e12 * 1e6;  // 4 TFLOP/s
  runs.calibration.operators.push_back(gemm);
  const CalibratedMachine made = calibrated_machine(runs, std::nullopt, context());
  const auto file = parse_machine_file(machine_file_text(made.file), "m.toml", catalogue());
  ASSERT_TRUE(file.has_value()) << file.error().text();
  const Gpu sheet = *catalogue().find("t4");
  EXPECT_EQ(file->device->facts().name, sheet.name);
  EXPECT_DOUBLE_EQ(file->device->facts().peak.fp32, sheet.peak.fp32);
  EXPECT_EQ(file->device->facts().usable_memory, kMiB * 15000);
  EXPECT_EQ(*file->device->facts().context_memory, kMiB * 300);
  ASSERT_FALSE(made.rates.empty());
  EXPECT_NEAR(made.rates[0].measured, 4e12, 1e6);
  EXPECT_DOUBLE_EQ(made.rates[0].sheet, sheet.peak.fp32);
  EXPECT_FALSE(file->host->name.empty());
}

TEST(CalibratedMachine, ASliceOfAGpuHasItsShare) {
  CalibrationRuns runs;
  const Gpu whole = *catalogue().find("a100-40gb");
  runs.device.name = whole.name;
  runs.device.mig = true;
  runs.device.cores = whole.sm_count / 2;
  runs.device.memory = Bytes(whole.memory.count() / 2);
  const CalibratedMachine made = calibrated_machine(runs, std::nullopt, context());
  EXPECT_NEAR(made.file.device->facts().peak.fp32, whole.peak.fp32 / 2, 0.01 * whole.peak.fp32);
  EXPECT_NEAR(made.file.device->facts().bandwidth, whole.bandwidth / 2, 1e6);
  EXPECT_EQ(made.file.device->facts().memory, runs.device.memory);
}

}  // namespace
}  // namespace stoker
