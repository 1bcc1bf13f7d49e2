#include "device/catalogue/gpu_catalogue.h"

#include <gtest/gtest.h>

#include <set>

#include "base/text.h"

namespace stoker {
namespace {

const char* const kHeading =
    "gpu,aliases,vendor,architecture,compute_capability,sm_count,fp32_cores_per_sm,boost_mhz,"
    "fp32_tflops,mem_gib,usable_mib,bw_gbs,pcie\n";

Result<GpuCatalogue> catalogue_of(const std::string& rows) {
  return GpuCatalogue::parse(kHeading + rows, "gpus.csv");
}

TEST(GpuCatalogue, CarriesUnits) {
  const auto catalogue =
      catalogue_of("X1,x,NVIDIA,Volta,7.0,80,64,1530,15.7,16,16160,900,3.0 x16\n");
  ASSERT_TRUE(catalogue.has_value()) << catalogue.error().text();
  const Gpu gpu = catalogue->all().at(0);
  EXPECT_EQ(gpu.architecture, Architecture::kVolta);
  EXPECT_EQ(gpu.compute_capability, 70);
  EXPECT_DOUBLE_EQ(gpu.peak.fp32, 15.7e12);
  EXPECT_DOUBLE_EQ(gpu.bandwidth, 900e9);
  EXPECT_EQ(gpu.memory, kGiB * 16);
  EXPECT_EQ(gpu.usable_memory, kMiB * 16160);
  EXPECT_NEAR(gpu.pcie_bandwidth, 15.75e9, 0.01e9);
}

TEST(GpuCatalogue, DerivesABlankClockFromTheRate) {
  const auto catalogue =
      catalogue_of("B,b,NVIDIA,Blackwell,10.0,148,128,,75,180,182630,8000,6.0 x16\n");
  ASSERT_TRUE(catalogue.has_value());
  EXPECT_NEAR(catalogue->all()[0].boost_mhz, 75e12 / (2.0 * 148 * 128) / 1e6, 1e-6);
}

TEST(GpuCatalogue, NamesLineAndColumnOfABadCell) {
  const auto zero = catalogue_of("X1,x,NVIDIA,Volta,7.0,80,64,1530,15.7,16,16160,0,3.0 x16\n");
  ASSERT_FALSE(zero.has_value());
  EXPECT_EQ(zero.error().where, "gpus.csv:2, bw_gbs");
  const auto vendor = catalogue_of("X1,x,Matrox,Volta,7.0,80,64,1530,15.7,16,16160,9,3.0 x16\n");
  ASSERT_FALSE(vendor.has_value());
  EXPECT_EQ(vendor.error().where, "gpus.csv:2, vendor");
  const auto cpu = catalogue_of("X1,x,CPU,Volta,7.0,80,64,1530,15.7,16,16160,9,3.0 x16\n");
  ASSERT_FALSE(cpu.has_value());  // a CPU is no row: machine files have [cpu]
  EXPECT_EQ(cpu.error().where, "gpus.csv:2, vendor");
}

TEST(GpuCatalogue, RefusesUsableAboveNameplateAndDoubles) {
  const auto above = catalogue_of("X1,x,NVIDIA,Volta,7.0,80,64,1530,15.7,16,17000,900,3.0 x16\n");
  ASSERT_FALSE(above.has_value());
  EXPECT_NE(above.error().message.find("usable_mib of X1 exceeds"), std::string::npos);
  const std::string row = "X1,x,NVIDIA,Volta,7.0,80,64,1530,15.7,16,16160,900,3.0 x16\n";
  EXPECT_FALSE(catalogue_of(row + row).has_value());
}

/// What people and drivers call cards, against the file that ships.
TEST(ShippedGpus, AnswerToTheNamesPeopleType) {
  const auto catalogue = GpuCatalogue::load();
  ASSERT_TRUE(catalogue.has_value()) << catalogue.error().text();
  const std::vector<std::pair<const char*, const char*>> names{
      {"v100-16gb", "V100-SXM2-16GB"},
      {"V100 32GB", "V100-SXM2-32GB"},
      {"Tesla V100-SXM2-16GB", "V100-SXM2-16GB"},
      {"Tesla V100-PCIE-32GB", "V100-PCIe-32GB"},
      {"a100-40gb", "A100-SXM4-40GB"},
      {"a100_80g", "A100-SXM4-80GB"},
      {"NVIDIA A100-SXM4-80GB", "A100-SXM4-80GB"},
      {"NVIDIA A100-PCIE-40GB", "A100-PCIe-40GB"},
      {"NVIDIA A100 80GB PCIe", "A100-PCIe-80GB"},
      {"NVIDIA H100 80GB HBM3", "H100-SXM5-80GB"},
      {"NVIDIA H100 PCIe", "H100-PCIe-80GB"},
      {"h200", "H200-SXM-141GB"},
      {"b200", "B200-SXM"},
      {"rtx-3090", "RTX3090"},
      {"NVIDIA GeForce RTX 3090", "RTX3090"},
      {"NVIDIA A10G", "A10G"},
      {"a6000", "RTXA6000"},
      {"NVIDIA RTX A6000", "RTXA6000"},
      {"NVIDIA RTX 6000 Ada Generation", "RTX6000Ada"},
      {"Quadro RTX 6000", "RTX6000-Turing"},
      {"Quadro RTX 8000", "RTX8000-Turing"},
      {"Tesla V100S-PCIE-32GB", "V100S-PCIe-32GB"},
      {"NVIDIA GeForce RTX 4070 Ti SUPER", "RTX4070TiSuper"},
      {"rtx 5090", "RTX5090"},
      {"NVIDIA H100 NVL", "H100-NVL-94GB"},
      {"NVIDIA GH200 480GB", "GH200-96GB"},
      {"jetson orin", "JetsonAGXOrin-64GB"},
      {"mi325x", "MI325X"},
      {"3090", "RTX3090"},
      {"NVIDIA GeForce RTX 2080 Ti", "RTX2080Ti"},
      {"GTX 1080 Ti", "GTX1080Ti"},
      {"t4", "T4"},
      {"L4", "L4"},
      {"NVIDIA L40S", "L40S"},
      {"mi300x", "MI300X"},
      {"k80", "K80-die"},
      {"rtx 2070 super", "RTX2070Super"},
      {"Quadro P4000", "P4000"}};
  for (const auto& [typed, wanted] : names) {
    const auto gpu = catalogue->find(typed);
    ASSERT_TRUE(gpu.has_value()) << typed << ": " << gpu.error().text();
    EXPECT_EQ(gpu->name, wanted) << typed;
  }
}

TEST(ShippedGpus, SayWhatAnAmbiguousNameWasTakenFor) {
  const auto catalogue = GpuCatalogue::load();
  ASSERT_TRUE(catalogue.has_value());
  const auto v100 = catalogue->find("v100");
  ASSERT_TRUE(v100.has_value());
  EXPECT_EQ(v100->name, "V100-SXM2-16GB");
  EXPECT_NE(v100->assumption.find("v100 taken as V100-SXM2-16GB"), std::string::npos);
  EXPECT_NE(v100->assumption.find("V100-PCIe-32GB"), std::string::npos);
  EXPECT_EQ(catalogue->find("V100-PCIe-32GB")->assumption, "");
  EXPECT_EQ(catalogue->find("t4")->assumption, "");
}

TEST(ShippedGpus, WhatIsNoCardIsRefusedWithWhatToName) {
  const auto catalogue = GpuCatalogue::load();
  ASSERT_TRUE(catalogue.has_value());
  const auto refused = [&](const char* typed) { return catalogue->find(typed).error().message; };
  const auto holds = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_TRUE(holds(refused("a100 or h100"), "several stand with commas: a100,h100"));
  EXPECT_TRUE(holds(refused("a100 vs. h100"), "several stand with commas: a100,h100"));
  EXPECT_TRUE(holds(refused("RTX 3060 Laptop GPU"), "is a laptop's"));
  EXPECT_TRUE(holds(refused("aws"), "name one: aws:g5.2xlarge"));
  EXPECT_TRUE(holds(refused("vast.ai"), "{gpu} rtx-4090 {host} cores=8,ram=32G"));
  EXPECT_TRUE(holds(refused("colab"), "name its GPUs: t4"));
}

TEST(ShippedGpus, EveryNameAndAliasFindsItsRow) {
  const auto catalogue = GpuCatalogue::load();
  ASSERT_TRUE(catalogue.has_value());
  EXPECT_GE(catalogue->all().size(), 39u);
  std::set<std::string> seen;
  for (std::size_t i = 0; i < catalogue->all().size(); ++i) {
    const Gpu& gpu = catalogue->all()[i];
    if (!check_complete(gpu)) continue;
    EXPECT_EQ(catalogue->find(gpu.name)->name, gpu.name);
    for (const std::string& alias : catalogue->aliases(i)) {
      EXPECT_TRUE(seen.insert(simplified(alias)).second) << alias << " is an alias twice";
      const auto found = catalogue->find(alias);
      ASSERT_TRUE(found.has_value()) << alias << ": " << found.error().text();
      EXPECT_EQ(found->name, gpu.name) << alias;
    }
  }
}

TEST(ShippedGpus, AreConsistentWithThemselves) {
  const auto catalogue = GpuCatalogue::load();
  ASSERT_TRUE(catalogue.has_value());
  for (const Gpu& gpu : catalogue->all()) {
    EXPECT_FALSE(gpu.source.empty()) << gpu.name;
    if (!check_complete(gpu)) continue;
    // Data sheets quote FP32 = 2 x cores x boost clock; the matrix-unit rates of AMD are apart.
    const double derived = 2e6 * gpu.sm_count * gpu.fp32_cores_per_sm * gpu.boost_mhz;
    EXPECT_NEAR(gpu.peak.fp32 / derived, 1, 0.02) << gpu.name;
    EXPECT_GT(gpu.usable_memory / gpu.memory, 0.9) << gpu.name;
    EXPECT_LT(gpu.usable_memory / gpu.memory, 1) << gpu.name;
    EXPECT_GE(gpu.peak.fp16_tensor, gpu.peak.tf32_tensor) << gpu.name;
  }
}

TEST(ShippedGpus, RefuseByNameWhatLacksFigures) {
  const auto gpu = find_gpu("gtx850m");
  ASSERT_FALSE(gpu.has_value());
  EXPECT_NE(gpu.error().message.find("GTX850M lacks boost_mhz"), std::string::npos)
      << gpu.error().text();
  EXPECT_NE(gpu.error().message.find("machine file"), std::string::npos);
}

TEST(ShippedGpus, SuggestTheNearest) {
  const auto near = find_gpu("rtx-3091");
  ASSERT_FALSE(near.has_value());
  EXPECT_EQ(near.error().code, ErrorCode::kNotFound);
  EXPECT_NE(near.error().message.find("did you mean"), std::string::npos) << near.error().message;
  const std::string number = find_gpu("rtx4090ti").error().message;
  EXPECT_NE(number.find("did you mean RTX4090?"), std::string::npos) << number;
  const auto far = find_gpu("frobnicator 9000");
  ASSERT_FALSE(far.has_value());
  EXPECT_EQ(far.error().message.find("did you mean"), std::string::npos) << far.error().message;
  EXPECT_EQ(find_gpu(" ").error().code, ErrorCode::kUsage);
}

TEST(ShippedGpus, RefuseWordsThatFitSeveralAndNameThem) {
  const auto gpu = find_gpu("pcie 16gb");
  ASSERT_FALSE(gpu.has_value());
  EXPECT_NE(gpu.error().message.find("P100-PCIe-16GB, V100-PCIe-16GB"), std::string::npos)
      << gpu.error().message;
}

TEST(GpuWords, ParsePcie) {
  EXPECT_NEAR(*parse_pcie("4.0 x16"), 31.5e9, 0.02e9);
  EXPECT_NEAR(*parse_pcie("4.0 x8"), 15.75e9, 0.01e9);
  EXPECT_EQ(*parse_pcie(""), 0);
  for (const char* bad : {"x16", "9.0 x16", "4.0 x0", "4.0 x99", "-1 x16", "4.0", "nan x16"}) {
    EXPECT_FALSE(parse_pcie(bad).has_value()) << bad;
  }
}

TEST(GpuWords, ParseCapabilityAndArchitecture) {
  EXPECT_EQ(*parse_compute_capability("10.0"), 100);
  EXPECT_EQ(*parse_compute_capability("8.6"), 86);
  EXPECT_EQ(*parse_compute_capability("gfx90a"), 0);
  EXPECT_FALSE(parse_compute_capability("0.1").has_value());
  EXPECT_EQ(*parse_architecture("CDNA3"), Architecture::kCdna);
  EXPECT_FALSE(parse_architecture("Voltaa").has_value());
}

TEST(ShippedGpus, WhatIsNoGpuOfTheCatalogueIsRefusedByName) {
  const auto catalogue = GpuCatalogue::load();
  ASSERT_TRUE(catalogue.has_value());
  for (const auto& [typed, words] :
       std::vector<std::pair<const char*, const char*>>{{"tpu-v4", "a Google TPU"},
                                                        {"TPU v3-8", "a Google TPU"},
                                                        {"m2-max", "an Apple GPU"},
                                                        {"mps", "an Apple GPU"},
                                                        {"gaudi2", "an Intel Gaudi (Habana)"},
                                                        {"trn1", "an AWS Trainium"}}) {
    const auto gpu = catalogue->find(typed);
    ASSERT_FALSE(gpu.has_value()) << typed;
    EXPECT_EQ(gpu.error().code, ErrorCode::kUnsupported);
    EXPECT_NE(gpu.error().message.find(words), std::string::npos) << gpu.error().message;
  }
  EXPECT_EQ(catalogue->find("m40")->name, "M40");  // Maxwell, not an Apple M4
}

TEST(ShippedGpus, AGpuThatIsSoldAndNotListedIsNotTakenForATypingError) {
  const auto catalogue = GpuCatalogue::load();
  ASSERT_TRUE(catalogue.has_value());
  for (const char* typed : {"H20", "NVIDIA A2", "Titan RTX", "RTX 3090 Ti", "3060 ti", "A800",
                            "RTX PRO 6000", "H800 80GB"}) {
    const auto gpu = catalogue->find(typed);
    ASSERT_FALSE(gpu.has_value()) << typed;
    EXPECT_EQ(gpu.error().message.find("did you mean"), std::string::npos) << gpu.error().message;
    EXPECT_NE(gpu.error().message.find("is not in the table"), std::string::npos)
        << gpu.error().message;
  }
  EXPECT_NE(catalogue->find("a800").error().message.find("as a100-80gb"), std::string::npos);
}

TEST(ShippedGpus, AnotherFamilyWithAnotherNumberIsNotSuggested) {
  const auto catalogue = GpuCatalogue::load();
  ASSERT_TRUE(catalogue.has_value());
  EXPECT_EQ(catalogue->find("a7000").error().message.find("P4000"), std::string::npos);
  EXPECT_NE(catalogue->find("rtx-3091").error().message.find("did you mean"), std::string::npos);
  EXPECT_NE(catalogue->find("v10").error().message.find("v100"), std::string::npos);
}

}  // namespace
}  // namespace stoker
