#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "device/machine.h"

namespace stoker {

/// One kind of machine that a cloud provider rents out, as its pages list it.
struct Instance {
  std::string provider;  ///< "aws"
  std::string name;      ///< "g5.2xlarge"
  std::string gpu;       ///< key of the catalogue
  int gpus = 1;
  double vcpus = 1;              ///< hardware threads, as os.cpu_count() gives them
  Bytes memory;                  ///< DRAM
  double nvme_gb = 0;            ///< local drives together; 0: none, or not known
  double network_bandwidth = 0;  ///< bytes/s of the machine; 0: not known
  std::string as_of;             ///< year and month of the table's row
};

/// The table that ships: data/instances/instances.csv.
class InstanceTable {
 public:
  /// `name` is the file that errors point at.
  [[nodiscard]] static Result<InstanceTable> parse(std::string_view csv, const std::string& name);
  [[nodiscard]] static Result<InstanceTable> load();

  /// `typed`: PROVIDER:NAME ("aws:g5.2xlarge"), or NAME alone; case and a leading "Standard_" do
  /// not matter.
  [[nodiscard]] Result<Instance> find(std::string_view typed) const;
  /// The first machine of that name, whoever rents it out; nullptr: none.
  [[nodiscard]] const Instance* called(std::string_view name) const;
  [[nodiscard]] const std::vector<Instance>& all() const { return instances_; }

 private:
  [[nodiscard]] std::string meant(std::string_view provider, std::string_view name) const;

  std::vector<Instance> instances_;
};

/// Whether what was typed means a rented machine rather than a GPU: "aws:g5.2xlarge", "g5.2xlarge".
[[nodiscard]] bool names_an_instance(std::string_view typed);

/// GPUs, cores, memory and network of the instance. /dev/shm is taken as half of the memory, as
/// Linux mounts it. The host's assumption says what the figures are.
[[nodiscard]] Result<Machine> machine_of(const Instance& instance);

/// What a file of the user's own says of prices: columns instance (PROVIDER:NAME), price_per_hour
/// and as_of (a date). The price of the whole machine per hour.
struct InstancePrice {
  double per_hour = 0;
  std::string as_of;
};
[[nodiscard]] Result<InstancePrice> price_of(const Instance& instance, std::string_view csv,
                                             const std::string& name);

}  // namespace stoker
