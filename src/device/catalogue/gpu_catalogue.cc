#include "device/catalogue/gpu_catalogue.h"

#include <array>
#include <cmath>
#include <utility>

#include "base/csv.h"
#include "base/files.h"
#include "base/text.h"
#include "device/catalogue/gpu_names.h"
#include "device/scales.h"

namespace stoker {
namespace {

constexpr Bytes kLargestCatalogue{4 * 1024 * 1024};

/// Reads the cells of one row; remembers the first cell that is not what it should be.
class Cells {
 public:
  Cells(const CsvRow& row, const std::string& file)
      : row_(row), where_(file + ":" + std::to_string(row.line)) {}

  [[nodiscard]] std::string text(std::string_view column) const {
    return std::string(row_[column]);
  }

  /// 0 for a blank cell; every figure of the table is positive.
  [[nodiscard]] double number(std::string_view column) {
    const std::string_view cell = row_[column];
    if (cell.empty()) return 0;
    const auto value = positive_number(cell);
    if (value && *value <= kLargestFigure) return *value;
    note(column, "\"" + std::string(cell) +
                     "\" is not a positive number; leave the cell blank when unknown");
    return 0;
  }

  template <class T>
  [[nodiscard]] T parsed(std::string_view column, Result<T> value) {
    if (value) return *value;
    note(column, value.error().message);
    return T{};
  }

  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  static constexpr double kLargestFigure = 1e9;  ///< no column's unit is small enough for more

  void note(std::string_view column, std::string message) {
    if (!error_)
      error_ = Error{ErrorCode::kBadInput, std::move(message), where_ + ", " + std::string(column)};
  }

