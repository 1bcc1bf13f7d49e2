#include "diagnosis/trace/gpu_owners.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "base/text.h"

namespace stoker {
namespace {

constexpr std::int32_t kNone = -1;

/// "Conv2d" of "nn.Module: Conv2d_12".
std::string module_class(const std::string& name) {
  constexpr std::string_view kMark = "nn.Module: ";
  std::string rest = name.substr(kMark.size());
  const std::size_t line = rest.rfind('_');
  if (line != std::string::npos && line + 1 < rest.size() &&
      rest.find_first_not_of("0123456789", line + 1) == std::string::npos)
    rest.resize(line);
  return rest;
}

class Owners {
 public:
  explicit Owners(const TraceTimeline& timeline) : timeline_(timeline), host_(timeline.host()) {
    operator_.assign(host_.size(), kNone);
    module_.assign(host_.size(), kNone);
    backward_.assign(host_.size(), kNone);
    // What encloses stands before what it encloses.
    for (std::size_t i = 0; i < host_.size(); ++i) {
      const std::int32_t outer = timeline.outer()[i];
      if (outer >= 0) {
        const auto o = static_cast<std::size_t>(outer);
        operator_[i] = operator_[o], module_[i] = module_[o], backward_[i] = backward_[o];
      }
      const auto own = static_cast<std::int32_t>(i);
      if (host_[i].work == HostWork::kModule) module_[i] = own;
      if (host_[i].work != HostWork::kOperator) continue;
      operator_[i] = own;
      const bool backward = has_part(timeline.name(host_[i].name), "Backward");
      if (backward) backward_[i] = own;
      else if (host_[i].sequence >= 0 && backward_[i] == kNone) forward_[host_[i].sequence] = own;
    }
  }

  void add(const GpuSpan& work, std::int64_t ns) {
    all_.all_ns += ns;
    const HostSpan* launch = timeline_.launch(work.correlation);
    if (!launch) {
      all_.orphan_ns += ns;
      ++all_.orphans;
      return;
    }
    const auto at = static_cast<std::size_t>(launch - host_.data());
    const bool backward = backward_[at] != kNone;
    const std::int32_t op = operator_[at];
    add(operators_[op == kNone ? "outside of operators" : name_of(op)], ns, backward);
    std::int32_t module = module_[at];
    if (module == kNone && backward) {
      const auto forward = forward_.find(host_[static_cast<std::size_t>(backward_[at])].sequence);
      if (forward != forward_.end()) module = module_[static_cast<std::size_t>(forward->second)];
    }
    if (module == kNone) return;
    const std::string& name = name_of(module);
    Sum& sum = modules_[module_class(name)];
    sum.modules.insert(host_[static_cast<std::size_t>(module)].name);
    add(sum, ns, backward);
  }

  GpuOwners finish() {
    all_.operators = sorted(operators_);
    all_.modules = sorted(modules_);
    return std::move(all_);
  }

 private:
  struct Sum {
    std::int64_t ns = 0, backward_ns = 0, count = 0;
    std::set<std::uint32_t> modules;
  };
  using Sums = std::unordered_map<std::string, Sum>;

  [[nodiscard]] const std::string& name_of(std::int32_t host) const {
    return timeline_.name(host_[static_cast<std::size_t>(host)].name);
  }
  static void add(Sum& sum, std::int64_t ns, bool backward) {
    sum.ns += ns;
    if (backward) sum.backward_ns += ns;
    ++sum.count;
  }
  static std::vector<GpuOwner> sorted(const Sums& sums) {
    std::vector<GpuOwner> owners;
    for (const auto& [name, sum] : sums)
      owners.push_back({name, sum.ns, sum.backward_ns, sum.count,
                        static_cast<std::int64_t>(sum.modules.size())});
    std::ranges::sort(owners, [](const GpuOwner& a, const GpuOwner& b) {
      return a.ns != b.ns ? a.ns > b.ns : a.name < b.name;
    });
    return owners;
  }

  const TraceTimeline& timeline_;
  const std::vector<HostSpan>& host_;
  GpuOwners all_;
  /// The innermost operator, module and backward operator around or at each host span.
  std::vector<std::int32_t> operator_, module_, backward_;
  std::unordered_map<std::int32_t, std::int32_t> forward_;  ///< by sequence number
  Sums operators_, modules_;
};

}  // namespace

GpuOwners gpu_owners(const TraceTimeline& timeline, const std::vector<GpuSpan>& work,
                     TimeSpan window) {
  Owners owners(timeline);
  for (const GpuSpan& w : work) {
    const std::int64_t inside =
        std::min(w.time.end, window.end) - std::max(w.time.start, window.start);
    if (inside > 0) owners.add(w, inside);
  }
  return owners.finish();
}

}  // namespace stoker
