#include "device/resolve/machine_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/files.h"
#include "device/calibration_data.h"
#include "device/resolve/resolve.h"

namespace stoker {
namespace {

const GpuCatalogue& catalogue() {
  static const GpuCatalogue loaded = *GpuCatalogue::load();
  return loaded;
}

Result<MachineFile> parsed(const std::string& text) {
  return parse_machine_file(text, "m.toml", catalogue());
}

const char* const kWhole = R"(
format_version = 1
name = "lab"
nodes = 2
[gpu]
base = "rtx-3090"
count = 4
boost_mhz = 1800
usable_memory = "24000MiB"
context_memory = "500M"
price_per_hour = 0.4
[host]
cores = 15.5
memory = "64G"
shm = "8G"
core_speed = 1.2
[disk]
bandwidth_mbs = 2000
iops = 90000
[link]
pcie_gbs = 12.5
network_gbs = 1.25
[provenance]
made_by = "by hand"
[calibration]
launch_floor_us = 7.5
host_dispatch_us = 6
[[calibration.operator]]
kind = "gemm"
m = 4096
n = 1024
k = 512
precision = "tf32"
time_us = 812.5
spread = 0.02
[[calibration.operator]]
kind = "copy"
elements = 33554432
pass = "backward"
warm = false
time_us = 140
)";

TEST(MachineFile, OverridesTheCatalogue) {
  const auto file = parsed(kWhole);
  ASSERT_TRUE(file.has_value()) << file.error().text();
  const Gpu base = *catalogue().find("rtx-3090");
  EXPECT_EQ(file->device->facts().name, "RTX3090");
  EXPECT_DOUBLE_EQ(file->device->gpu()->boost_mhz, 1800);
  EXPECT_DOUBLE_EQ(file->device->facts().bandwidth, base.bandwidth);
  EXPECT_EQ(file->device->facts().usable_memory, kMiB * 24000);
  EXPECT_EQ(*file->device->facts().context_memory, kMiB * 500);
  EXPECT_DOUBLE_EQ(file->device->facts().price_per_hour, 0.4);
  EXPECT_DOUBLE_EQ(file->device->gpu()->pcie_bandwidth, 12.5e9);
  EXPECT_TRUE(file->device->facts().calibrated);
  EXPECT_EQ(file->gpu_count, 4);
  EXPECT_EQ(file->nodes, 2);
  EXPECT_DOUBLE_EQ(file->network_bandwidth, 1.25e9);
  EXPECT_DOUBLE_EQ(file->host->cores, 15.5);
  EXPECT_EQ(file->host->shared_memory, kGiB * 8);
  EXPECT_DOUBLE_EQ(file->host->disk_bandwidth, 2e9);
  EXPECT_DOUBLE_EQ(file->host->disk_iops, 90000);
  EXPECT_EQ(file->provenance.at("made_by"), "by hand");
  EXPECT_NE(file->calibration.find("launch_floor_us = 7.5"), std::string::npos)
      << file->calibration;
}

TEST(MachineFile, ReadsMeasuredOperators) {
  const auto file = parsed(kWhole);
  ASSERT_TRUE(file.has_value()) << file.error().text();
  const Calibration& c = *file->device->facts().calibration;
  EXPECT_DOUBLE_EQ(c.launch_floor_us, 7.5);
  EXPECT_DOUBLE_EQ(c.host_dispatch_us, 6);
  EXPECT_DOUBLE_EQ(c.pinned_gbs, 0);
  ASSERT_EQ(c.operators.size(), 2u);
  EXPECT_EQ(label_of(c.operators[0]), "gemm k=512 m=4096 n=1024 tf32 forward");
  EXPECT_DOUBLE_EQ(c.operators[0].time_us, 812.5);
  EXPECT_DOUBLE_EQ(c.operators[0].spread, 0.02);
  EXPECT_TRUE(c.operators[0].warm);
  EXPECT_EQ(c.operators[1].pass, "backward");
  EXPECT_FALSE(c.operators[1].warm);
  EXPECT_NE(c.operators[1].where.find("m.toml:"), std::string::npos) << c.operators[1].where;
}

/// What a writer makes of measurements is what the reader takes for them.
TEST(MachineFile, MeasuredOperatorsAreWrittenAsTheyAreRead) {
  const auto file = parsed(kWhole);
  ASSERT_TRUE(file.has_value());
  const std::string text = calibration_toml(*file->device->facts().calibration);
  const auto again = parsed("[gpu]\nbase = \"rtx-3090\"\n" + text);
  ASSERT_TRUE(again.has_value()) << again.error().text() << "\n" << text;
  EXPECT_EQ(calibration_toml(*again->device->facts().calibration), text);
  EXPECT_EQ(again->device->facts().calibration->operators.size(), 2u);
}

TEST(MachineFile, RefusesMeasurementsByLine) {
  const auto text = [](const std::string& calibration) {
    const auto file = parsed("[gpu]\nbase = \"rtx-3090\"\n[calibration]\n" + calibration);
    return file ? std::string("read") : file.error().text();
  };
  EXPECT_NE(text("launch_floor = 3\n").find("m.toml:4, [calibration] launch_floor"),
            std::string::npos)
      << text("launch_floor = 3\n");
  EXPECT_NE(text("launch_floor_us = -3\n").find("launch_floor_us"), std::string::npos);
  EXPECT_NE(text("[[calibration.operator]]\ntime_us = 3\n").find("lacks kind"), std::string::npos);
  EXPECT_NE(text("[[calibration.operator]]\nkind = \"gemm\"\nm = 1.5\ntime_us = 3\n")
                .find("m.toml:6, [calibration.operator] m: must be a whole number"),
            std::string::npos)
      << text("[[calibration.operator]]\nkind = \"gemm\"\nm = 1.5\ntime_us = 3\n");
  EXPECT_NE(text("[[calibration.operator]]\nkind = \"gemm\"\ntime_us = 0\n").find("cannot be"),
            std::string::npos);
  EXPECT_NE(text("operator = 3\n").find("[[calibration.operator]]"), std::string::npos);
}

TEST(MachineFile, RefusesFiguresThatNoGpuHas) {
  const auto text = [](const std::string& gpu) {
    const auto file = parsed("[gpu]\nbase = \"rtx-3090\"\n" + gpu);
    return file ? std::string("read") : file.error().text();
  };
  EXPECT_NE(text("bandwidth_gbs = 0\n").find("bandwidth_gbs"), std::string::npos);
  EXPECT_NE(text("boost_mhz = 1e12\n").find("50 MHz to 10000 MHz"), std::string::npos)
      << text("boost_mhz = 1e12\n");
  EXPECT_NE(text("fp32_tflops = 0\n").find("fp32_tflops"), std::string::npos);
  EXPECT_EQ(text("tf32_tensor_tflops = 0\nfp16_tensor_tflops = 0\nbf16_tensor_tflops = 0\n"),
            "read");
}

TEST(MachineFile, WrittenFilesReadBackTheSame) {
  const auto file = parsed(kWhole);
  ASSERT_TRUE(file.has_value());
  MachineFile odd = *file;
  odd.provenance["a \"quoted\" key"] = "tab\tand \\ and\nline";
  odd.name = "caf\u00e9 \uFEFF \u20ac \U0001F600 # no comment";
  odd.device->facts().usable_memory = Bytes(12622168064);
  const std::string text = machine_file_text(odd);
  const auto again = parsed(text);
  ASSERT_TRUE(again.has_value()) << again.error().text() << "\n" << text;
  EXPECT_EQ(machine_file_text(*again), text);
  EXPECT_EQ(again->device->facts().usable_memory, Bytes(12622168064));
  EXPECT_EQ(again->name, odd.name);
  EXPECT_EQ(again->provenance, odd.provenance);
  EXPECT_EQ(again->calibration, odd.calibration);
  EXPECT_DOUBLE_EQ(again->device->facts().peak.bf16_tensor, odd.device->facts().peak.bf16_tensor);
  EXPECT_EQ(again->device->gpu()->compute_capability, 86);
  EXPECT_EQ(again->host->shared_memory, odd.host->shared_memory);
}

TEST(MachineFile, DescribesAGpuFromNothing) {
  const auto file = parsed(
      "[gpu]\nname = \"Own\"\nvendor = \"amd\"\narchitecture = \"CDNA3\"\nsm_count = 100\n"
      "fp32_cores_per_sm = 128\nfp32_tflops = 50\nmemory = \"32G\"\nbandwidth_gbs = 1000\n");
  ASSERT_TRUE(file.has_value()) << file.error().text();
  EXPECT_EQ(file->device->gpu()->vendor, Vendor::kAmd);
  EXPECT_NEAR(file->device->gpu()->boost_mhz, 50e12 / (2e6 * 100 * 128), 1e-9);
  EXPECT_EQ(file->device->facts().usable_memory, kGiB * 32 - kMiB * 256);
  EXPECT_FALSE(file->device->facts().calibrated);
  EXPECT_FALSE(file->host.has_value());
}

TEST(MachineFile, CompletesACatalogueRowThatLacksFigures) {
  EXPECT_FALSE(parsed("[gpu]\nbase = \"GTX850M\"\n").has_value());
  const auto file = parsed(
      "[gpu]\nbase = \"GTX850M\"\nboost_mhz = 936\nfp32_tflops = 1.2\nmemory = "
      "\"2G\"\nbandwidth_gbs = 32\n");
  ASSERT_TRUE(file.has_value()) << file.error().text();
  EXPECT_EQ(file->device->gpu()->chip, "GM107");
}

struct Refusal {
  const char* text;
  const char* where;
  const char* says;
};

TEST(MachineFile, RefusesWithPlaceAndReason) {
  const std::vector<Refusal> refusals{
      {"[gpu]\nbase = \"t4\"\nbandwidth_gbs = 0\n", "m.toml:3, [gpu] bandwidth_gbs", "cannot be"},
      {"[gpu]\nbase = \"t4\"\nboost_mhz = 1e12\n", "m.toml:3, [gpu] boost_mhz", "10000 MHz"},
      {"[gpu]\nbase = \"t4\"\nboost_mhz = nan\n", "m.toml:3, [gpu] boost_mhz", "cannot be"},
      {"[gpu]\nbase = \"t4\"\nfp32_tflops = -8\n", "m.toml:3, [gpu] fp32_tflops", "-8 TFLOP/s"},
      {"[gpu]\nbase = \"t4\"\nfp32_tflops = \"8\"\n", "m.toml:3, [gpu] fp32_tflops",
       "must be a number"},
      {"[gpu]\nbase = \"t4\"\nmemory = 16\n", "m.toml:3, [gpu] memory", "bare number means bytes"},
      {"[gpu]\nbase = \"t4\"\nmemory = \"-2G\"\n", "m.toml:3, [gpu] memory", "negative"},
      {"[gpu]\nbase = \"t4\"\nusable_memory = \"20G\"\n", "m.toml:3, [gpu] usable_memory",
       "exceeds"},
      {"[gpu]\nbase = \"t4\"\ncontext_memory = \"15G\"\n", "m.toml:3, [gpu] context_memory",
       "leaves nothing"},
      {"[gpu]\nbase = \"t4\"\nbandwith_gbs = 300\n", "m.toml:3, [gpu] bandwith_gbs",
       "did you mean bandwidth_gbs?"},
      {"[gpu]\nbase = \"t44\"\n", "m.toml:2, [gpu] base", "did you mean"},
      {"[gpu]\nbase = \"t4\"\ncount = 0\n", "m.toml:3, [gpu] count", "cannot be"},
      {"[gpu]\nbase = \"t4\"\ncount = 1.5\n", "m.toml:3, [gpu] count", "whole number"},
      {"[gpu]\nname = \"Own\"\n", "m.toml:1, [gpu]", "lacks sm_count"},
      {"[gpu]\nboost_mhz = 1000\n", "m.toml:1, [gpu]", "has no name"},
      {"[gpu]\nbase = \"t4\"\narchitecture = \"Voltaa\"\n", "m.toml:3, [gpu] architecture",
       "Turing"},
      {"[host]\ncores = 4\n", "m.toml:1, [host]", "lacks memory"},
      {"[host]\ncores = 4\nmemory = \"8G\"\nshm = \"9G\"\n", "m.toml:4, [host] shm", "exceeds"},
      {"[disk]\niops = 100\n", "m.toml:1, [disk]", "no [host]"},
      {"[link]\npcie_gbs = 10\n", "m.toml:2, [link] pcie_gbs", "no [gpu]"},
      {"[gpus]\nbase = \"t4\"\n", "m.toml:1, gpus", "did you mean gpu?"},
      {"gpu = 3\n", "m.toml:1, gpu", "must be a table"},
      {"format_version = 2\n", "m.toml", "newer than this stoker"},
      {"format_version = \"1\"\n", "m.toml:1, format_version", "whole number"},
      {"# nothing\n", "m.toml", "neither a device ([gpu] or [cpu]) nor a [host]"},
      {"[gpu]\nname = \"caf\u00e9\"\nbas\u00e9 = 1\n", "m.toml:3", "is not TOML"},
      {"[gpu]\nbase = \"t4\"\n\"bas\u00e9\" = 1\n", "m.toml:3, [gpu] bas\u00e9", "mean base?"},
      {"[gpu]\nbase = \"t4\n", "m.toml:2", "is not TOML"},
      {"[@gpu]\nbase = \"t4\"\n", "m.toml:1", "is not TOML"},
      {"[gpu]\nthor\x01[ )= 0.2\n", "m.toml:2", "the control character 1"},
      {"[gpu]\nbase = \"t4\"\n[provenance]\nyear = 2024\n", "m.toml:4, [provenance] year",
       "text in quotes"},
  };
  for (const Refusal& refusal : refusals) {
    const auto file = parsed(refusal.text);
    ASSERT_FALSE(file.has_value()) << refusal.text;
    EXPECT_EQ(file.error().where, refusal.where) << refusal.text;
    EXPECT_NE(file.error().message.find(refusal.says), std::string::npos)
        << refusal.text << file.error().message;
  }
}

TEST(MachineFile, AnEmptyByteIsNoTextAndIsNamedWithItsLine) {
  const auto file = parsed(std::string("[gpu]\nthor\0\0[ )= 0.2\n", 21));
  ASSERT_FALSE(file.has_value());
  EXPECT_EQ(file.error().where, "m.toml:2");
  EXPECT_NE(file.error().message.find("the control character 0"), std::string::npos);
}

TEST(MachineFile, ReportsTheErrorThatStandsFirst) {
  const auto file = parsed("[gpu]\nbase = \"t4\"\nunknown_key = 1\nboost_mhz = -1\n");
  ASSERT_FALSE(file.has_value());
  EXPECT_EQ(file.error().where, "m.toml:3, [gpu] unknown_key");
}

Gpu linked_gpu(const std::string& base, const std::string& link) {
  const auto file = parsed("[gpu]\nbase = \"" + base + "\"\ncount = 2\n[link]\n" + link);
  EXPECT_TRUE(file.has_value()) << (file ? "" : file.error().text());
  return file ? *file->device->gpu() : Gpu();
}

TEST(MachineFile, ABridgeIsNotAssumedAndWhatIsStatedOfALinkWins) {
  const Gpu plain = linked_gpu("rtx-3090", "pcie_gbs = 12.5\n");
  EXPECT_EQ(plain.link, "");
  EXPECT_DOUBLE_EQ(plain.pcie_bandwidth, 12.5e9);
  EXPECT_EQ(plain.bridge, "NVLink bridge");
  EXPECT_FALSE(plain.link_stated || plain.figure_stated);
  EXPECT_TRUE(plain.pcie_stated);
  const Gpu bridged = linked_gpu("rtx-3090", "name = \"NVLink bridge\"\n");
  EXPECT_EQ(bridged.link, "NVLink bridge");
  EXPECT_DOUBLE_EQ(bridged.link_bandwidth, 112.5e9);
  EXPECT_TRUE(bridged.link_stated);
  EXPECT_DOUBLE_EQ(linked_gpu("rtx-3090", "name = \"bridge\"\ngbs = 50\n").link_bandwidth, 50e9);
  // By the number that its data sheet has: no A100's links.
  for (const std::string name : {"NVLink 3", "nvlink", "NVLink"}) {
    EXPECT_EQ(linked_gpu("rtx-3090", "name = \"" + name + "\"\n").link, "NVLink bridge") << name;
    EXPECT_DOUBLE_EQ(linked_gpu("rtx-3090", "name = \"" + name + "\"\n").link_bandwidth, 112.5e9);
  }
  EXPECT_EQ(linked_gpu("rtx-3090", "name = \"NVLink 3\"\ngbs = 600\n").link, "NVLink 3");
  const Gpu figure = linked_gpu("rtx-2080-ti", "gbs = 90\n");
  EXPECT_EQ(figure.link, "NVLink bridge");
  EXPECT_DOUBLE_EQ(figure.link_bandwidth, 90e9);
  const Gpu own = linked_gpu("t4", "gbs = 90\n");
  EXPECT_EQ(own.link, "GPU link");
  const Gpu other = linked_gpu("rtx-3090", "name = \"NVLink 2\"\ngbs = 10\n");
  EXPECT_EQ(other.link, "NVLink 2");
  EXPECT_DOUBLE_EQ(other.link_bandwidth, 10e9);
  EXPECT_DOUBLE_EQ(linked_gpu("a100", "name = \"Odd\"\n").link_bandwidth, 0)
      << "another link's figure is not the base's";
  for (const char* none : {"name = \"\"\n", "name = \"PCIe\"\n", "name = \"none\"\n"})
    EXPECT_EQ(linked_gpu("a100", none).link, "") << none;
  EXPECT_EQ(linked_gpu("a100", "pcie_gbs = 20\n").link, "NVLink 3");
  EXPECT_NE(parsed("[gpu]\nbase = \"a100\"\n[link]\nname = \"PCIe\"\ngbs = 20\n")
                .error()
                .message.find("pcie_gbs"),
            std::string::npos);
}

TEST(ChooseLink, TakesTheBridgeOnRequestAndRefusesWhatTheGpuLacks) {
  Gpu gpu = *catalogue().find("rtx-3090");
  ASSERT_TRUE(choose_link(gpu, GpuLink::kNvlink));
  EXPECT_EQ(gpu.link, "NVLink bridge");
  EXPECT_DOUBLE_EQ(gpu.link_bandwidth, 112.5e9);
  ASSERT_TRUE(choose_link(gpu, GpuLink::kPcie));
  EXPECT_EQ(gpu.link, "");
  Gpu sxm = *catalogue().find("a100-40gb");
  ASSERT_TRUE(choose_link(sxm, GpuLink::kNvlink));
  EXPECT_EQ(sxm.link, "NVLink 3");
  Gpu t4 = *catalogue().find("t4");
  EXPECT_EQ(choose_link(t4, GpuLink::kNvlink).error().where, "{link}");
}

class MachineFileOnDisk : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("stoker_machine_test_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    here_.name = "this machine";
    here_.cores = 2;
    here_.memory = kGiB * 4;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string file(const char* name, const char* text) {
    const auto path = folder_ / name;
    EXPECT_TRUE(write_file(path, text).has_value());
    return path.string();
  }

  std::filesystem::path folder_;
  Host here_;
};

TEST_F(MachineFileOnDisk, ResolveJoinsNamesFilesAndHosts) {
  const std::string whole = file("whole.toml", kWhole);
  const std::string host = file("host.toml", "[host]\ncores = 7\nmemory = \"9G\"\n");
  EXPECT_DOUBLE_EQ(resolve_machine("t4", "", here_)->host.cores, 2);
  EXPECT_DOUBLE_EQ(resolve_machine("t4", "cores=3", here_)->host.cores, 3);
  EXPECT_DOUBLE_EQ(resolve_machine("t4", host, here_)->host.cores, 7);
  const auto machine = resolve_machine(whole, "", here_);
  ASSERT_TRUE(machine.has_value()) << machine.error().text();
  EXPECT_EQ(machine->gpu_count, 4);
  EXPECT_DOUBLE_EQ(machine->host.cores, 15.5);
  EXPECT_DOUBLE_EQ(resolve_machine(whole, "cores=3", here_)->host.cores, 3);
  EXPECT_NE(resolve_machine(host, "", here_).error().message.find("no GPU"), std::string::npos);
  EXPECT_EQ(resolve_machine((folder_ / "none.toml").string(), "", here_).error().code,
            ErrorCode::kIo);
  EXPECT_EQ(resolve_machine("t4", "16", here_).error().code, ErrorCode::kUsage);
}

}  // namespace
}  // namespace stoker
