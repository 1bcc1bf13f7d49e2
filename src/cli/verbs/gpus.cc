#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <memory>

#include "base/text.h"
#include "cli/outside/output.h"
#include "cli/verbs/verbs.h"
#include "device/catalogue/gpu_catalogue.h"
#include "device/catalogue/instances.h"
#include "report/json/answer.h"
#include "report/text/layout.h"

namespace stoker::cli {
namespace {

struct GpusArguments {
  std::string name;    ///< words that a row has to hold; empty: any
  std::string memory;  ///< what a GPU has to have at least; empty: any
  bool json = false;
  bool instances = false;
};

/// A size; a number alone counts as GiB, as cards are sold.
Result<Bytes> least_memory(const std::string& text) {
  if (text.empty()) return Bytes(0);
  const bool bare = std::all_of(text.begin(), text.end(),
                                [](unsigned char c) { return std::isdigit(c) != 0 || c == '.'; });
  auto size = parse_bytes(bare ? text + "G" : text);
  if (!size) return fail(ErrorCode::kUsage, size.error().message, "--memory");
  return *size;
}

/// Whether every word of `wanted` stands in one of the names, however it is written there.
bool holds_words(const std::string& wanted, const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += " " + simplified(name);
  const std::vector<std::string> words = split(wanted, ' ');
  return std::all_of(words.begin(), words.end(), [&](const std::string& word) {
    return all.find(simplified(word)) != std::string::npos;
  });
}

std::vector<std::string> names_of(const Gpu& gpu, const std::vector<std::string>& aliases) {
  std::vector<std::string> names{gpu.name, std::string(name_of(gpu.vendor)),
                                 std::string(name_of(gpu.architecture))};
  names.insert(names.end(), aliases.begin(), aliases.end());
  return names;
}

std::vector<std::string> names_of(const Instance& one) {
  return {one.provider + ":" + one.name, one.gpu};
}

/// "; machines to rent: stoker gpus --instances aws" where the words name some; else nothing.
std::string as_instances(const std::string& wanted) {
  const auto table = InstanceTable::load();
  const bool any =
      table && std::any_of(table->all().begin(), table->all().end(),
                           [&](const Instance& one) { return holds_words(wanted, names_of(one)); });
  return any ? "; machines to rent: stoker gpus --instances " + wanted : std::string();
}

/// "no GPU is called x and has 24 GiB or more".
tl::unexpected<Error> none_of(const char* what, const GpusArguments& o, Bytes least) {
  std::string words = std::string("no ") + what;
  if (!o.name.empty()) words += " is called \"" + o.name + "\"";
  if (least > Bytes(0))
    words += (o.name.empty() ? " has " : " and has ") + human_bytes(least) + " or more";
  const bool gpus = !o.instances && !o.name.empty();
  return fail(ErrorCode::kNotFound,
              words + (gpus ? as_instances(o.name) : std::string()) +
                  (o.instances ? "; all: stoker gpus --instances" : "; all: stoker gpus"));
}

std::string whole(double value) { return value > 0 ? fmt::format("{:.0f}", value) : "-"; }
std::string tera(double rate) { return rate > 0 ? fmt::format("{:.1f}", rate * 1e-12) : "-"; }

int show(const GpusArguments& o, const char* field, json::Value list,
         const std::vector<std::vector<std::string>>& table, const std::vector<std::size_t>& words,
         const char* footer) {
  if (o.json) {
    json::Value json = answer("stoker-gpus-1", STOKER_VERSION);
    json[field] = std::move(list);
    print(answer_text(json));
    return 0;
  }
  print(layout::table(table, words, ""));
  print(std::string(footer) + "\n");
  return 0;
}

Result<int> list_instances(const GpusArguments& o, Bytes least) {
  const auto instances = TRY(InstanceTable::load());
  const auto catalogue = TRY(GpuCatalogue::load());
  json::Value list = json::Value::array();
  std::vector<std::vector<std::string>> table{
      {"machine", "GPUs", "", "vCPUs", "GiB", "NVMe GB", "Gbit/s", "as of"}};
  for (const Instance& one : instances.all()) {
    if (!o.name.empty() && !holds_words(o.name, names_of(one))) continue;
    if (least > Bytes(0) && TRY(catalogue.find(one.gpu)).memory < least) continue;
    const std::string name = one.provider + ":" + one.name;
    const double gbit = one.network_bandwidth * 8e-9;
    table.push_back({name, std::to_string(one.gpus), one.gpu, whole(one.vcpus),
                     whole(gibibytes(one.memory)), whole(one.nvme_gb),
                     gbit > 0 ? fmt::format("{:g}", gbit) : "-", one.as_of});
    list.push_back({{"name", name},
                    {"gpu", one.gpu},
                    {"gpus", one.gpus},
                    {"vcpus", one.vcpus},
                    {"memory_bytes", one.memory.count()},
                    {"nvme_gb", one.nvme_gb},
                    {"network_bytes_per_s", one.network_bandwidth},
                    {"as_of", one.as_of}});
  }
  if (list.empty()) return none_of("machine", o, least);
  return show(
      o, "instances", std::move(list), table, {0, 2, 7},
      "\nAs the providers' pages list them, recalled; check them before you rent. Prices age and "
      "are not\nshipped: --price FILE.csv of your own (instance,price_per_hour,as_of).");
}

Result<int> run_gpus(const GpusArguments& o) {
  const Bytes least = TRY(least_memory(o.memory));
  if (o.instances) return list_instances(o, least);
  const auto catalogue = TRY(GpuCatalogue::load());
  json::Value list = json::Value::array();
  std::vector<std::vector<std::string>> table{
      {"GPU", "also", "architecture", "GiB", "GB/s", "FP32", "TF32", "FP16", "BF16", "TDP W"}};
  for (std::size_t i = 0; i < catalogue.all().size(); ++i) {
    const Gpu& g = catalogue.all()[i];
    const auto& aliases = catalogue.aliases(i);
    if (!o.name.empty() && !holds_words(o.name, names_of(g, aliases))) continue;
    if (g.memory < least) continue;
    table.push_back({g.name, aliases.empty() ? "" : aliases.front(),
                     std::string(name_of(g.architecture)), whole(gibibytes(g.memory)),
                     whole(g.bandwidth * 1e-9), tera(g.peak.fp32), tera(g.peak.tf32_tensor),
                     tera(g.peak.fp16_tensor), tera(g.peak.bf16_tensor),
                     g.tdp_watts > 0 ? fmt::format("{:.0f}", g.tdp_watts) : "-"});
    list.push_back({{"name", g.name},
                    {"aliases", aliases},
                    {"vendor", name_of(g.vendor)},
                    {"architecture", name_of(g.architecture)},
                    {"memory_bytes", g.memory.count()},
                    {"usable_bytes", g.usable_memory.count()},
                    {"bandwidth_bytes_per_s", g.bandwidth},
                    {"fp32_flops", g.peak.fp32},
                    {"tf32_tensor_flops", g.peak.tf32_tensor},
                    {"fp16_tensor_flops", g.peak.fp16_tensor},
                    {"bf16_tensor_flops", g.peak.bf16_tensor},
                    {"compute_capability", g.compute_capability},
                    {"sm_count", g.sm_count},
                    {"tdp_watts", g.tdp_watts},
                    {"source", g.source},
                    {"notes", g.notes}});
  }
  if (list.empty()) return none_of("GPU", o, least);
  return show(
      o, "gpus", std::move(list), table, {0, 1, 2},
      "\nRates in TFLOP/s by data sheet, dense. Yours is not here, or differs: write a machine "
      "file (docs/reference/machine-file.md).\nMachines to rent: --instances.");
}

}  // namespace

Command gpus_command() {
  auto o = std::make_shared<GpusArguments>();
  return {"gpus",
          "the GPUs that the catalogue knows, and machines to rent",
          "  stoker gpus a100\n  stoker gpus --memory 24G\n  stoker gpus --instances aws\n",
          {{"name", &o->name},
           {"memory", &o->memory},
           {"instances", &o->instances},
           {"json", &o->json}},
          [o] { return run_gpus(*o); }};
}

}  // namespace stoker::cli
