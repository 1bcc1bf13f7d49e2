#include <array>
#include <charconv>
#include <utility>

#include "base/text.h"
#include "device/catalogue/gpu_catalogue.h"

namespace stoker {
namespace {

template <class T>
using Word = std::pair<std::string_view, T>;

constexpr std::array<Word<Vendor>, 2> kVendors{
    {{"NVIDIA", Vendor::kNvidia}, {"AMD", Vendor::kAmd}}};

constexpr std::array<Word<Architecture>, 11> kArchitectures{
    {{"Kepler", Architecture::kKepler},
     {"Maxwell", Architecture::kMaxwell},
     {"Pascal", Architecture::kPascal},
     {"Volta", Architecture::kVolta},
     {"Turing", Architecture::kTuring},
     {"Ampere", Architecture::kAmpere},
     {"Ada", Architecture::kAda},
     {"Hopper", Architecture::kHopper},
     {"Blackwell", Architecture::kBlackwell},
     {"CDNA", Architecture::kCdna},
     {"other", Architecture::kOther}}};

/// Transfers per second and lane of each PCI Express generation (PCI-SIG base specifications
/// 1.0-6.0).
constexpr std::array<double, 7> kGigaTransfers{0, 2.5, 5, 8, 16, 32, 64};

template <class T, std::size_t N>
std::string_view name_in(const std::array<Word<T>, N>& words, T value) {
  for (const auto& [name, one] : words) {
    if (one == value) return name;
  }
  return "other";
}

template <class T, std::size_t N>
Result<T> value_in(const std::array<Word<T>, N>& words, std::string_view text, const char* what) {
  std::vector<std::string> known;
  for (const auto& [name, value] : words) {
    if (simplified(text) == simplified(name)) return value;
    known.emplace_back(name);
  }
  std::string all;
  for (const std::string& name : known) all += (all.empty() ? "" : ", ") + name;
  return fail(ErrorCode::kBadInput,
              "\"" + std::string(text) + "\" is not a known " + what + "; write one of " + all);
}

}  // namespace

std::string_view name_of(Vendor vendor) { return name_in(kVendors, vendor); }
std::string_view name_of(Architecture architecture) {
  return name_in(kArchitectures, architecture);
}

Result<Vendor> parse_vendor(std::string_view text) { return value_in(kVendors, text, "vendor"); }

Result<Architecture> parse_architecture(std::string_view text) {
  const std::string word = simplified(text);
  if (word.starts_with("cdna")) return Architecture::kCdna;
  return value_in(kArchitectures, text, "architecture");
}

Result<double> parse_pcie(std::string_view text) {
  if (text.empty()) return 0.0;
  const auto refuse = [&] {
    return fail(ErrorCode::kBadInput,
                "\"" + std::string(text) +
                    "\" is not a PCIe slot; write generation and lanes like \"4.0 x16\"");
  };
  const std::vector<std::string> parts = split(text, ' ');
  if (parts.size() != 2 || parts[1].size() < 2 || parts[1][0] != 'x') return refuse();
  double generation = 0;
  int lanes = 0;
  const std::string_view lane_text = std::string_view(parts[1]).substr(1);
  const auto first =
      std::from_chars(parts[0].data(), parts[0].data() + parts[0].size(), generation);
  const auto second = std::from_chars(lane_text.data(), lane_text.data() + lane_text.size(), lanes);
  const auto index = static_cast<std::size_t>(generation >= 0 && generation < 100 ? generation : 0);
  if (first.ec != std::errc() || second.ec != std::errc() || index < 1 ||
      index >= kGigaTransfers.size() || lanes < 1 || lanes > 16) {
    return refuse();
  }
  // 8b/10b coding up to generation 2, 128b/130b from 3 on (6.0's FLIT mode: taken as the same).
  const double coding = index < 3 ? 8.0 / 10.0 : 128.0 / 130.0;
  return kGigaTransfers[index] * 1e9 / 8 * coding * lanes;
}

Result<int> parse_compute_capability(std::string_view text) {
  if (text.empty() || text.starts_with("gfx")) return 0;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 1 || number >= 100) {
    return fail(ErrorCode::kBadInput,
                "\"" + std::string(text) + "\" is not a compute capability; write it like 8.0");
  }
  return static_cast<int>(number * 10 + 0.5);
}

}  // namespace stoker