  const CsvRow& row_;
  std::string where_;
  std::optional<Error> error_;
};

Bytes mebibytes_of(double mib) {
  return Bytes(std::llround(mib * static_cast<double>(kMiB.count())));
}

/// A bridge between two cards is sold apart and most computers have none: PCIe until the user says
/// otherwise.
void take_bridge_apart(Gpu& gpu) {
  if (gpu.link.find("bridge") == std::string::npos) return;
  gpu.bridge = std::exchange(gpu.link, {});
  gpu.bridge_bandwidth = std::exchange(gpu.link_bandwidth, 0);
}

Result<Gpu> gpu_of(const CsvRow& row, const std::string& file) {
  Cells cells(row, file);
  Gpu gpu;
  gpu.name = cells.text("gpu");
  gpu.vendor = cells.parsed("vendor", parse_vendor(row["vendor"]));
  gpu.architecture = cells.parsed("architecture", parse_architecture(row["architecture"]));
  gpu.chip = cells.text("chip");
  gpu.compute_capability =
      cells.parsed("compute_capability", parse_compute_capability(row["compute_capability"]));
  gpu.sm_count = static_cast<int>(cells.number("sm_count"));
  gpu.fp32_cores_per_sm = static_cast<int>(cells.number("fp32_cores_per_sm"));
  gpu.boost_mhz = cells.number("boost_mhz");
  gpu.peak.fp32 = cells.number("fp32_tflops") * kTera;
  gpu.peak.fp16 = cells.number("fp16_tflops") * kTera;
  gpu.peak.tf32_tensor = cells.number("tf32_tensor_tflops") * kTera;
  gpu.peak.fp16_tensor = cells.number("fp16_tensor_tflops") * kTera;
  gpu.peak.bf16_tensor = cells.number("bf16_tensor_tflops") * kTera;
  gpu.memory = mebibytes_of(cells.number("mem_gib") * 1024);
  gpu.usable_memory = mebibytes_of(cells.number("usable_mib"));
  gpu.bandwidth = cells.number("bw_gbs") * kGiga;
  gpu.l2 = mebibytes_of(cells.number("l2_mib"));
  gpu.pcie_bandwidth = cells.parsed("pcie", parse_pcie(row["pcie"]));
  gpu.link = cells.text("link");
  gpu.link_bandwidth = cells.number("link_gbs") * kGiga;
  take_bridge_apart(gpu);
  gpu.tdp_watts = cells.number("tdp_w");
  gpu.source = cells.text("source");
  gpu.notes = cells.text("notes");
  if (cells.error()) return tl::unexpected(*cells.error());
  const std::string where = file + ":" + std::to_string(row.line);
  if (gpu.name.empty())
    return fail(ErrorCode::kBadInput, "a GPU has no name in column \"gpu\"", where);
  if (gpu.usable_memory > gpu.memory) {
    return fail(ErrorCode::kBadInput, "usable_mib of " + gpu.name + " exceeds mem_gib", where);
  }
  // FP32 peak = 2 x cores x clock, by which data sheets quote it.
  if (gpu.boost_mhz == 0 && gpu.peak.fp32 > 0 && gpu.sm_count > 0 && gpu.fp32_cores_per_sm > 0) {
    gpu.boost_mhz = gpu.peak.fp32 / (2e6 * gpu.sm_count * gpu.fp32_cores_per_sm);
  }
  return gpu;
}

}  // namespace

Result<GpuCatalogue> GpuCatalogue::parse(std::string_view csv, const std::string& name) {
  auto rows = TRY(parse_csv(csv, name));
  GpuCatalogue catalogue;
  for (const CsvRow& row : rows) {
    auto gpu = TRY(gpu_of(row, name));
    std::vector<std::string> aliases;
    for (std::string& alias : split(row["aliases"], ' ')) {
      if (!alias.empty()) aliases.push_back(std::move(alias));
    }
    for (std::size_t i = 0; i < catalogue.gpus_.size(); ++i) {
      if (simplified(catalogue.gpus_[i].name) == simplified(gpu.name)) {
        return fail(ErrorCode::kBadInput, gpu.name + " is listed twice; remove one row",
                    name + ":" + std::to_string(row.line));
      }
    }
    catalogue.gpus_.push_back(std::move(gpu));
    catalogue.aliases_.push_back(std::move(aliases));
  }
  if (catalogue.gpus_.empty()) return fail(ErrorCode::kBadInput, "lists no GPU", name);
  return catalogue;
}

Result<GpuCatalogue> GpuCatalogue::load(const std::filesystem::path& csv) {
  auto text = TRY(read_file(csv, kLargestCatalogue));
  return parse(text, csv.string());
}

Result<GpuCatalogue> GpuCatalogue::load() {
  auto folder = TRY(data_folder());
  return load(folder / "gpus" / "gpus.csv");
}

Result<Gpu> GpuCatalogue::find(std::string_view typed) const {
  std::vector<GpuNames> names;
  names.reserve(gpus_.size());
  for (std::size_t i = 0; i < gpus_.size(); ++i) names.push_back({gpus_[i].name, aliases_[i]});
  auto match = TRY(match_gpu_name(typed, names));
  Gpu gpu = gpus_[match.index];
  TRY(check_complete(gpu));
  gpu.assumption = match.assumption;
  return gpu;
}

Status check_complete(const Gpu& gpu) {
  const std::array<std::pair<const char*, bool>, 6> needed{
      {{"sm_count", gpu.sm_count > 0},
       {"boost_mhz", gpu.boost_mhz > 0},
       {"fp32_tflops", gpu.peak.fp32 > 0},
       {"memory", gpu.memory.count() > 0},
       {"usable_memory", gpu.usable_memory.count() > 0},
       {"bandwidth_gbs", gpu.bandwidth > 0}}};
  std::string missing;
  for (const auto& [field, known] : needed) {
    if (!known) missing += (missing.empty() ? "" : ", ") + std::string(field);
  }
  if (missing.empty()) return {};
  return fail(ErrorCode::kBadInput, "the GPU " + gpu.name + " lacks " + missing +
                                        "; give them in a machine file ([gpu] base = \"" +
                                        gpu.name +
                                        "\" and the missing keys, docs/reference/machine-file.md)");
}

Result<Gpu> find_gpu(std::string_view typed) {
  auto catalogue = TRY(GpuCatalogue::load());
  return catalogue.find(typed);
}

Result<std::vector<Gpu>> all_gpus() {
  auto catalogue = TRY(GpuCatalogue::load());
  return catalogue.all();
}

}  // namespace stoker
