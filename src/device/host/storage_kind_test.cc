#include "device/host/storage_kind.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(StorageKinds, AreNamedAndRefusedByName) {
  for (const char* name : {"nvme", "sata", "hdd", "nfs", "lustre", "s3"}) {
    const auto kind = storage_kind_named(name);
    ASSERT_TRUE(kind) << name;
    EXPECT_GT((*kind)->bandwidth, 0);
    EXPECT_LE((*kind)->one_reader, (*kind)->bandwidth) << "one reader gets no more than all";
  }
  EXPECT_EQ((*storage_kind_named("NVMe"))->name, "nvme");
  EXPECT_EQ((*storage_kind_named("ssd"))->name, "sata");
  EXPECT_EQ((*storage_kind_named("EFS"))->name, "nfs");
  EXPECT_EQ((*storage_kind_named("fsx"))->name, "lustre");
  const auto none = storage_kind_named("nsf");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("known: nvme, sata, hdd, nfs, lustre, s3"),
            std::string::npos);
}

TEST(StorageKinds, WhatTheHostHasWins) {
  Host host;
  host.disk_bandwidth = 16e6;
  fill_storage(**storage_kind_named("nfs"), host);
  EXPECT_EQ(host.disk_bandwidth, 16e6);
  EXPECT_EQ(host.disk_iops, 8750);
  EXPECT_NE(host.assumption.find("16 MB/s, 8750 files/s"), std::string::npos) << host.assumption;
}

}  // namespace
}  // namespace stoker
