#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "device/machine.h"

namespace stoker {

/// The GPUs that ship with the project (data/gpus/gpus.csv), and the names that people type for
/// them.
class GpuCatalogue {
 public:
  /// `name` is the file that errors point at.
  [[nodiscard]] static Result<GpuCatalogue> parse(std::string_view csv, const std::string& name);
  [[nodiscard]] static Result<GpuCatalogue> load(const std::filesystem::path& csv);
  /// The catalogue in data_folder().
  [[nodiscard]] static Result<GpuCatalogue> load();

  /// Accepts the catalogue key, an alias, and what drivers call the card ("NVIDIA A100-SXM4-80GB",
  /// "NVIDIA GeForce RTX 3090"); case, dashes and blanks do not matter. Words that fit several
  /// cards ("v100", "h100") mean the one whose row lists them as an alias, and `assumption` then
  /// says so; words that fit several cards of which none lists them are refused with the choices. A
  /// card whose row lacks a figure that the models need is refused by name.
  [[nodiscard]] Result<Gpu> find(std::string_view typed) const;

  /// All GPUs in the file's order, those with missing figures included.
  [[nodiscard]] const std::vector<Gpu>& all() const { return gpus_; }
  /// The aliases of all()[index], the documented default spelling first.
  [[nodiscard]] const std::vector<std::string>& aliases(std::size_t index) const {
    return aliases_[index];
  }

 private:
  std::vector<Gpu> gpus_;
  std::vector<std::vector<std::string>> aliases_;
};

/// Refuses a GPU without clock, cores, FP32 rate, memory or bandwidth, naming what is missing and
/// the cure.
[[nodiscard]] Status check_complete(const Gpu& gpu);

/// find() on the catalogue that ships.
[[nodiscard]] Result<Gpu> find_gpu(std::string_view typed);
[[nodiscard]] Result<std::vector<Gpu>> all_gpus();

/// "NVIDIA"; "Volta".
[[nodiscard]] std::string_view name_of(Vendor vendor);
[[nodiscard]] std::string_view name_of(Architecture architecture);
[[nodiscard]] Result<Vendor> parse_vendor(std::string_view text);
[[nodiscard]] Result<Architecture> parse_architecture(std::string_view text);
/// One direction of an x16 slot in bytes/s, after 128b/130b coding (PCI-SIG base specifications):
/// "3.0 x16" -> 15.75e9. 0 for an empty text.
[[nodiscard]] Result<double> parse_pcie(std::string_view text);
/// "7.0" -> 70, "gfx90a" and "" -> 0.
[[nodiscard]] Result<int> parse_compute_capability(std::string_view text);

}  // namespace stoker
