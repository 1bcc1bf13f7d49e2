#include "device/catalogue/instances.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/csv.h"
#include "base/files.h"
#include "base/ranges.h"
#include "base/text.h"
#include "device/catalogue/gpu_catalogue.h"

namespace stoker {
namespace {

constexpr Bytes kLargestTable{4 * 1024 * 1024};
constexpr double kBytesPerGigabit = 1e9 / 8;
/// Linux mounts /dev/shm with half of the memory (tmpfs(5), size=50%); a container has 64 MiB.
constexpr double kShareOfSharedMemory = 0.5;
/// Beyond any machine that is rented out, and of its numbers in a table: GiB, GB, Gbit/s, cores.
constexpr double kMostGpus = 1024, kMostOfAnything = 1 << 20;

/// A positive number; `blank` where the cell is empty and may be.
Result<double> number_in(const CsvRow& row, std::string_view column, const std::string& file,
                         std::optional<double> blank = std::nullopt,
                         double most = kMostOfAnything) {
  const std::string_view cell = row[column];
  if (cell.empty() && blank) return *blank;
  auto value = positive_number(cell);
  const std::string where = file + ":" + std::to_string(row.line) + ", " + std::string(column);
  if (!value) value.error().where = where;
  else if (*value > most)
    return fail(ErrorCode::kBadInput, "must be at most " + shortest(most), where);
  return value;
}

/// "Standard_NC4as_T4_v3" and "nc4as-t4-v3" are one size.
std::string key_of(std::string_view name) {
  std::string key = simplified(name);
  constexpr std::string_view kOfAzure = "standard";
  if (key.starts_with(kOfAzure) && !key.starts_with("standardg")) key.erase(0, kOfAzure.size());
  return key;
}

std::string full_name(const Instance& instance) { return instance.provider + ":" + instance.name; }

Result<Instance> instance_of(const CsvRow& row, const std::string& file) {
  Instance instance;
  instance.provider = row["provider"];
  instance.name = row["instance"];
  instance.gpu = row["gpu"];
  instance.gpus = static_cast<int>(TRY(number_in(row, "gpus", file, {}, kMostGpus)));
  instance.vcpus = TRY(number_in(row, "vcpus", file));
  const double gib = TRY(number_in(row, "ram_gib", file));
  instance.memory = Bytes(std::llround(gib * static_cast<double>(kGiB.count())));
  instance.nvme_gb = TRY(number_in(row, "nvme_gb", file, 0));
  instance.network_bandwidth = TRY(number_in(row, "network_gbit", file, 0)) * kBytesPerGigabit;
  instance.as_of = row["as_of"];
  return instance;
}

}  // namespace

Result<InstanceTable> InstanceTable::parse(std::string_view csv, const std::string& name) {
  InstanceTable table;
  for (const CsvRow& row : TRY(parse_csv(csv, name))) {
    table.instances_.push_back(TRY(instance_of(row, name)));
  }
  if (table.instances_.empty()) return fail(ErrorCode::kBadInput, "lists no machine", name);
  return table;
}

Result<InstanceTable> InstanceTable::load() {
  const auto path = TRY(data_folder()) / "instances" / "instances.csv";
  return parse(TRY(read_file(path, kLargestTable)), path.string());
}

/// Machines that are called so, or have that GPU: "a100" -> "gpu_1x_a100_sxm4, ...".
std::string InstanceTable::meant(std::string_view provider, std::string_view name) const {
  constexpr std::size_t kMost = 4;
  std::vector<std::string> here;
  std::string with_gpu;
  std::size_t count = 0;
  for (const Instance& one : instances_) {
    if (one.provider != provider) continue;
    here.push_back(one.name);
    const bool has = simplified(one.gpu).find(simplified(name)) != std::string::npos;
    if (has && !simplified(name).empty() && count++ < kMost)
      with_gpu += (with_gpu.empty() ? "" : ", ") + one.name;
  }
  return with_gpu.empty() ? suggestion(name, here)
                          : "; with that GPU it has " + with_gpu + (count > kMost ? ", ..." : "");
}

const Instance* InstanceTable::called(std::string_view name) const {
  const auto found = std::find_if(instances_.begin(), instances_.end(), [&](const Instance& one) {
    return key_of(one.name) == key_of(name);
  });
  return found == instances_.end() ? nullptr : &*found;
}

Result<Instance> InstanceTable::find(std::string_view typed) const {
  const std::size_t colon = typed.find(':');
  if (colon == std::string_view::npos) {
    if (const Instance* one = called(typed)) return *one;
  }
  const std::string provider = simplified(typed.substr(0, colon));
  const std::string_view name = typed.substr(std::min(typed.size(), colon + 1));
  bool known_provider = false;
  std::string providers;
  for (const Instance& one : instances_) {
    if (providers.find(one.provider) == std::string::npos)
      providers += (providers.empty() ? "" : ", ") + one.provider;
    if (one.provider != provider) continue;
    if (key_of(one.name) == key_of(name)) return one;
    known_provider = true;
  }
  if (!known_provider) {
    return fail(ErrorCode::kNotFound,
                "no provider is called \"" + std::string(typed.substr(0, colon)) +
                    "\" (known: " + providers + "); a machine file describes any other computer");
  }
  return fail(ErrorCode::kNotFound,
              provider + " has no machine \"" + std::string(name) + "\" in the table" +
                  meant(provider, name) +
                  " (`stoker gpus --instances` lists all; a machine file describes others)");
}

bool names_an_instance(std::string_view typed) {
  const std::size_t colon = typed.find(':');
  if (colon != std::string_view::npos)
    return colon > 0 && typed.find('/') == std::string_view::npos;
  // Names of machines have a dot, a dash or an underscore; those of GPUs that have one, too, are
  // not in the table.
  if (typed.find_first_of(".-_") == std::string_view::npos) return false;
  const auto table = InstanceTable::load();
  return table && table->called(typed) != nullptr;
}

Result<Machine> machine_of(const Instance& instance) {
  Machine machine;
  machine.device = TRY(find_gpu(instance.gpu));
  machine.gpu_count = instance.gpus;
  machine.network_bandwidth = instance.network_bandwidth;
  Host& host = machine.host;
  host.name = full_name(instance);
  host.cores = instance.vcpus;
  host.memory = instance.memory;
  host.shared_memory =
      Bytes(std::llround(kShareOfSharedMemory * static_cast<double>(instance.memory.count())));
  char text[256];
  std::snprintf(text, sizeof text,
                "%s has %d x %s, %g vCPUs, %.0f GiB%s (provider's table, recalled, %s); its cores "
                "are as fast as those of the probe, /dev/shm is half of the memory",
                host.name.c_str(), instance.gpus, instance.gpu.c_str(), instance.vcpus,
                gibibytes(instance.memory), instance.nvme_gb > 0 ? ", local NVMe" : "",
                instance.as_of.c_str());
  host.assumption = text;
  return machine;
}

Result<InstancePrice> price_of(const Instance& instance, std::string_view csv,
                               const std::string& name) {
  const std::string wanted = key_of(instance.name);
  for (const CsvRow& row : TRY(parse_csv(csv, name))) {
    for (const char* column : {"instance", "price_per_hour", "as_of"}) {
      if (!row.cells.contains(column)) {
        return fail(ErrorCode::kBadInput,
                    std::string("has no column \"") + column +
                        "\"; a price file has instance,price_per_hour,as_of",
                    name);
      }
    }
    const std::string_view typed = row["instance"];
    const std::size_t colon = typed.find(':');
    if (colon == std::string_view::npos ||
        simplified(typed.substr(0, colon)) != instance.provider ||
        key_of(typed.substr(colon + 1)) != wanted)
      continue;
    return InstancePrice{TRY(number_in(row, "price_per_hour", name)), std::string(row["as_of"])};
  }
  return fail(ErrorCode::kNotFound, "has no row for " + full_name(instance), name);
}

}  // namespace stoker
