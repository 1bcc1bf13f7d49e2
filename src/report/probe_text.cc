#include <fmt/format.h>

#include "base/text.h"
#include "report/layout.h"
#include "report/report.h"

namespace stoker {
namespace {
using namespace layout;
}  // namespace

std::string probe_text(const Probe& probe, const LoaderProfile& profile) {
  const DatasetFacts& d = probe.dataset;
  const SampleCost cost = sample_cost_from_probe(probe, profile);
  std::string text = fmt::format(
      "{}: {}{} picture{}, {}, mean {} and {:.2f} MP\n\n", d.name, d.files_exact ? "" : "at least ",
      with_commas(d.files), d.files == 1 ? "" : "s", human_bytes(d.total_bytes),
      human_bytes(Bytes(static_cast<std::int64_t>(d.mean_bytes))), d.mean_pixels * 1e-6);
  const double one = 1e9 / cost.mean_cpu().count();
  text += fmt::format(
      "One worker prepares {} img/s [{}-{}] with Pillow and torchvision ({:.2f} ms a picture)\n",
      number(one), number(one / (1 + cost.band.above)), number(one / (1 - cost.band.below)),
      milliseconds(cost.mean_cpu()));
  text += fmt::format("All {} cores together keep {} of that each\n\n", probe.parallel.threads,
                      percent(probe.parallel.efficiency));
  std::vector<std::vector<std::string>> rows{{"stage (C++)", "mean ms", "median", "p95"}};
  for (std::size_t s = 0; s < kStageCount; ++s) {
    const Spread& spread = probe.stage_ms[s];
    rows.push_back({std::string(stage_name(static_cast<Stage>(s))),
                    fmt::format("{:.2f}", spread.mean), fmt::format("{:.2f}", spread.median),
                    fmt::format("{:.2f}", spread.p95)});
  }
  rows.push_back({"all", fmt::format("{:.2f}", probe.sample_ms.mean),
                  fmt::format("{:.2f}", probe.sample_ms.median),
                  fmt::format("{:.2f}", probe.sample_ms.p95)});
  text += table(rows, {0});
  constexpr std::size_t kEnoughForAFit = 8;
  if (probe.samples.size() >= kEnoughForAFit) {
    text += fmt::format("\nDecoding: {:.1f} ms/MP + {:.1f} ms/MB (R2 {:.2f})\n",
                        probe.decode.per_megapixel, probe.decode.per_megabyte, probe.decode.r2);
  }
  text +=
      probe.read.cold_measured
          ? fmt::format(
                "Reading: cold {:.2f} ms a file, warm {:.2f} ms; {} was in the page cache\n",
                probe.read.cold_ms, probe.read.warm_ms, percent(probe.read.resident_share))
          : fmt::format("Reading: warm {:.2f} ms a file; cold reads could not be measured here\n",
                        probe.read.warm_ms);
  if (const std::string warning = foreign_load_warning(probe.foreign); !warning.empty())
    text += "warning: " + warning + "\n";
  text += labelled("Rests on", {cost.basis, probe.provenance.cpu_model});
  return text + diagnostics(probe.diagnostics);
}

}  // namespace stoker
