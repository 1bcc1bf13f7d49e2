#include "cli/answers/scaling.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/setting.h"
#include "base/text.h"
#include "cli/outside/output.h"
#include "cli/outside/scenario_tools.h"
#include "cli/request/report_context.h"
#include "cli/request/run_request.h"
#include "forecast/node_share.h"
#include "forecast/time/scaling.h"
#include "report/model/scaling_report.h"
#include "scenario/request/fill_job.h"
#include "scenario/resolve/resolve.h"

namespace stoker::cli {
namespace {

constexpr double kBitsPerByte = 8;
constexpr int kGpusPerNode = 8;  // of most servers with several GPUs

Result<double> refuse_network(const std::string& text) {
  return fail(ErrorCode::kBadInput,
              "\"" + text +
                  "\" is no network; write gigabits a second (100G, 4x100G) or edr, hdr, ndr, xdr",
              "--network");
}

/// The GPUs of a node: as said, else as --nodes spreads the most of them, else the machine file's,
/// else 8.
Result<int> node_size(const RunOptions& run, const ScalingOptions& o, int most, int of_machine,
                      std::vector<std::string>& assumed) {
  if (run.job.nodes) {
    const auto nodes = static_cast<int>(*run.job.nodes);
    if (nodes > most) {
      return fail(ErrorCode::kUsage,
                  std::to_string(nodes) + " nodes for " + std::to_string(most) +
                      " GPUs leave nodes without one; give at most as many nodes as GPUs",
                  "--nodes");
    }
    const int size = gpus_per_node(most, nodes);
    if (o.gpus_per_node && *o.gpus_per_node != size) {
      return fail(ErrorCode::kUsage,
                  "contradicts --gpus-per-node: " + std::to_string(most) + " GPUs on " +
                      std::to_string(nodes) + " nodes are " + std::to_string(size) +
                      " a node; give one of them",
                  "--nodes");
    }
    return size;
  }
  if (o.gpus_per_node) return static_cast<int>(*o.gpus_per_node);
  if (of_machine > 1) return of_machine;
  if (most > 1) assumed.push_back(std::to_string(kGpusPerNode) + " GPUs a node (--gpus-per-node)");
  return kGpusPerNode;
}

}  // namespace

std::vector<Binding> scaling_bindings(ScalingOptions& o) {
  return {{"gpus-per-node", &o.gpus_per_node},
          {"network", &o.network},
          {"strong", &o.strong},
          {"step-ms", &o.step_ms}};
}

bool wants_scaling(const RunOptions& run, const ScalingOptions& o) {
  return o.strong || run.gpus.find_first_of(",.") != std::string::npos;
}

Result<double> network_of_one(const RunOptions& run, const ScalingOptions& o) {
  for (const auto& [given, flag] : {std::pair(o.gpus_per_node.has_value(), "--gpus-per-node"),
                                    {o.step_ms.has_value(), "--step-ms"}}) {
    if (given) {
      return fail(ErrorCode::kUsage,
                  "belongs to a table over several numbers of GPUs; write --gpus 1.." +
                      (run.gpus.empty() ? std::string("64") : run.gpus) + ", or leave it out",
                  flag);
    }
  }
  if (o.network.empty()) return 0.0;
  if (run.job.nodes.value_or(1) < 2) {
    return fail(ErrorCode::kUsage, "joins nodes, and there is one; give --nodes, or leave it out",
                "--network");
  }
  return parse_network(o.network);
}

Result<double> parse_network(const std::string& text) {
  constexpr std::array<std::pair<std::string_view, double>, 5> kNames{
      {{"edr", 100},
       {"hdr", 200},
       {"ndr", 400},
       {"xdr", 800},
       {"fdr", 56}}};  // InfiniBand, 4x links
  std::string_view rest = text;
  double cards = 1;
  const auto number = [](std::string_view word, double& value) {
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    return error == std::errc() ? word.substr(static_cast<std::size_t>(end - word.data()))
                                : std::string_view("?");
  };
  if (const auto cross = rest.find('x');
      cross != std::string_view::npos && cross > 0 && rest[0] <= '9') {
    if (!number(rest.substr(0, cross), cards).empty()) return refuse_network(text);
    rest.remove_prefix(cross + 1);
  }
  double gigabits = 0;
  const std::string name = simplified(rest);
  const auto* known =
      std::find_if(kNames.begin(), kNames.end(), [&](const auto& k) { return k.first == name; });
  if (known != kNames.end()) {
    gigabits = known->second;
  } else {
    std::string unit(number(rest, gigabits));
    std::erase(unit, ' ');
    constexpr std::array<std::string_view, 7> kBits{"G",    "g",      "Gb",  "Gbit",
                                                    "Gbps", "Gbit/s", "Gb/s"};
    constexpr std::array<std::string_view, 3> kBytes{"GB", "GB/s", "GBps"};
    const bool bytes = std::find(kBytes.begin(), kBytes.end(), unit) != kBytes.end();
    if (!bytes && std::find(kBits.begin(), kBits.end(), unit) == kBits.end())
      return refuse_network(text);
    if (bytes) gigabits *= kBitsPerByte;
  }
  constexpr double kFastest = 1e5;  // Gbit/s
  if (!(cards * gigabits > 0 && cards * gigabits <= kFastest)) {
    return fail(ErrorCode::kBadInput,
                "must be above 0 and up to 100,000 gigabit/s, not " + text +
                    "; leave it out if there is one node",
                "--network");
  }
  return cards * gigabits * 1e9 / kBitsPerByte;
}

Result<std::vector<int>> scaling_counts(const std::string& text) {
  auto counts = parse_counts(text.empty() ? "1" : text);
  if (!counts || text.find("..") == std::string::npos || text.find(',') != std::string::npos)
    return counts;
  const int first = counts->front();
  int last = first;
  std::from_chars(text.data() + text.find("..") + 2, text.data() + text.size(), last);
  std::vector<int> doubled;
  for (int n = first; n < last; n *= 2) doubled.push_back(n);
  doubled.push_back(last);
  return doubled;
}

Result<int> answer_scaling(const RunOptions& run, const std::optional<BatchRequest>& batch,
                           const ScalingOptions& o) {
  const auto counts = TRY(scaling_counts(run.gpus));
  RunOptions one = run;
  one.gpus = "1";
  RunRequest asked = TRY(exact_request(one, named_gpus(run).front()));
  asked.batch = batch;
  if (!o.network.empty()) asked.network_bandwidth = TRY(parse_network(o.network));
  // The job of one GPU, which knows of no others.
  RunRequest alone = asked;
  alone.job.nodes.reset();
  alone.job.parallel.reset();
  alone.job.fsdp_precision.reset();
  alone.job.fsdp_group.reset();
  alone.job.fsdp_offload = false;
  alone.job.bucket_view = alone.job.ddp_alone = false;
  Resolved resolved = TRY(resolve_exactly(alone, scenario_tools(run.script_run)));
  Scenario& s = resolved.base;
  TRY(fill_parallel(asked.job, s.job));
  TRY(check_bucket_view(s.job, counts.back()));
  std::vector<std::string>& assumed = resolved.facts.assumed;
  const auto size = TRY(node_size(run, o, counts.back(), resolved.gpus_of_machine, assumed));
  ScalingRequest request{counts, size, o.strong, o.step_ms.value_or(0), run.workers.has_value()};
  auto scaling = TRY(forecast_scaling(s, request, resolved.knowledge));
  for (const std::string& words : scaling.assumed) assumed.push_back(words);
  scaling.why = with_flags(scaling.why);
  for (ScalingPoint& point : scaling.points) point.impossible = with_flags(point.impossible);
  ReportContext context = context_of(resolved.facts);
  context.model_line = resolved.line(s.job).text();
  context.rests_on.insert(context.rests_on.begin(), scaling.basis);
  if (o.step_ms)
    context.rests_on.insert(context.rests_on.begin(), "a measured step of one GPU (--step-ms)");
  const std::string text =
      run.json ? scaling_json(scaling, context) : scaling_text(scaling, context);
  print(text);
  const bool runs =
      std::all_of(scaling.points.begin(), scaling.points.end(), [&](const ScalingPoint& p) {
        return p.impossible.empty() && is_good(p.fits, p.verdict, run);
      });
  return runs ? 0 : 1;
}

}  // namespace stoker::cli
