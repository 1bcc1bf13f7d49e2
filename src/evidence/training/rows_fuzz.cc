#include <cstdint>
#include <string_view>

#include "evidence/calibration/calibrated_machine.h"
#include "evidence/training/observation.h"

/// Damaged rows are refused or read, never more; what is read makes a machine file or says why not.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)stoker::parse_observation(text, "fuzz.obs.jsonl");
  if (const auto runs = stoker::parse_training_runs(text, "fuzz.json")) {
    for (const auto& run : runs->runs) (void)stoker::fact_of(run);
  }
  if (const auto runs = stoker::parse_calibration_runs(text, "fuzz.json")) {
    static const stoker::GpuCatalogue catalogue = *stoker::GpuCatalogue::parse(
        "gpu,aliases,vendor,architecture,compute_capability,sm_count,fp32_cores_per_sm,boost_mhz,"
        "fp32_tflops,mem_gib,usable_mib,bw_gbs,pcie\n"
        "X1,x,NVIDIA,Volta,7.0,80,64,1530,15.7,16,16160,900,3.0 x16\n",
        "gpus.csv");
    stoker::Host here;
    here.memory = stoker::kGiB * 4;
    const auto machine = stoker::calibrated_machine(*runs, std::nullopt, {&catalogue, here, "0"});
    (void)stoker::parse_machine_file(stoker::machine_file_text(machine.file), "made.toml",
                                     catalogue);
  }
  return 0;
}
