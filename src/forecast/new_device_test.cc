// A device that nobody has heard of is described in one place, a row of the catalogue or a machine
// file: nothing else names it, and every part of a forecast works with it.

#include <gtest/gtest.h>

#include <string>

#include "device/resolve/machine_file.h"
#include "forecast/test_scenario.h"

namespace stoker {
namespace {

const char* const kHeading =
    "gpu,aliases,vendor,architecture,compute_capability,sm_count,fp32_cores_per_sm,boost_mhz,"
    "fp32_tflops,mem_gib,usable_mib,bw_gbs,pcie\n";

GpuCatalogue catalogue_of(const std::string& row) {
  return GpuCatalogue::parse(kHeading + row, "gpus.csv").value();
}

Device described(const std::string& machine_file, const GpuCatalogue& catalogue) {
  return *parse_machine_file(machine_file, "m.toml", catalogue).value().device;
}

class NewDevice : public testing_support::ScenarioTest {
 protected:
  Forecast forecast_on(Device device) {
    scenario_.machine.device = std::move(device);
    return forecast_now();
  }
};

TEST_F(NewDevice, ARowOfTheCatalogueIsAllThatAGpuNeeds) {
  const GpuCatalogue catalogue =
      catalogue_of("Q7,q7,NVIDIA,other,13.0,200,128,2000,102.4,64,64000,4000,6.0 x16\n");
  const Forecast f = forecast_on(catalogue.find("q7").value());
  EXPECT_EQ(f.gpu_name, "Q7");
  EXPECT_EQ(f.memory.nameplate, kGiB * 64);
  EXPECT_EQ(f.memory.usable, kMiB * 64000);
  EXPECT_TRUE(f.memory.fits);
  EXPECT_GT(f.step_ms.low, 0);
  EXPECT_LT(f.step_ms.low, f.step_ms.high);
  EXPECT_NE(f.memory.device_peak.basis.find("allocator simulated"), std::string::npos);
}

TEST_F(NewDevice, AMachineFileIsAllThatAGpuNeeds) {
  const GpuCatalogue catalogue =
      catalogue_of("Q7,q7,NVIDIA,other,13.0,200,128,2000,102.4,64,64000,4000,6.0 x16\n");
  const std::string own =
      "[gpu]\nname = \"Own\"\nvendor = \"NVIDIA\"\nsm_count = 200\nfp32_cores_per_sm = 128\n"
      "fp32_tflops = 102.4\nmemory = \"64G\"\nbandwidth_gbs = 4000\n";
  const Forecast f = forecast_on(described(own, catalogue));
  EXPECT_EQ(f.gpu_name, "Own");
  EXPECT_TRUE(f.memory.fits);
  EXPECT_GT(f.step_ms.value, 0);
  const Forecast based =
      forecast_on(described("[gpu]\nbase = \"q7\"\nmemory = \"32G\"\n", catalogue));
  EXPECT_EQ(based.gpu_name, "Q7");
  EXPECT_EQ(based.memory.nameplate, kGiB * 32);
}

TEST_F(NewDevice, AMachineFileIsAllThatACpuNeeds) {
  const GpuCatalogue catalogue =
      catalogue_of("Q7,q7,NVIDIA,other,13.0,200,128,2000,102.4,64,64000,4000,6.0 x16\n");
  step_.provenance.capture = CaptureKind::kFakeCpu;
  const auto with_cores = [&](int cores) {
    return forecast_on(described("[cpu]\nname = \"Own\"\ncores = " + std::to_string(cores) +
                                     "\nsimd_bits = 256\nclock_mhz = 3000\nbandwidth_gbs = 20\n"
                                     "memory = \"8G\"\n",
                                 catalogue));
  };
  const Forecast f = with_cores(4);
  EXPECT_EQ(f.gpu_name, "Own");
  EXPECT_EQ(f.memory.usable, kGiB * 8);
  EXPECT_GT(f.step_ms.value, 0);
  EXPECT_NE(f.memory.device_peak.basis.find("heap simulated"), std::string::npos);
  EXPECT_EQ(f.job.optimizer.loop, OptimizerLoop::kForLoop);  // as PyTorch runs it there
  EXPECT_LE(with_cores(8).step_ms.value, f.step_ms.value);
}

}  // namespace
}  // namespace stoker
