#include "device/catalogue/instances.h"

#include <gtest/gtest.h>

#include "device/catalogue/gpu_catalogue.h"
#include "device/resolve/resolve.h"

namespace stoker {
namespace {

const char* const kHeading =
    "provider,instance,gpu,gpus,vcpus,ram_gib,nvme_gb,network_gbit,as_of\n";

Result<InstanceTable> table_of(const std::string& rows) {
  return InstanceTable::parse(kHeading + rows, "instances.csv");
}

TEST(Instances, CarryUnits) {
  const auto table = table_of("aws,g5.2xlarge,A10G,1,8,32,450,10,2026-11\n");
  ASSERT_TRUE(table.has_value()) << table.error().text();
  const auto found = table->find("AWS:G5.2xlarge");
  ASSERT_TRUE(found.has_value()) << found.error().text();
  EXPECT_EQ(found->gpu, "A10G");
  EXPECT_EQ(found->memory, kGiB * 32);
  EXPECT_DOUBLE_EQ(found->network_bandwidth, 1.25e9);
  EXPECT_EQ(found->nvme_gb, 450);
}

TEST(Instances, ABlankCellIsNotKnownAndABadOneIsNamed) {
  const auto blank = table_of("lambda,gpu_1x_a10,A10,1,30,200,,,2026-11\n");
  ASSERT_TRUE(blank.has_value());
  EXPECT_EQ(blank->all()[0].network_bandwidth, 0);
  const auto bad = table_of("aws,x,A10G,1,eight,32,450,10,2026-11\n");
  ASSERT_FALSE(bad.has_value());
  EXPECT_EQ(bad.error().where, "instances.csv:2, vcpus");
  EXPECT_FALSE(table_of("aws,x,A10G,1,8,0,450,10,2026-11\n").has_value());
  EXPECT_FALSE(table_of("").has_value());
}

TEST(Instances, NumbersThatNoMachineHasAreRefused) {
  for (const char* row :
       {"aws,x,A10G,1e62,8,32,450,10,2026-11\n", "aws,x,A10G,1,1e300,32,450,10,2026-11\n",
        "aws,x,A10G,1,8,1.4e62,450,10,2026-11\n"}) {
    const auto table = table_of(row);
    ASSERT_FALSE(table.has_value()) << row;
    EXPECT_NE(table.error().text().find("must be at most"), std::string::npos);
  }
  EXPECT_FALSE(table_of("aws,x,A10G,1025,8,32,450,10,2026-11\n").has_value());
}

TEST(Instances, NamesAreForgivingAndRefusalsHelp) {
  const auto table = table_of(
      "aws,g5.2xlarge,A10G,1,8,32,450,10,2026-11\n"
      "azure,NC4as_T4_v3,T4,1,4,28,,8,2026-11\n");
  ASSERT_TRUE(table.has_value());
  EXPECT_TRUE(table->find("azure:Standard_NC4as_T4_v3").has_value());
  const auto near = table->find("aws:g5.3xlarge");
  ASSERT_FALSE(near.has_value());
  EXPECT_NE(near.error().message.find("g5.2xlarge"), std::string::npos) << near.error().message;
  const auto provider = table->find("hetzner:gex44");
  ASSERT_FALSE(provider.has_value());
  EXPECT_NE(provider.error().message.find("known: aws, azure"), std::string::npos);
}

TEST(Instances, OnlyAColonMakesOne) {
  EXPECT_TRUE(names_an_instance("aws:g5.2xlarge"));
  EXPECT_FALSE(names_an_instance("a100-40gb"));
  EXPECT_FALSE(names_an_instance("lab.toml"));
  EXPECT_FALSE(names_an_instance("./aws:x/lab.toml"));
}

/// Each row of the file that ships becomes a machine whose GPU the catalogue has whole.
TEST(ShippedInstances, BecomeMachines) {
  const auto table = InstanceTable::load();
  ASSERT_TRUE(table.has_value()) << table.error().text();
  ASSERT_GE(table->all().size(), 100U);
  for (const Instance& one : table->all()) {
    const auto machine = resolve_machine(one.provider + ":" + one.name, "", Host{});
    ASSERT_TRUE(machine.has_value()) << one.name << ": " << machine.error().text();
    EXPECT_EQ(machine->device.gpu()->name, one.gpu);
    EXPECT_EQ(machine->gpu_count, one.gpus);
    EXPECT_EQ(machine->host.cores, one.vcpus);
    EXPECT_EQ(machine->host.shared_memory.count() * 2, machine->host.memory.count());
    EXPECT_FALSE(machine->host.assumption.empty());
  }
}

TEST(InstancePrices, AreTheUsersAndDated) {
  Instance g5;
  g5.provider = "aws";
  g5.name = "g5.12xlarge";
  g5.gpus = 4;
  const std::string csv = "instance,price_per_hour,as_of\naws:g5.12xlarge,5.672,2026-11-01\n";
  const auto price = price_of(g5, csv, "prices.csv");
  ASSERT_TRUE(price.has_value()) << price.error().text();
  EXPECT_DOUBLE_EQ(price->per_hour, 5.672);
  EXPECT_EQ(price->as_of, "2026-11-01");
  g5.name = "g5.xlarge";
  EXPECT_EQ(price_of(g5, csv, "prices.csv").error().text(),
            "prices.csv: has no row for aws:g5.xlarge");
  const auto columns = price_of(g5, "instance,price\naws:g5.xlarge,1\n", "prices.csv");
  ASSERT_FALSE(columns.has_value());
  EXPECT_NE(columns.error().message.find("price_per_hour"), std::string::npos);
}

}  // namespace
}  // namespace stoker
