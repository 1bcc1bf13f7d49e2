#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/text.h"
#include "cli/data_source.h"
#include "cli/verbs.h"
#include "forecast/knowledge.h"
#include "input/probe_io.h"
#include "report/report.h"

namespace stoker::cli {
namespace {

struct Options {
  std::string folder, output, budget = "10s", max_read = "2G";
  std::optional<std::int64_t> image_size, sample;
  bool json = false;
};

Result<int> run(const Options& o) {
  const auto knowledge = load_knowledge();
  if (!knowledge) return tl::unexpected(knowledge.error());
  const auto budget = parse_time(o.budget, "--budget");
  if (!budget) return tl::unexpected(budget.error());
  const auto max_read = parse_bytes(o.max_read);
  if (!max_read) return fail(ErrorCode::kUsage, max_read.error().message, "--max-read");
  ProbeOptions options;
  options.budget = *budget;
  options.max_read = *max_read;
  if (o.image_size) {
    if (*o.image_size < 1 || *o.image_size > 8192)
      return fail(ErrorCode::kBadInput, "must be between 1 and 8,192", "--image-size");
    options.image_size = static_cast<int>(*o.image_size);
  }
  if (o.sample) {
    if (*o.sample < 1) return fail(ErrorCode::kBadInput, "must be at least 1", "--sample");
    options.sample = static_cast<std::size_t>(*o.sample);
  }
  const auto probe = probe_with_progress(o.folder, options);
  if (!probe) return tl::unexpected(probe.error());
  if (!o.output.empty()) {
    if (auto written = write_probe(o.output, *probe); !written)
      return tl::unexpected(written.error());
  }
  const std::string text = o.json ? probe_to_json(*probe) : probe_text(*probe, knowledge->loader);
  std::fputs(text.c_str(), stdout);
  if (!o.output.empty() && !o.json)
    std::printf("Written to %s; use it with --data %s\n", o.output.c_str(), o.output.c_str());
  return 0;
}

}  // namespace

Command probe_command() {
  auto o = std::make_shared<Options>();
  return {"probe",
          "measure what a folder of pictures costs to read, decode and transform",
          "Example: stoker probe ./images -o images.probe.json",
          {{"folder", "folder of JPEG pictures, searched to any depth", &o->folder, true},
           {"-o,--output", "write a probe file that --data takes", &o->output},
           {"--budget", "time to spend; default 10s", &o->budget},
           {"--max-read", "bytes to read at most; default 2G", &o->max_read},
           {"--image-size", "side that pictures are cropped to; default 224", &o->image_size},
           {"--sample", "pictures to measure at most; default 256", &o->sample},
           {"--json", "the probe as JSON on stdout", &o->json}},
          [o] { return run(*o); }};
}

}  // namespace stoker::cli
