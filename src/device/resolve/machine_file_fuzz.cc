#include <cstdlib>

#include "device/resolve/machine_file.h"

namespace {

const stoker::GpuCatalogue& catalogue() {
  static const stoker::GpuCatalogue parsed = *stoker::GpuCatalogue::parse(
      "gpu,aliases,vendor,architecture,compute_capability,sm_count,fp32_cores_per_sm,boost_mhz,"
      "fp32_tflops,mem_gib,usable_mib,bw_gbs,pcie\n"
      "X1,x,NVIDIA,Volta,7.0,80,64,1530,15.7,16,16160,900,3.0 x16\n",
      "gpus.csv");
  return parsed;
}

}  // namespace

/// Whatever is read must be written and read again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto file = stoker::parse_machine_file(text, "fuzz.toml", catalogue());
  if (!file) return 0;
  const auto again =
      stoker::parse_machine_file(stoker::machine_file_text(*file), "again.toml", catalogue());
  if (!again) std::abort();
  return 0;
}
