#include "timing/common/coefficients.h"

#include <cmath>
#include <unordered_map>
#include <variant>

#include "base/text.h"

namespace stoker {
namespace {

/// Whether a coefficient may be 0.
enum class Zero : std::uint8_t { kAllowed, kDivides };

/// A coefficient's name in its parts: "gemm", "compute".
struct Name {
  std::string_view group, key;

  [[nodiscard]] std::string text() const {
    std::string text(group);
    text.append(1, '.').append(key);
    return text;
  }
};

double number_of(double value) { return value; }
double number_of(Micros time) { return time.count(); }

/// A number of a Coefficients, to be overridden.
using Member = std::variant<double*, Micros*>;
void write(double value, Member member) {
  if (double** plain = std::get_if<double*>(&member)) **plain = value;
  else *std::get<Micros*>(member) = Micros(value);
}

/// Calls `visit(name, member, zero)` for every number of a Coefficients. One list serves reading
/// and overriding.
template <class C, class Visit>
void visit_all(C& c, Visit&& visit) {
  constexpr Zero kAllowed = Zero::kAllowed, kDivides = Zero::kDivides;
  for (const CostClassRow& row : cost_classes()) {
    auto& entry = c.classes[static_cast<std::size_t>(row.cost_class)];
    visit(Name{row.name, "compute"}, entry.compute, kDivides);
    visit(Name{row.name, "memory"}, entry.memory, kDivides);
    visit(Name{row.name, "spread"}, entry.spread, kAllowed);
    visit(Name{row.name, "scale"}, entry.scale, kDivides);
  }
  visit(Name{"kernel", "floor_us"}, c.kernel.floor, kAllowed);
  visit(Name{"kernel", "launch_us"}, c.kernel.launch, kAllowed);
  visit(Name{"kernel", "l2_speedup"}, c.kernel.l2_speedup, kDivides);
  visit(Name{"kernel", "l2_share"}, c.kernel.l2_share, kDivides);
  visit(Name{"kernel", "bandwidth_exponent"}, c.kernel.bandwidth_exponent, kAllowed);
  visit(Name{"kernel", "bandwidth_reference"}, c.kernel.bandwidth_reference, kDivides);
  visit(Name{"kernel", "tile_prologue"}, c.kernel.tile_prologue, kAllowed);
  visit(Name{"kernel", "lone_block"}, c.kernel.lone_block, kDivides);
  visit(Name{"kernel", "unaligned_tensor"}, c.kernel.unaligned_tensor, kDivides);
  visit(Name{"kernel", "recurrence_us"}, c.kernel.recurrence, kAllowed);
  visit(Name{"kernel", "graph_gain_us"}, c.kernel.graph_gain, kAllowed);
  visit(Name{"kernel", "graph_spread"}, c.kernel.graph_spread, kAllowed);
  visit(Name{"kernel", "tensor_exponent"}, c.kernel.tensor_exponent, kAllowed);
  visit(Name{"kernel", "tensor_gemm_exponent"}, c.kernel.tensor_gemm_exponent, kAllowed);
  visit(Name{"kernel", "tensor_reference"}, c.kernel.tensor_reference, kDivides);
  visit(Name{"kernel", "unaligned_convolution"}, c.kernel.unaligned_convolution, kDivides);
  visit(Name{"kernel", "unaligned_depthwise"}, c.kernel.unaligned_depthwise, kDivides);
  visit(Name{"power", "share"}, c.power.share, kDivides);
  visit(Name{"power", "pj_28nm"}, c.power.pj_28nm, kDivides);
  visit(Name{"power", "pj_16nm"}, c.power.pj_16nm, kDivides);
  visit(Name{"power", "pj_12nm"}, c.power.pj_12nm, kDivides);
  visit(Name{"power", "pj_8nm"}, c.power.pj_8nm, kDivides);
  visit(Name{"power", "pj_7nm"}, c.power.pj_7nm, kDivides);
  visit(Name{"power", "pj_5nm"}, c.power.pj_5nm, kDivides);
  visit(Name{"power", "half_tensor"}, c.power.half_tensor, kDivides);
  visit(Name{"power", "tf32_tensor"}, c.power.tf32_tensor, kDivides);
  visit(Name{"host", "forward_us"}, c.host.forward, kAllowed);
  visit(Name{"host", "backward_us"}, c.host.backward, kAllowed);
  visit(Name{"host", "autograd_us"}, c.host.autograd, kAllowed);
  visit(Name{"host", "module_us"}, c.host.module, kAllowed);
  visit(Name{"host", "library_us"}, c.host.library, kAllowed);
  visit(Name{"host", "product_us"}, c.host.product, kAllowed);
  visit(Name{"host", "rows_us"}, c.host.rows, kAllowed);
  visit(Name{"host", "attention_us"}, c.host.attention, kAllowed);
  visit(Name{"host", "conversion_us"}, c.host.conversion, kAllowed);
  visit(Name{"host", "speed"}, c.host.speed, kAllowed);
  visit(Name{"host", "optimizer_us"}, c.host.optimizer, kAllowed);
  visit(Name{"host", "list_us"}, c.host.list, kAllowed);
  visit(Name{"host", "update_us"}, c.host.update, kAllowed);
  visit(Name{"host", "view_us"}, c.host.view, kAllowed);
  visit(Name{"host", "launch_us"}, c.host.launch, kAllowed);
  visit(Name{"host", "compiled_us"}, c.host.compiled, kAllowed);
  visit(Name{"host", "synchronize_us"}, c.host.synchronize, kAllowed);
  visit(Name{"host", "step_us"}, c.host.step, kAllowed);
  visit(Name{"host", "graph_us"}, c.host.graph, kAllowed);
  visit(Name{"host", "graph_kernel_us"}, c.host.graph_kernel, kAllowed);
  visit(Name{"host", "spread"}, c.host.spread, kAllowed);
  visit(Name{"pcie", "pinned"}, c.copy.pinned, kDivides);
  visit(Name{"pcie", "pageable"}, c.copy.pageable, kDivides);
  visit(Name{"pcie", "latency_us"}, c.copy.latency, kAllowed);
  visit(Name{"collective", "contention"}, c.collective.contention, kAllowed);
  visit(Name{"collective", "straggler"}, c.collective.straggler, kAllowed);
  visit(Name{"collective", "straggler_us"}, c.collective.straggler_wait, kAllowed);
  visit(Name{"collective", "straggler_growth"}, c.collective.straggler_growth, kAllowed);
  visit(Name{"collective", "straggler_most"}, c.collective.straggler_most, kAllowed);
  visit(Name{"collective", "pcie_share"}, c.collective.pcie_share, kDivides);
  visit(Name{"collective", "link_share"}, c.collective.link_share, kDivides);
  visit(Name{"collective", "network_share"}, c.collective.network_share, kDivides);
  visit(Name{"collective", "alpha_us"}, c.collective.alpha, kAllowed);
  visit(Name{"collective", "alpha_rank_us"}, c.collective.alpha_rank, kAllowed);
  visit(Name{"collective", "network_alpha_us"}, c.collective.network_alpha, kAllowed);
  visit(Name{"collective", "machine_spread"}, c.collective.machine_spread, kAllowed);
  visit(Name{"collective", "between_spread"}, c.collective.between_spread, kAllowed);
  visit(Name{"collective", "unfitted_spread"}, c.collective.unfitted_spread, kAllowed);
  visit(Name{"band", "known"}, c.band.known, kDivides);
  visit(Name{"band", "unseen"}, c.band.unseen, kDivides);
  visit(Name{"band", "calibrated"}, c.band.calibrated, kDivides);
  visit(Name{"band", "host"}, c.band.host, kDivides);
  visit(Name{"band", "capped"}, c.band.capped, kAllowed);
  visit(Name{"band", "backward"}, c.band.backward, kAllowed);
  visit(Name{"band", "latency"}, c.band.latency, kAllowed);
  visit(Name{"band", "unseen_convolution"}, c.band.unseen_convolution, kAllowed);
  visit(Name{"spread", "common"}, c.common_spread, kAllowed);
  visit(Name{"spread", "tensor"}, c.tensor_spread, kAllowed);
}

/// Where a name's number stands among those that visit_all visits.
struct Place {
  std::size_t at = 0;
  Zero zero = Zero::kAllowed;
};
using Places = std::unordered_map<std::string, Place>;

/// Made once: files of coefficients name thousands.
const Places& places() {
  static const Places kPlaces = [] {
    Places all;
    const Coefficients defaults;
    visit_all(defaults, [&](const Name& name, auto, Zero zero) {
      all.emplace(name.text(), Place{all.size(), zero});
    });
    return all;
  }();
  return kPlaces;
}

Error unknown_name(std::string_view name) {
  std::vector<std::string> names;
  const Coefficients defaults;
  visit_all(defaults, [&](const Name& n, auto, Zero) { names.push_back(n.text()); });
  return {ErrorCode::kBadInput,
          "no time coefficient is called \"" + std::string(name) + "\"" + suggestion(name, names),
          {}};
}

}  // namespace

std::string_view architecture_name(Architecture architecture) {
  constexpr std::array<std::string_view, 11> kNames{"kepler",    "maxwell", "pascal", "volta",
                                                    "turing",    "ampere",  "ada",    "hopper",
                                                    "blackwell", "cdna",    "other"};
  return kNames[static_cast<std::size_t>(architecture)];
}

double FabricFit::spread_at(double bytes) const {
  for (const Spread& entry : spreads) {
    if (bytes <= entry.bytes) return entry.half_width;
  }
  return spreads.empty() ? 0 : spreads.back().half_width;
}

Coefficients::Coefficients() {
  for (const CostClassRow& row : cost_classes()) {
    classes[static_cast<std::size_t>(row.cost_class)] = {row.prior.compute, row.prior.memory,
                                                         row.prior.spread};
  }
}

Status apply(const CoefficientPatch& patch, Coefficients& coefficients) {
  std::vector<Member> members;
  members.reserve(places().size());
  visit_all(coefficients, [&](const Name&, auto& member, Zero) { members.emplace_back(&member); });
  for (const auto& [wanted, value] : patch.values) {
    if (!std::isfinite(value) || value < 0 || value > 1e18) {
      return fail(ErrorCode::kBadInput, "a time coefficient must be a finite number of at least 0",
                  wanted);
    }
    const auto place = places().find(wanted);
    if (place == places().end()) return tl::unexpected(unknown_name(wanted));
    if (value == 0 && place->second.zero == Zero::kDivides) {
      return fail(ErrorCode::kBadInput, "this time coefficient divides and must be above 0",
                  wanted);
    }
    write(value, members[place->second.at]);
  }
  return {};
}

Result<double> value_of(const Coefficients& coefficients, std::string_view name) {
  const auto place = places().find(std::string(name));
  if (place == places().end()) return tl::unexpected(unknown_name(name));
  std::size_t at = 0;
  double value = NAN;
  visit_all(coefficients, [&](const Name&, auto member, Zero) {
    if (at++ == place->second.at) value = number_of(member);
  });
  return value;
}

}  // namespace stoker
