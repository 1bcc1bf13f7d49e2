#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rewrite/checkpoint.h"
#include "rewrite/step_edit.h"
#include "work/work.h"

namespace stoker {
namespace {

/// A module as the operators of the forward show it.
struct Module {
  std::size_t first = kNowhere;  ///< its first operator
  int own = 0;                   ///< operators of its own code
  int products = 0;  ///< kinds of matrix products, inside too: what makes it more than a layer
  std::set<std::string> children;
};

using Modules = std::map<std::string, Module>;

bool is_product(KernelClass kernel) {
  return kernel == KernelClass::kGemm || kernel == KernelClass::kConvolution ||
         kernel == KernelClass::kAttention || kernel == KernelClass::kRnn;
}

std::string parent_of(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string::npos ? "" : name.substr(0, dot);
}

Modules forward_modules(const Step& step) {
  Modules modules;
  std::set<std::pair<ModuleId, NameId>> counted;  // a shared layer counts once
  for (std::size_t e = 0; e < step.events.size(); ++e) {
    const Event& event = step.events[e];
    if (event.kind == EventKind::kPhase && Phase(event.value) == Phase::kLoss) break;
    if (event.kind == EventKind::kPhase && Phase(event.value) == Phase::kBackward) break;
    if (event.kind != EventKind::kOperator) continue;
    const Operator& op = step.operators[event.value];
    std::string name = step.module_names[index(op.module)];
    ++modules[name].own;
    const int product =
        is_product(step.family_of(op).kernel_class) && counted.emplace(op.module, op.name).second
            ? 1
            : 0;
    while (true) {
      Module& module = modules[name];
      module.first = std::min(module.first, e);
      module.products += product;
      if (name.empty()) break;
      const std::string parent = parent_of(name);
      modules[parent].children.insert(name);
      name = parent;
    }
  }
  return modules;
}

/// What a name is without its number: "encoder.layers.11" -> "encoder.layers."; empty without one.
std::string stem_of(const std::string& name) {
  std::size_t end = name.size();
  while (end > 0 && std::isdigit(static_cast<unsigned char>(name[end - 1])) != 0) --end;
  return end == name.size() || end == 0 ? "" : name.substr(0, end);
}

bool is_block(const Module& module) { return module.products >= 2; }

/// The numbered children of `module` that are more than a layer, if there are at least two.
std::vector<std::string> list_in(const Modules& modules, const Module& module) {
  std::map<std::string, std::vector<std::string>> by_stem;
  for (const std::string& child : module.children) {
    std::string key = child;
    if (child.find_first_not_of("0123456789") == std::string::npos) key = "0" + child;
    const std::string stem = key == child ? stem_of(child) : "#";
    if (!stem.empty() && is_block(modules.at(child))) by_stem[stem].push_back(child);
  }
  std::vector<std::string> longest;
  for (auto& [stem, list] : by_stem) {
    if (list.size() >= 2 && list.size() > longest.size()) longest = std::move(list);
  }
  return longest;
}

/// The longest list of blocks anywhere inside of `name`.
std::size_t longest_inside(const Modules& modules, const std::string& name) {
  std::size_t longest = list_in(modules, modules.at(name)).size();
  for (const std::string& child : modules.at(name).children)
    longest = std::max(longest, longest_inside(modules, child));
  return longest;
}

/// A sequence of blocks and nothing else ("layer1"): its children are the blocks.
bool is_sequence(const Modules& modules, const Module& module) {
  if (module.own > 0) return false;
  bool blocks = false;
  for (const std::string& child : module.children) {
    const std::string leaf = child.substr(child.rfind('.') + 1);
    if (leaf.find_first_not_of("0123456789") != std::string::npos) return false;
    blocks = blocks || is_block(modules.at(child));
  }
  return blocks;
}

/// Collects the outermost blocks. `list` is how many siblings of its kind a module has.
void collect(const Modules& modules, const std::string& name, std::size_t list,
             std::vector<std::string>& blocks) {
  const Module& module = modules.at(name);
  const bool sequence = is_sequence(modules, module);
  if (list >= 2 && !sequence && longest_inside(modules, name) <= list) {
    blocks.push_back(name);
    return;
  }
  const auto same = list_in(modules, module);
  for (const std::string& child : module.children) {
    const bool listed = std::find(same.begin(), same.end(), child) != same.end();
    // A sequence of one block stands beside longer ones ("layer1.0" of a small network).
    const bool only = sequence && list >= 2 && is_block(modules.at(child));
    collect(modules, child, listed ? same.size() : only ? 2 : 1, blocks);
  }
}

}  // namespace

std::vector<std::string> repeated_blocks(const Step& step) {
  const Modules modules = forward_modules(step);
  std::vector<std::string> blocks;
  if (modules.count("") > 0) collect(modules, "", 1, blocks);
  std::sort(blocks.begin(), blocks.end(), [&](const std::string& a, const std::string& b) {
    return modules.at(a).first < modules.at(b).first;
  });
  return blocks;
}

}  // namespace stoker
