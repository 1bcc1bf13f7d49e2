#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/files.h"
#include "base/text.h"
#include "cli/outside/output.h"
#include "cli/outside/python.h"
#include "cli/outside/scenario_tools.h"
#include "cli/request/run_request.h"
#include "cli/verbs/verbs.h"
#include "forecast/knowledge.h"
#include "input/pipeline/pipeline_probe.h"
#include "input/probe/cache_what_if.h"
#include "input/probe/probe_io.h"
#include "report/model/report.h"
#include "report/text/measured/pipeline_probe_text.h"
#include "scenario/sources/data_source.h"

namespace stoker::cli {
namespace {

/// What was typed for a probe, be it of a folder or of a pipeline.
constexpr std::string_view kFolderBudget = "10s", kPipelineBudget = "20s";
/// Probe files of a hundred thousand samples stay below this.
constexpr Bytes kProbeFileLimit = 64 * kMiB;

struct ProbeArguments {
  std::string folder, output, budget, max_read = "2G", kind, dram;
  std::optional<std::int64_t> image_size, sample;
  bool json = false;
  std::vector<std::string> script_arguments;  ///< what follows -- where `folder` is FILE.py
};

/// Whether the user named FILE.py:FUNCTION, or FILE.py: a training script, whose loader is probed.
bool names_a_pipeline(const std::string& what) {
  const std::string file = what.substr(0, what.rfind(':'));
  std::error_code ignored;
  return file.ends_with(".py") && !std::filesystem::is_directory(what, ignored);
}

/// A Dataset or DataLoader is measured by Python, which hands its probe back to `stoker probe -`.
Result<int> probe_pipeline(const ProbeArguments& o) {
  const char* foreign = o.image_size      ? "--image-size"
                        : o.sample        ? "--sample"
                        : !o.kind.empty() ? "--kind"
                        : !o.dram.empty() ? "--dram"
                                          : nullptr;
  if (foreign != nullptr)
    return fail(ErrorCode::kUsage, "is for folders; " + o.folder + " decides that itself", foreign);
  std::vector<std::string> arguments{"probe", o.folder, "--budget",
                                     o.budget.empty() ? std::string(kPipelineBudget) : o.budget};
  if (!o.output.empty()) arguments.insert(arguments.end(), {"-o", o.output});
  if (o.json) arguments.emplace_back("--json");
  if (o.folder.ends_with(".py")) {
    arguments.emplace_back("--");
    arguments.insert(arguments.end(), o.script_arguments.begin(), o.script_arguments.end());
  }
  return tl::unexpected(become_python_stoker(arguments));
}

/// Everything on standard input, or of the file that was named.
Result<std::string> text_of(const std::string& what) {
  if (what != "-") return read_file(what, kProbeFileLimit);
  std::string text;
  char part[1 << 16];
  while (const std::size_t got = std::fread(part, 1, sizeof part, stdin)) {
    text.append(part, got);
    if (text.size() > static_cast<std::size_t>(kProbeFileLimit.count()))
      return fail(ErrorCode::kBadInput, "is too large for a probe", "standard input");
  }
  return text;
}

/// "20G,128G".
Result<std::vector<Bytes>> memories_of(const std::string& list) {
  std::vector<Bytes> out;
  if (list.empty()) return out;
  for (const std::string& one : split(list, ',')) {
    const auto size = parse_bytes(one);
    if (!size || size->count() <= 0)
      return fail(ErrorCode::kUsage, "\"" + one + "\" is no size of memory; write 20G,128G",
                  "--dram");
    out.push_back(*size);
  }
  return out;
}

std::string json_of(const Probe& probe, const LoaderProfile& profile,
                    const std::vector<Bytes>& memories) {
  return probe_to_json(probe,
                       cache_what_if(probe, sample_cost_from_probe(probe, profile), memories));
}

/// Shows a probe that was made before; nothing is measured.
Result<int> show(const ProbeArguments& o, const LoaderProfile& profile) {
  const std::string where = o.folder == "-" ? "standard input" : o.folder;
  const auto text = TRY(text_of(o.folder));
  if (is_pipeline_probe(text)) {
    const auto probe = TRY(parse_pipeline_probe(text, where));
    print(pipeline_probe_text(probe, profile));
    return 0;
  }
  const auto probe = TRY(parse_probe(text, where));
  const auto memories = TRY(memories_of(o.dram));
  const std::string out =
      o.json ? json_of(probe, profile, memories) : probe_text(probe, profile, memories);
  print(out);
  return 0;
}

Result<int> run_probe(const ProbeArguments& o) {
  if (names_a_pipeline(o.folder)) return probe_pipeline(o);
  const auto knowledge = TRY(load_knowledge());
  std::error_code ignored;
  if (o.folder == "-" ||
      (std::filesystem::is_regular_file(o.folder, ignored) && !is_data_file(o.folder))) {
    return show(o, knowledge.loader);
  }
  const auto memories = TRY(memories_of(o.dram));
  const auto budget =
      parse_time(o.budget.empty() ? std::string(kFolderBudget) : o.budget, "--budget");
  if (!budget) return tl::unexpected(budget.error());
  const auto max_read = parse_bytes(o.max_read);
  if (!max_read) return fail(ErrorCode::kUsage, max_read.error().message, "--max-read");
  ProbeOptions options;
  options.budget = *budget;
  options.max_read = *max_read;
  if (o.image_size) options.image_size = static_cast<int>(*o.image_size);
  if (o.sample) options.sample = static_cast<std::size_t>(*o.sample);
  if (!o.kind.empty()) {
    options.kind = data_kind_named(o.kind);
    if (!options.kind) {
      return fail(ErrorCode::kUsage,
                  "\"" + o.kind + "\" is no kind; write pictures, tar-shards, records or text",
                  "--kind");
    }
  }
  const auto probe = TRY(probe_with_progress(o.folder, options));
  if (!o.output.empty()) {
    TRY(write_probe(o.output, probe));
  }
  const std::string text = o.json ? json_of(probe, knowledge.loader, memories)
                                  : probe_text(probe, knowledge.loader, memories);
  print(text);
  if (!o.output.empty() && !o.json)
    std::printf("Written to %s; use it with --data %s\n", o.output.c_str(), o.output.c_str());
  return 0;
}

}  // namespace

Command probe_command() {
  auto o = std::make_shared<ProbeArguments>();
  Command command{"probe",
                  "measure what data in files, or your own Dataset or DataLoader, costs",
                  "Examples: stoker probe ./images -o images.probe.json\n"
                  "          stoker probe train.py:make_loader -o train.probe.json\n"
                  "          stoker probe train.py -o train.probe.json -- --epochs 1",
                  {{"what", &o->folder},
                   {"output", &o->output},
                   {"budget", &o->budget},
                   {"max-read", &o->max_read},
                   {"image-size", &o->image_size},
                   {"sample", &o->sample},
                   {"kind", &o->kind},
                   {"dram", &o->dram},
                   {"json", &o->json}},
                  [o] { return run_probe(*o); }};
  command.rest = &o->script_arguments;
  command.rest_words = "ARGUMENTS";
  return command;
}

}  // namespace stoker::cli
