#include "device/resolve/host_option.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

Host here() {
  Host host;
  host.name = "this machine";
  host.cores = 4;
  host.memory = kGiB * 8;
  host.shared_memory = kGiB;
  host.is_this_machine = true;
  host.assumption = "something read here";
  return host;
}

TEST(HostOption, ReadsAllItsParts) {
  const auto host = parse_host("cores=16,ram=64G,shm=8G,disk=2G,iops=50000,speed=1.5", here());
  ASSERT_TRUE(host.has_value()) << host.error().text();
  EXPECT_DOUBLE_EQ(host->cores, 16);
  EXPECT_EQ(host->memory, kGiB * 64);
  EXPECT_EQ(host->shared_memory, kGiB * 8);
  EXPECT_DOUBLE_EQ(host->disk_bandwidth, 2.0 * 1024 * 1024 * 1024);
  EXPECT_DOUBLE_EQ(host->disk_iops, 50000);
  EXPECT_DOUBLE_EQ(host->relative_core_speed, 1.5);
  EXPECT_FALSE(host->is_this_machine);
  EXPECT_EQ(host->assumption, "");
}

TEST(HostOption, TakesAProcessorByName) {
  const auto host = parse_host("cores=8, cpu=AMD EPYC 7742 64-Core Processor ,ram=64G", here());
  ASSERT_TRUE(host) << host.error().text();
  EXPECT_EQ(host->cpu, "AMD EPYC 7742 64-Core Processor");
  EXPECT_NEAR(host->dispatch_speed, 0.59, 0.01);
  for (const char* bad : {"cpu=", "cpu=fast", "cpu=EPYC 7742,cpu=EPYC 7742"})
    EXPECT_FALSE(parse_host(bad, here())) << bad;
}

TEST(HostOption, RefusalsNameEveryPart) {
  const auto host = parse_host("cores=4,dsk=2G", here());
  ASSERT_FALSE(host);
  for (const char* part : {"cores", "ram or memory", "shm", "disk, bytes/s", "iops", "speed"})
    EXPECT_NE(host.error().message.find(part), std::string::npos) << host.error().message;
}

TEST(HostOption, TakesTheRestFromTheBaseAndSaysSo) {
  const auto host = parse_host("cores=2.5", here());
  ASSERT_TRUE(host.has_value());
  EXPECT_DOUBLE_EQ(host->cores, 2.5);
  EXPECT_EQ(host->memory, kGiB * 8);
  EXPECT_EQ(host->assumption, "memory and /dev/shm as this machine");
}

TEST(HostOption, SharedMemoryFollowsGivenMemory) {
  const auto host = parse_host("memory=32G", here());
  ASSERT_TRUE(host.has_value());
  EXPECT_EQ(host->shared_memory, kGiB * 16);
  EXPECT_EQ(host->assumption, "/dev/shm is half of the memory, cores as this machine");
}

TEST(HostOption, RefusesWhatCannotBe) {
  for (const char* bad : {"", ",", "16", "cores=0", "cores=-4", "cores=1e9", "cores=nan",
                          "cores=4x", "ram=0", "ram=-1G", "ram=64Q", "ram=1e30", "cores=4,cores=5",
                          "ram=8G,shm=9G", "ram=8G,shm=0", "cores="}) {
    const auto host = parse_host(bad, here());
    ASSERT_FALSE(host.has_value()) << bad;
    EXPECT_EQ(host.error().code, ErrorCode::kUsage) << bad;
    EXPECT_TRUE(host.error().where.starts_with("{host}")) << bad;
  }
}

TEST(HostOption, WritesWhatWasMeant) {
  const auto meant = [](const char* text) { return parse_host(text, here()).error().message; };
  EXPECT_NE(meant("8 cores, 32 GB").find("write {host} cores=8,ram=32gb"), std::string::npos);
  EXPECT_NE(meant("16vcpus,64GB RAM,shm=8G").find("write {host} cores=16,ram=64gb,shm=8G"),
            std::string::npos);
  EXPECT_NE(meant("16").find("write {host} cores=16"), std::string::npos);
  EXPECT_NE(meant("fast,32GB").find("write it like cores=16"), std::string::npos);
  EXPECT_NE(meant("8 cores,1.5 TB").find("write it like cores=16"), std::string::npos);
  EXPECT_TRUE(parse_host("cores=8,ram=32gb", here())) << "what is written is taken";
}

TEST(HostOption, NamesTheNearestKey) {
  const auto host = parse_host("core=4", here());
  ASSERT_FALSE(host.has_value());
  EXPECT_NE(host.error().message.find("did you mean cores?"), std::string::npos)
      << host.error().message;
}

}  // namespace
}  // namespace stoker
