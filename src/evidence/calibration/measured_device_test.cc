#include "evidence/calibration/measured_device.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

using Json = json::Value;

struct Read {
  MeasuredDevice device;
  std::string error;  ///< empty: none
};

Read read(const Json& device) {
  json::Fields fields("rows.json", "measure again");
  Read out;
  out.device = read_measured_device(fields, Json{{"device", device}});
  if (!fields.good()) out.error = fields.error().text();
  return out;
}

TEST(MeasuredDevice, AGpuAsItsProcessSawIt) {
  const Read read_gpu = read({{"kind", "cuda"},
                              {"name", "NVIDIA A100-SXM4-40GB"},
                              {"sm_count", 108},
                              {"cores", 7},
                              {"memory_bytes", 42505273344},
                              {"usable_bytes", 42298834944},
                              {"context_bytes", 461373440},
                              {"clock_mhz", 1410},
                              {"l2_bytes", 41943040},
                              {"compute_capability", "8.0"},
                              {"mig", true}});
  EXPECT_EQ(read_gpu.error, "");
  const MeasuredDevice& gpu = read_gpu.device;
  EXPECT_FALSE(gpu.cpu);
  EXPECT_EQ(gpu.name, "NVIDIA A100-SXM4-40GB");
  EXPECT_EQ(gpu.cores, 108) << "multiprocessors, not the host's cores";
  EXPECT_EQ(gpu.memory, Bytes(42505273344));
  EXPECT_EQ(gpu.usable, Bytes(42298834944));
  EXPECT_EQ(gpu.context, Bytes(461373440));
  EXPECT_EQ(gpu.clock_mhz, 1410);
  EXPECT_EQ(gpu.l2, kMiB * 40);
  EXPECT_EQ(gpu.compute_capability, 80);
  EXPECT_TRUE(gpu.mig);
}

TEST(MeasuredDevice, ACpuAsItsProcessSawIt) {
  const Read read_cpu = read({{"kind", "cpu"},
                              {"name", "Intel(R) Xeon(R) Processor"},
                              {"cores", 2},
                              {"sm_count", 108},
                              {"simd_bits", 512},
                              {"l1_bytes", 49152},
                              {"l3_bytes", nullptr}});
  EXPECT_EQ(read_cpu.error, "");
  EXPECT_TRUE(read_cpu.device.cpu);
  EXPECT_EQ(read_cpu.device.cores, 2);
  EXPECT_EQ(read_cpu.device.simd_bits, 512);
  EXPECT_EQ(read_cpu.device.l1, kKiB * 48);
  EXPECT_EQ(read_cpu.device.l3, Bytes(0)) << "not told";
  EXPECT_EQ(read_cpu.device.clock_mhz, 0);
  EXPECT_FALSE(read_cpu.device.mig);
}

TEST(MeasuredDevice, AComputeCapabilityIsWrittenInThreeWays) {
  const auto capability = [](const Json& value) {
    return read({{"kind", "cuda"}, {"name", "x"}, {"compute_capability", value}})
        .device.compute_capability;
  };
  EXPECT_EQ(capability("8.6"), 86);
  EXPECT_EQ(capability(7.5), 75);
  EXPECT_EQ(capability(9), 90);
  EXPECT_EQ(capability(Json::array({12, 0})), 120);
  EXPECT_EQ(capability(Json::array({8, 9})), 89);
  EXPECT_EQ(capability(nullptr), 0);
  EXPECT_EQ(capability("none"), 0);
  EXPECT_EQ(capability(800), 0);
  EXPECT_EQ(capability(Json::array({8})), 0);
}

TEST(MeasuredDevice, SaysWhatCannotBe) {
  const auto error = [](const Json& device) { return read(device).error; };
  EXPECT_NE(error({{"kind", "tpu"}, {"name", "x"}}).find("device.kind"), std::string::npos);
  EXPECT_NE(error({{"kind", "cpu"}}).find("device.name"), std::string::npos);
  EXPECT_NE(error({{"kind", "cpu"}, {"name", "x"}, {"cores", -1}}).find("device.cores"),
            std::string::npos);
  EXPECT_NE(error({{"kind", "cpu"}, {"name", "x"}, {"cores", 1e9}}).find("device.cores"),
            std::string::npos);
  EXPECT_NE(error({{"kind", "cuda"}, {"name", "x"}, {"memory_bytes", -5}}).find("memory_bytes"),
            std::string::npos);
  EXPECT_NE(error("a GPU").find("device"), std::string::npos);
}

}  // namespace
}  // namespace stoker
